//! Character classes: sets of bytes, written out as ranges.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use regex::Regex;

/// A set of bytes.
pub(super) type Set = [bool; 256];

const NONE: Set = [false; 256];

/// How a byte is written where only this byte is meant.
pub(super) fn byte(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    }
}

/// How a set is written.
pub(super) fn write(set: &Set) -> String {
    let mut out = String::from("[");
    let mut at = 0;
    while at < 256 {
        if !set[at] {
            at += 1;
            continue;
        }
        let end = (at..256).take_while(|byte| set[*byte]).last().unwrap_or(at);
        let _ = write!(out, "\\x{at:02x}-\\x{end:02x}");
        at = end + 1;
    }
    match out.len() {
        // The empty set.
        1 => r"[^\x00-\xff]".to_owned(),
        _ => out + "]",
    }
}

/// Parses the class that `pattern` begins with; returns it written out, and its length. Under `(?i)` the letters in it are folded.
pub(super) fn class(pattern: &[u8]) -> Result<(String, usize), String> {
    let mut rest = &pattern[1..];
    let negated = rest.first() == Some(&b'^');
    if negated {
        rest = &rest[1..];
    }
    let (mut set, mut first) = (NONE, true);
    loop {
        match rest.first() {
            None => return Err(format!("missing closing ]: {}", text(pattern))),
            Some(b']') if !first => break,
            Some(_) => {}
        }
        first = false;
        if let Some((named, length)) = posix(rest)? {
            add(&mut set, &named);
            rest = &rest[length..];
            continue;
        }
        if let Some((escaped, length)) = escaped_class(rest)? {
            add(&mut set, &escaped);
            rest = &rest[length..];
            continue;
        }
        let start = rest;
        let (low, length) = member(rest)?;
        rest = &rest[length..];
        let mut high = low;
        if rest.first() == Some(&b'-') && rest.get(1).is_some_and(|next| *next != b']') {
            let length;
            (high, length) = match escaped_class(&rest[1..])? {
                Some(_) => (0, 0),
                None => member(&rest[1..])?,
            };
            rest = &rest[1 + length..];
            if length == 0 || high < low {
                let shown = &start[..(start.len() - rest.len()).max(3).min(start.len())];
                return Err(format!("bad character class range: {}", text(shown)));
            }
        }
        fill(&mut set, low..=high);
    }
    let length = pattern.len() - rest.len() + 1;
    let written = match negated {
        // What is folded must be folded before it is negated.
        true => write(&set).replacen('[', "[^", 1),
        false => write(&set),
    };
    let written = match (negated, set == NONE) {
        (true, true) => r"[\x00-\xff]".to_owned(),
        _ => written,
    };
    Ok((written, length))
}

/// A byte of a class and the length of how it is written.
fn member(pattern: &[u8]) -> Result<(u8, usize), String> {
    match pattern.first() {
        Some(b'\\') => escaped_byte(pattern),
        Some(byte) => Ok((*byte, 1)),
        None => Err("missing closing ]".to_owned()),
    }
}

/// `\d`, `\pN` and their like at the start of `pattern`, and their length.
pub(super) fn escaped_class(pattern: &[u8]) -> Result<Option<(Set, usize)>, String> {
    let Some(b'\\') = pattern.first() else {
        return Ok(None);
    };
    let Some(letter) = pattern.get(1) else {
        return Ok(None);
    };
    let set = match letter.to_ascii_lowercase() {
        b'd' => of(u8::is_ascii_digit),
        b's' => of(|byte| b"\t\n\x0c\r ".contains(byte)),
        b'w' => of(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'),
        b'p' => return property(pattern).map(Some),
        _ => return Ok(None),
    };
    Ok(Some((negate_if(letter.is_ascii_uppercase(), set), 2)))
}

/// A property of Unicode, of the characters that one byte stands for.
fn property(pattern: &[u8]) -> Result<(Set, usize), String> {
    let (name, length) = match pattern.get(2) {
        Some(b'{') => match pattern.iter().position(|byte| *byte == b'}') {
            Some(end) => (text(&pattern[3..end]), end + 1),
            None => return Err(format!("invalid character class range: {}", text(pattern))),
        },
        Some(letter) => (char::from(*letter).to_string(), 3),
        None => return Err(format!("invalid character class range: {}", text(pattern))),
    };
    let refused = || {
        format!(
            "invalid character class range: {}",
            text(&pattern[..length])
        )
    };
    let (negated, plain) = match name.strip_prefix('^') {
        Some(plain) => (true, plain),
        None => (false, name.as_str()),
    };
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if plain.is_empty() || !plain.chars().all(word) {
        return Err(refused());
    }
    let set = match plain {
        "Any" => [true; 256],
        _ => {
            let regex = Regex::new(&format!("^\\p{{{plain}}}$")).map_err(|_| refused())?;
            let mut encoded = [0; 4];
            of(|byte| regex.is_match(char::from(*byte).encode_utf8(&mut encoded)))
        }
    };
    let upper = pattern[1] == b'P';
    Ok((negate_if(upper != negated, set), length))
}

/// `[:alpha:]` and its like at the start of `pattern`, and its length.
fn posix(pattern: &[u8]) -> Result<Option<(Set, usize)>, String> {
    if !pattern.starts_with(b"[:") {
        return Ok(None);
    }
    let Some(end) = pattern.windows(2).skip(2).position(|pair| pair == b":]") else {
        return Ok(None);
    };
    let (name, length) = (&pattern[2..2 + end], end + 4);
    let (negated, name) = match name.strip_prefix(b"^") {
        Some(name) => (true, name),
        None => (false, name),
    };
    let set = match name {
        b"alnum" => of(u8::is_ascii_alphanumeric),
        b"alpha" => of(u8::is_ascii_alphabetic),
        b"ascii" => of(u8::is_ascii),
        b"blank" => of(|byte| b" \t".contains(byte)),
        b"cntrl" => of(u8::is_ascii_control),
        b"digit" => of(u8::is_ascii_digit),
        b"graph" => of(u8::is_ascii_graphic),
        b"lower" => of(u8::is_ascii_lowercase),
        b"print" => of(|byte| byte.is_ascii_graphic() || *byte == b' '),
        b"punct" => of(u8::is_ascii_punctuation),
        b"space" => of(|byte| b"\t\n\x0b\x0c\r ".contains(byte)),
        b"upper" => of(u8::is_ascii_uppercase),
        b"word" => of(|byte| byte.is_ascii_alphanumeric() || *byte == b'_'),
        b"xdigit" => of(u8::is_ascii_hexdigit),
        _ => {
            let shown = text(&pattern[..length]);
            return Err(format!("invalid character class range: {shown}"));
        }
    };
    Ok(Some((negate_if(negated, set), length)))
}

/// A byte that `pattern` begins with in escaped form, and the form's length.
pub(super) fn escaped_byte(pattern: &[u8]) -> Result<(u8, usize), String> {
    let refused = |length: usize| {
        let shown = text(&pattern[..length.min(pattern.len())]);
        format!("invalid escape sequence: {shown}")
    };
    let Some(escaped) = pattern.get(1) else {
        return Err("trailing \\ at end of pattern".to_owned());
    };
    let octal = |byte: Option<&u8>| byte.filter(|byte| (b'0'..=b'7').contains(byte)).copied();
    match escaped {
        b'1'..=b'7' if octal(pattern.get(2)).is_none() => Err(refused(2)),
        b'0'..=b'7' => {
            let (mut value, mut length) = (0_u32, 1);
            while length < 4
                && let Some(digit) = octal(pattern.get(length))
            {
                value = value * 8 + u32::from(digit - b'0');
                length += 1;
            }
            Ok((u8::try_from(value).map_err(|_| refused(length))?, length))
        }
        b'x' => hexadecimal(pattern).ok_or_else(|| refused(pattern.len().min(8))),
        b'a' => Ok((7, 2)),
        b'f' => Ok((12, 2)),
        b't' => Ok((9, 2)),
        b'n' => Ok((10, 2)),
        b'r' => Ok((13, 2)),
        b'v' => Ok((11, 2)),
        byte if byte.is_ascii_alphanumeric() || !byte.is_ascii() => Err(refused(2)),
        byte => Ok((*byte, 2)),
    }
}

/// `\x41` or `\x{41}`.
fn hexadecimal(pattern: &[u8]) -> Option<(u8, usize)> {
    let (digits, length) = match pattern.get(2)? {
        b'{' => {
            let end = pattern.iter().position(|byte| *byte == b'}')?;
            (&pattern[3..end], end + 1)
        }
        _ => (pattern.get(2..4)?, 4),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let value = u32::from_str_radix(&text(digits), 16).ok()?;
    Some((u8::try_from(value).ok()?, length))
}

fn of(holds: impl FnMut(&u8) -> bool) -> Set {
    let mut holds = holds;
    std::array::from_fn(|byte| holds(&(byte as u8)))
}

fn negate_if(negate: bool, set: Set) -> Set {
    set.map(|holds| holds != negate)
}

fn add(set: &mut Set, more: &Set) {
    for (holds, more) in set.iter_mut().zip(more) {
        *holds |= more;
    }
}

fn fill(set: &mut Set, range: RangeInclusive<u8>) {
    range.for_each(|byte| set[usize::from(byte)] = true);
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}
