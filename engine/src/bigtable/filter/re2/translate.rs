//! From RE2's syntax to that of the `regex` crate: a walk over the pattern that checks it and writes each part so that it can
//! only mean what RE2 means.

use super::class;

/// `\C*`, translated.
pub(super) const ANY: &str = "(?s-u:.)*";
/// RE2's limit of a repetition.
const MAX_REPEAT: u32 = 1000;
/// Groups inside each other: the limit of RE2's parser.
const MAX_DEPTH: usize = 1000;

/// A translated pattern.
pub(super) struct Translated {
    /// What every match begins with.
    pub(super) prefix: Vec<u8>,
    /// What comes after the prefix.
    pub(super) rest: String,
    /// All of it.
    pub(super) whole: String,
}

/// Translates a pattern or says what is wrong with it.
pub(super) fn translate(pattern: &[u8]) -> Result<Translated, String> {
    let mut walk = Walk {
        rest: pattern,
        out: String::new(),
        depth: 0,
        last: Last::Nothing,
        end: 0,
        prefix: Some(Prefix::default()),
        found: Prefix::default(),
        alternatives: false,
    };
    while !walk.rest.is_empty() {
        walk.step()?;
    }
    if walk.depth > 0 {
        return Err("missing closing )".to_owned());
    }
    walk.end_prefix();
    let prefix = match walk.alternatives {
        true => Prefix::default(),
        false => walk.found,
    };
    Ok(Translated {
        rest: walk.out[prefix.written..].to_owned(),
        prefix: prefix.bytes,
        whole: walk.out,
    })
}

/// What the walk wrote last: whether it can be repeated.
enum Last {
    Nothing,
    Atom,
    /// A repetition, as written.
    Repetition(String),
}

/// Literal bytes at the pattern's start, and how much of the output they are.
#[derive(Default, Clone)]
struct Prefix {
    bytes: Vec<u8>,
    written: usize,
    /// Before the last byte, which a repetition takes away.
    before: usize,
}

struct Walk<'a> {
    rest: &'a [u8],
    out: String,
    depth: usize,
    last: Last,
    /// Where what can be repeated ends: flags may stand behind it.
    end: usize,
    /// Until something else than a literal byte came.
    prefix: Option<Prefix>,
    found: Prefix,
    /// There is a `|` outside of groups.
    alternatives: bool,
}

impl Walk<'_> {
    fn step(&mut self) -> Result<(), String> {
        let first = self.rest[0];
        match first {
            b'*' | b'+' | b'?' => self.repeat(1),
            b'{' => match repetition(self.rest)? {
                Some(length) => self.repeat(length),
                None => self.literal(1, b'{'),
            },
            b'(' => self.open(),
            b')' => self.close(),
            b'|' => {
                self.alternatives |= self.depth == 0;
                self.other(1, "|", Last::Nothing)
            }
            b'.' => self.other(1, ".", Last::Atom),
            b'^' => self.other(1, "^", Last::Atom),
            b'$' => self.other(1, "$", Last::Atom),
            b'[' => {
                let (class, length) = class::class(self.rest)?;
                self.other(length, &class, Last::Atom)
            }
            b'\\' => self.escape(),
            byte => self.literal(1, byte),
        }
    }

    /// Takes `length` bytes of the pattern, which stand for a byte.
    fn literal(&mut self, length: usize, byte: u8) -> Result<(), String> {
        self.rest = &self.rest[length..];
        let before = self.out.len();
        self.out.push_str(&class::byte(byte));
        (self.last, self.end) = (Last::Atom, self.out.len());
        if let Some(prefix) = &mut self.prefix {
            prefix.bytes.push(byte);
            (prefix.before, prefix.written) = (before, self.out.len());
        }
        Ok(())
    }

    /// Takes `length` bytes of the pattern, which are written as `text`.
    fn other(&mut self, length: usize, text: &str, last: Last) -> Result<(), String> {
        self.end_prefix();
        self.rest = &self.rest[length..];
        self.out.push_str(text);
        (self.last, self.end) = (last, self.out.len());
        Ok(())
    }

    fn end_prefix(&mut self) {
        if let Some(prefix) = self.prefix.take() {
            self.found = prefix;
        }
    }

    fn repeat(&mut self, length: usize) -> Result<(), String> {
        let operator = text(&self.rest[..length]);
        match &self.last {
            Last::Nothing => {
                return Err(format!("no argument for repetition operator: {operator}"));
            }
            Last::Repetition(before) => {
                return Err(format!("bad repetition operator: {before}{operator}"));
            }
            Last::Atom => {}
        }
        // The byte that is repeated is none that every match has.
        let found = (self.found.written == self.end).then_some(&mut self.found);
        if let Some(prefix) = self.prefix.as_mut().or(found)
            && prefix.bytes.pop().is_some()
        {
            prefix.written = prefix.before;
        }
        let lazy = self.rest.get(length) == Some(&b'?');
        let length = length + usize::from(lazy);
        let operator = text(&self.rest[..length]);
        self.end_prefix();
        self.rest = &self.rest[length..];
        self.out.insert_str(self.end, &operator);
        self.end += operator.len();
        self.last = Last::Repetition(operator);
        Ok(())
    }

    fn open(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} groups inside each other"));
        }
        let Some(after) = self.rest.strip_prefix(b"(?") else {
            return self.other(1, "(?:", Last::Nothing);
        };
        for (opening, length) in [(&b"P<"[..], 4), (b"<", 3)] {
            if let Some(name) = after.strip_prefix(opening) {
                let end = name.iter().position(|byte| *byte == b'>');
                let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let end = end.filter(|end| *end > 0 && name[..*end].iter().all(word));
                let end = end.filter(|_| !name[0].is_ascii_digit());
                let Some(end) = end else {
                    return Err(format!("invalid named capture group: {}", text(self.rest)));
                };
                return self.other(length + end + 1, "(?:", Last::Nothing);
            }
        }
        let end = after.iter().position(|byte| matches!(byte, b')' | b':'));
        let refused = |length: usize| {
            let length = (2 + length).min(self.rest.len());
            Err(format!(
                "invalid perl operator: {}",
                text(&self.rest[..length])
            ))
        };
        let Some(end) = end else {
            return Err("missing closing )".to_owned());
        };
        let flags = &after[..end];
        if let Some(bad) = flags.iter().position(|flag| !b"imsU-".contains(flag)) {
            return refused(bad + 1);
        }
        let minus = flags.iter().position(|flag| *flag == b'-');
        if minus.is_some_and(|minus| minus + 1 == flags.len() || flags[minus + 1..].contains(&b'-'))
        {
            return refused(end + 1);
        }
        let (flags, length) = (text(flags), 2 + end + 1);
        match after[end] {
            b')' => {
                if flags.is_empty() {
                    return refused(end + 1);
                }
                self.depth -= 1;
                self.end_prefix();
                self.rest = &self.rest[length..];
                self.out.push_str(&format!("(?{flags})"));
                if let Last::Repetition(_) = self.last {
                    // What is repeated can be repeated again, as nothing else lets it.
                    self.last = Last::Atom;
                }
                Ok(())
            }
            _ => self.other(length, &format!("(?{flags}:"), Last::Nothing),
        }
    }

    fn close(&mut self) -> Result<(), String> {
        self.depth = self.depth.checked_sub(1).ok_or("unexpected )")?;
        self.other(1, ")", Last::Atom)
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(escaped) = self.rest.get(1) else {
            return Err("trailing \\ at end of pattern".to_owned());
        };
        match escaped {
            b'Q' => self.quoted(),
            b'C' => self.other(2, "(?s-u:.)", Last::Atom),
            b'A' => self.other(2, r"\A", Last::Atom),
            b'z' => self.other(2, r"\z", Last::Atom),
            b'b' => self.other(2, r"(?-u:\b)", Last::Atom),
            b'B' => self.other(2, r"(?-u:\B)", Last::Atom),
            _ => match class::escaped_class(self.rest)? {
                Some((ranges, length)) => self.other(length, &class::write(&ranges), Last::Atom),
                None => {
                    let (byte, length) = class::escaped_byte(self.rest)?;
                    self.literal(length, byte)
                }
            },
        }
    }

    /// `\Q…\E`, or to the end.
    fn quoted(&mut self) -> Result<(), String> {
        self.rest = &self.rest[2..];
        while let Some(byte) = self.rest.first() {
            if self.rest.starts_with(br"\E") {
                self.rest = &self.rest[2..];
                return Ok(());
            }
            self.literal(1, *byte)?;
        }
        Ok(())
    }
}

/// The length of the `{n}`, `{n,}` or `{n,m}` that `pattern` begins with; anything else is a literal brace.
fn repetition(pattern: &[u8]) -> Result<Option<usize>, String> {
    let Some(end) = pattern.iter().position(|byte| *byte == b'}') else {
        return Ok(None);
    };
    let inside = text(&pattern[1..end]);
    let (from, to) = match inside.split_once(',') {
        Some((from, to)) => (from, Some(to)),
        None => (inside.as_str(), None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(from) || !to.is_none_or(|to| to.is_empty() || digits(to)) {
        return Ok(None);
    }
    let number = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|number| *number <= MAX_REPEAT)
    };
    let fits = match (number(from), to) {
        (None, _) => false,
        (Some(_), None | Some("")) => true,
        (Some(from), Some(to)) => number(to).is_some_and(|to| from <= to),
    };
    match fits {
        true => Ok(Some(end + 1)),
        false => Err(format!("bad repetition operator: {{{inside}}}")),
    }
}

/// Bytes as text, for messages and for parts that are ASCII.
fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}
