//! Names: the reversible text form of any byte string, of at most 255 bytes, for file names, the command line and manifests.
//!
//! - Printable UTF-8 stays. `%XX` (upper-case hex) stands for bytes ≤ 0x20, 0x7F, ``/ % " ' \ * ? [ $ ` ``, C1 controls,
//!   format and bidi characters, bytes that are not UTF-8, and for a leading `.`, `-`, `~`, `@` or `+`.
//! - Empty: `%empty`. Two or more escapes and hex no longer: `%x` and lower-case hex.
//! - Over 255 bytes: `%l<readable prefix>~<32 hex of SHA-256>~<length>`, which can be recognised but not reversed.
//!
//! **Invariants**: `decode(encode(b)) == b` for every `b` whose name is not long; `encode` is injective up to SHA-256;
//! `decode` accepts other spellings (an unescaped character, `%x` where escapes would do), whose canonical form is
//! `encode(decode(s))`. Proved by the property tests below.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// The longest name, which is also the longest file name (`NAME_MAX`).
pub const MAX_NAME_BYTES: usize = 255;

/// A name that stands for no byte string.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{name:?} is not a name: {reason}")]
pub struct InvalidName {
    name: String,
    reason: &'static str,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A byte string over 255 bytes as a name, known by its start and digest.
    Long(LongName),
}

/// A name too long to be written out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongName {
    /// The bytes it starts with.
    pub prefix: Vec<u8>,
    /// The bytes' length.
    pub length: usize,
    text: String,
}

impl LongName {
    /// Whether `bytes` is what the name stands for.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        bytes.len() == self.length && bytes.starts_with(&self.prefix) && encode(bytes) == self.text
    }
}

/// The canonical name of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "%empty".to_owned();
    }
    let (escaped, escapes) = escape(bytes);
    let hex_length = 2 + 2 * bytes.len();
    if escapes >= 2 && hex_length <= escaped.len() && hex_length <= MAX_NAME_BYTES {
        return format!("%x{}", hex(bytes));
    }
    if escaped.len() <= MAX_NAME_BYTES {
        return escaped;
    }
    long_name(bytes, &escaped)
}

/// The name of `bytes` whatever its length: the canonical one, or, where that would be a `%l` name, one that is written out.
/// [`decode_bytes`] reads it back. For what people read and type where no limit of a file name holds.
pub fn encode_whole(bytes: &[u8]) -> String {
    let name = encode(bytes);
    if !name.starts_with("%l") {
        return name;
    }
    let (escaped, escapes) = escape(bytes);
    if escapes >= 2 && 2 + 2 * bytes.len() <= escaped.len() {
        format!("%x{}", hex(bytes))
    } else {
        escaped
    }
}

/// What `name` stands for, in any spelling.
pub fn decode(name: &str) -> Result<Name, InvalidName> {
    let invalid = |reason| InvalidName {
        name: name.chars().take(300).collect(),
        reason,
    };
    if name.is_empty() {
        return Err(invalid("empty; the empty byte string is %empty"));
    }
    if name == "%empty" {
        return Ok(Name::Bytes(Vec::new()));
    }
    if let Some(hex) = name.strip_prefix("%x") {
        return unhex(hex)
            .map(Name::Bytes)
            .ok_or_else(|| invalid("after %x comes an even number of hex digits"));
    }
    if let Some(rest) = name.strip_prefix("%l") {
        return long(name, rest)
            .map(Name::Long)
            .ok_or_else(|| invalid("%l takes PREFIX~32 HEX DIGITS~LENGTH"));
    }
    unescape(name)
        .map(Name::Bytes)
        .ok_or_else(|| invalid("after % come two hex digits, or x, l, empty"))
}

/// The bytes `name` stands for, where a long name is of no use (command line, manifests).
pub fn decode_bytes(name: &str) -> Result<Vec<u8>, InvalidName> {
    match decode(name)? {
        Name::Bytes(bytes) => Ok(bytes),
        Name::Long(_) => Err(InvalidName {
            name: name.to_owned(),
            reason: "a %l name holds only a digest; give the whole key",
        }),
    }
}

fn long_name(bytes: &[u8], escaped: &str) -> String {
    let tail = format!("~{}~{}", hex(&Sha256::digest(bytes)[..16]), bytes.len());
    let room = MAX_NAME_BYTES - "%l".len() - tail.len();
    format!("%l{}{tail}", &escaped[..floor_whole(escaped, room)])
}

/// The largest cut at or below `at` that splits neither a character nor an escape.
fn floor_whole(escaped: &str, at: usize) -> usize {
    let cut = escaped.floor_char_boundary(at);
    match escaped[..cut].rfind('%') {
        Some(percent) if percent + 3 > cut => percent,
        _ => cut,
    }
}

fn long(name: &str, rest: &str) -> Option<LongName> {
    let (rest, length) = rest.rsplit_once('~')?;
    let (prefix, digest) = rest.rsplit_once('~')?;
    let prefix = unescape(prefix)?;
    (digest.len() == 32 && unhex(digest).is_some()).then_some(())?;
    Some(LongName {
        prefix,
        length: length.parse().ok()?,
        text: name.to_owned(),
    })
}

/// The text with escapes, and their number.
fn escape(bytes: &[u8]) -> (String, usize) {
    let mut text = String::with_capacity(bytes.len());
    let mut escapes = 0;
    let mut escape_all = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            let _ = write!(text, "%{byte:02X}");
            escapes += 1;
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let leading = text.is_empty() && ".-~@+".contains(c);
            if leading || is_escaped(c) {
                escape_all(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                text.push(c);
            }
        }
        escape_all(&mut text, chunk.invalid());
    }
    (text, escapes)
}

fn is_escaped(c: char) -> bool {
    matches!(
        c,
        '\0'..=' ' | '\u{7f}'..='\u{9f}' | '/' | '%' | '"' | '\'' | '\\' | '*' | '?' | '[' | '$' | '`'
        // Format, bidi, separator and filler characters: invisible, or they reorder what is around them.
        | '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{115f}' | '\u{1160}' | '\u{1680}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{3000}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(2)?;
        bytes.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = tail;
    }
    Some(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
        .collect()
}

fn digit(c: u8) -> Option<u8> {
    char::from(c).to_digit(16).map(|d| d as u8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_known_keys() {
        let check = |bytes: &[u8], name: &str| {
            assert_eq!(encode(bytes), name);
            assert_eq!(decode(name), Ok(Name::Bytes(bytes.to_vec())));
        };
        check(b"", "%empty");
        check(b"TT20080702120000", "TT20080702120000");
        check(b"a/b", "a%2Fb");
        check(b".", "%2E");
        check(b"..", "%2E.");
        check(b"a.b-c~d@e+f", "a.b-c~d@e+f");
        check(b"100%", "100%25");
        check(&42_u64.to_be_bytes(), "%x000000000000002a");
        check("Zürich".as_bytes(), "Zürich");
        check(b"a\nb", "a%0Ab");
        check(b"\xff", "%FF");
        check("a\u{202e}b".as_bytes(), "a%E2%80%AEb");
        check(b"%empty", "%25empty");
        check(b"-5", "%2D5");
    }

    #[test]
    fn other_spellings_mean_the_same() {
        for (spelling, bytes) in [
            ("%41", "A"),
            ("%x41", "A"),
            ("a%2fb", "a/b"),
            ("a b", "a b"),
            ("%xFF41", "\u{0}"),
        ] {
            let expected = if spelling == "%xFF41" {
                b"\xffA".to_vec()
            } else {
                bytes.as_bytes().to_vec()
            };
            assert_eq!(decode(spelling), Ok(Name::Bytes(expected)));
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for bad in [
            "", "%", "a%", "a%2", "%zz", "%x", "%x1", "%l", "%la~b~c", "%Empty",
        ] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn long_keys_are_recognised() {
        for key in [
            vec![b'k'; 65_536],
            vec![0; 300],
            "é".repeat(200).into_bytes(),
            b"~".repeat(256),
        ] {
            let name = encode(&key);
            assert!(
                name.len() <= MAX_NAME_BYTES && name.starts_with("%l"),
                "{name}"
            );
            let Ok(Name::Long(long)) = decode(&name) else {
                panic!("{name}")
            };
            assert!(long.matches(&key) && key.starts_with(&long.prefix));
            let mut other = key.clone();
            *other.last_mut().expect("not empty") ^= 1;
            assert!(!long.matches(&other));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let name = encode(&bytes);
            prop_assert!(name.len() <= MAX_NAME_BYTES);
            prop_assert!(!name.contains(['/', '\0', '\n']) && name != "." && name != "..");
            match decode(&name) {
                Ok(Name::Bytes(back)) => prop_assert_eq!(back, bytes),
                Ok(Name::Long(long)) => prop_assert!(long.matches(&bytes)),
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }

        #[test]
        fn whole_names_come_back_at_any_length(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(decode_bytes(&encode_whole(&bytes)), Ok(bytes));
        }

        #[test]
        fn any_text_comes_back(text in "\\PC{0,80}") {
            let name = encode(text.as_bytes());
            match decode(&name) {
                Ok(Name::Bytes(back)) => prop_assert_eq!(back, text.as_bytes()),
                Ok(Name::Long(long)) => prop_assert!(long.matches(text.as_bytes())),
                Err(error) => return Err(TestCaseError::fail(error.to_string())),
            }
        }

        #[test]
        fn decoding_never_panics_and_canonical_is_stable(text in "[%xl~0-9a-fA-F./\u{e9}]{0,300}") {
            if let Ok(Name::Bytes(bytes)) = decode(&text) {
                let canonical = encode(&bytes);
                if let Ok(Name::Bytes(back)) = decode(&canonical) {
                    prop_assert_eq!(back, bytes);
                }
            }
        }
    }
}
