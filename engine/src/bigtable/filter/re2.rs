//! RE2 patterns over bytes, by translation onto [`regex::bytes`], whose syntax is close but not the same.
//!
//! A pattern must match the whole text. Text and pattern are bytes, as in RE2's Latin-1 mode.
//!
//! **Invariants**: what RE2 refuses is refused; what both take means the same. The one difference left: under `(?i)` only ASCII
//! letters are folded.

mod class;
mod translate;

use regex::bytes::{Regex, RegexBuilder};

use self::translate::translate;

/// The largest compiled pattern, in bytes.
const MAX_COMPILED: usize = 2 << 20;

/// A pattern that is matched against whole texts.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// Exactly these bytes.
    Literal(Vec<u8>),
    /// Begins with these bytes; what follows is anything.
    Prefix(Vec<u8>),
    Regex {
        /// What every match begins with.
        prefix: Vec<u8>,
        regex: Regex,
    },
}

impl Pattern {
    /// Compiles a pattern; the error says what is wrong with it.
    pub(crate) fn new(pattern: &[u8]) -> Result<Self, String> {
        let translated = translate(pattern)?;
        if translated.rest.is_empty() {
            return Ok(Self::Literal(translated.prefix));
        }
        if translated.rest == translate::ANY {
            return Ok(Self::Prefix(translated.prefix));
        }
        let regex = RegexBuilder::new(&format!(r"\A(?:{})\z", translated.whole))
            .unicode(false)
            .size_limit(MAX_COMPILED)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(limit) => {
                    format!("it compiles to more than {limit} bytes")
                }
                error => error.to_string(),
            })?;
        Ok(Self::Regex {
            prefix: translated.prefix,
            regex,
        })
    }

    /// Whether the whole of `text` matches.
    #[inline]
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Literal(literal) => text == literal.as_slice(),
            Self::Prefix(prefix) => text.starts_with(prefix),
            Self::Regex { prefix, regex } => text.starts_with(prefix) && regex.is_match(text),
        }
    }

    /// The only text that matches, if there is just one.
    pub(crate) fn literal(&self) -> Option<&[u8]> {
        match self {
            Self::Literal(literal) => Some(literal),
            _ => None,
        }
    }

    /// What every text that matches begins with.
    pub(crate) fn prefix(&self) -> &[u8] {
        match self {
            Self::Literal(prefix) | Self::Prefix(prefix) | Self::Regex { prefix, .. } => prefix,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts_of_bytes() {
        let check = |pattern: &[u8], matching: &[&[u8]], other: &[&[u8]]| {
            let compiled = Pattern::new(pattern).expect("compiles");
            for text in matching {
                assert!(compiled.matches(text), "{compiled:?} {text:?}");
            }
            for text in other {
                assert!(!compiled.matches(text), "{compiled:?} {text:?}");
            }
        };
        check(b"", &[b""], &[b"a"]);
        check(b"abc", &[b"abc"], &[b"ab", b"abcd", b"xabc"]);
        check(b"a|bc", &[b"a", b"bc"], &[b"ac", b"abc"]);
        check(b"a.c", &[b"abc", b"a\xffc"], &[b"a\nc"]);
        check(b"a\\Cc", &[b"a\nc", b"a\x80c"], &[b"ac"]);
        check(b"ab\\C*", &[b"ab", b"ab\n\xff"], &[b"a"]);
        check(b"ab.*", &[b"ab", b"abc"], &[b"ab\n"]);
        check(b"\xc3\xa9+", &[b"\xc3\xa9", b"\xc3\xa9\xa9"], &[b"\xc3"]);
        check(b"[\x80-\xff]*", &[b"", b"\x80\xff"], &[b"\x7f"]);
        check(b"[^a]", &[b"b", b"\n", b"\xff"], &[b"a", b""]);
        check(b"[]a]+", &[b"]a"], &[b"b"]);
        check(b"[a[b]+", &[b"[ab"], &[b"c"]);
        check(b"[a&&b]+", &[b"a&b"], &[b"c"]);
        check(b"[[:digit:]x]+", &[b"1x2"], &[b"a"]);
        check(b"[[:^digit:]]+", &[b"ab\xff"], &[b"1"]);
        check(b"\\Qa.b\\E.", &[b"a.bc"], &[b"axbc"]);
        check(b"\\Qa\\", &[b"a\\"], &[b"a"]);
        check(b"\\s", &[b" ", b"\t", b"\x0c"], &[b"\x0b", b"a"]);
        check(b"[\\S]", &[b"\x0b", b"a"], &[b" "]);
        check(b"\\d\\w\\W", &[b"1_-"], &[b"a1-"]);
        check(b"\\pL+", &[b"abc", b"\xe9"], &[b"1"]);
        check(b"[\\p{Lu}1]+", &[b"AB1", b"\xc9"], &[b"a"]);
        check(b"\\PL", &[b"1"], &[b"a"]);
        check(b"\\101\\x42\\x{43}", &[b"ABC"], &[b"abc"]);
        check(b"\\0", &[b"\0"], &[b"0"]);
        check(b"(?i)abc", &[b"aBC"], &[b"abd"]);
        check(b"(?s).", &[b"\n"], &[b""]);
        check(b"(?i:a)b", &[b"Ab"], &[b"AB"]);
        check(b"(?P<n>a)(?<m>b)", &[b"ab"], &[b"a"]);
        check(b"a{2}", &[b"aa"], &[b"a{2}"]);
        check(b"a{2,}b{1,2}", &[b"aaab", b"aabb"], &[b"ab"]);
        check(b"a{,2}", &[b"a{,2}"], &[b"aa"]);
        check(b"a{", &[b"a{"], &[b"a"]);
        check(b"a}]", &[b"a}]"], &[b"a"]);
        check(b"\\<\\>", &[b"<>"], &[b""]);
        check(b"a*?b", &[b"aab"], &[b"a"]);
        check(b"(?m)^a$", &[b"a"], &[b"a\n"]);
        check(b"x#y z", &[b"x#y z"], &[b"x"]);
        check(b"ab?", &[b"a", b"ab"], &[b"b"]);
        check(b"()|a", &[b"", b"a"], &[b"b"]);
    }

    /// `vectors.txt` is made by `vectors/main.go`, which also says what its lines are.
    #[test]
    fn patterns_do_what_they_do_in_another_re2() {
        let bytes = |text: &str| -> Vec<u8> {
            let digits = text.strip_prefix('x').expect("hexadecimal").as_bytes();
            let byte = |pair: &[u8]| {
                let pair = std::str::from_utf8(pair).expect("digits");
                u8::from_str_radix(pair, 16).expect("digits")
            };
            digits.chunks(2).map(byte).collect()
        };
        let mut lines = include_str!("re2/vectors.txt").lines();
        let texts: Vec<Vec<u8>> = lines.next().expect("texts").split(' ').map(bytes).collect();
        let mut count = 0;
        for line in lines {
            let (pattern, expected) = line.split_once(' ').expect("two fields");
            let pattern = bytes(pattern);
            let shown = String::from_utf8_lossy(&pattern);
            match Pattern::new(&pattern) {
                Err(error) => assert_eq!(expected, "!", "{shown:?}: {error}"),
                Ok(compiled) => {
                    let mark = |text: &Vec<u8>| if compiled.matches(text) { '+' } else { '-' };
                    let found: String = texts.iter().map(mark).collect();
                    assert_eq!(found, expected, "{shown:?} {compiled:?}");
                }
            }
            count += 1;
        }
        assert_eq!(count, 3000);
    }

    #[test]
    fn what_re2_refuses_is_refused() {
        let check = |pattern: &[u8], expected: &str| {
            let error = Pattern::new(pattern).expect_err("refused");
            assert!(error.contains(expected), "{pattern:?}: {error}");
        };
        check(b"(", "missing closing )");
        check(b")", "unexpected )");
        check(b"[a", "missing closing ]");
        check(b"[b-a]", "bad character class range: b-a");
        check(b"[a-\\d]", "bad character class range");
        check(b"*a", "no argument for repetition operator: *");
        check(b"a|*", "no argument for repetition operator: *");
        check(b"a**", "bad repetition operator: **");
        check(b"a*{2}", "bad repetition operator: *{2}");
        check(b"a{1001}", "bad repetition operator: {1001}");
        check(b"a{2,1}", "bad repetition operator: {2,1}");
        check(b"(?=a)", "invalid perl operator: (?=");
        check(b"(?x)a", "invalid perl operator: (?x");
        check(b"(?u)a", "invalid perl operator: (?u");
        check(b"(?P<1>a)", "invalid named capture group");
        check(b"\\", "trailing \\");
        check(b"\\1", "invalid escape sequence: \\1");
        check(b"\\y", "invalid escape sequence: \\y");
        check(b"\\Z", "invalid escape sequence: \\Z");
        check(b"\\x{100}", "invalid escape sequence");
        check(b"\\p{Nope}", "invalid character class range: \\p{Nope}");
        check(b"[[:nope:]]", "invalid character class range: [:nope:]");
        check(b"((a{1000}){1000}){1000}", "more than");
    }

    #[test]
    fn prefixes_and_literals_are_known() {
        let check = |pattern: &[u8], literal: Option<&[u8]>, prefix: &[u8]| {
            let compiled = Pattern::new(pattern).expect("compiles");
            assert_eq!(
                (compiled.literal(), compiled.prefix()),
                (literal, prefix),
                "{pattern:?}"
            );
        };
        check(b"abc", Some(b"abc"), b"abc");
        check(b"a\\.c\\x00", Some(b"a.c\0"), b"a.c\0");
        check(b"abc.*", None, b"abc");
        check(b"ab*", None, b"a");
        check(b"ab{0,1}", None, b"a");
        check(b"ab|c", None, b"");
        check(b"a(b|c)", None, b"a");
        check(b"(?i)ab", None, b"");
        check(b"ab(?i)c", None, b"ab");
        check(b"^ab", None, b"");
        check(b"ab$", None, b"ab");
    }
}
