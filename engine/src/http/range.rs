//! The Range header of a value: one range of bytes (RFC 9110, section 14).

use axum::http::HeaderMap;
use axum::http::header::{IF_RANGE, RANGE};

/// Which bytes are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All: there is no range, or one that is to be ignored (several, another unit, malformed, or conditional).
    All,
    /// These, first to last exclusive; inside the value and not empty.
    Part(std::ops::Range<usize>),
    /// The range, as it was written, lies outside the value.
    Outside(String),
}

/// What the headers ask for of a value of `length` bytes.
pub(crate) fn asked(headers: &HeaderMap, length: usize) -> Asked {
    let text = headers
        .get(RANGE)
        .filter(|_| !headers.contains_key(IF_RANGE))
        .and_then(|value| value.to_str().ok());
    let Some((first, last)) = text.and_then(parse) else {
        return Asked::All;
    };
    let part = match (first, last) {
        (Some(first), last) => {
            first..last.map_or(length, |last| last.saturating_add(1).min(length))
        }
        (None, Some(suffix)) => length.saturating_sub(suffix)..length,
        (None, None) => return Asked::All,
    };
    if part.is_empty() {
        Asked::Outside(text.unwrap_or_default().to_owned())
    } else {
        Asked::Part(part)
    }
}

/// `bytes=first-last`, `bytes=first-` or `bytes=-suffix`.
fn parse(text: &str) -> Option<(Option<usize>, Option<usize>)> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    let number = |text: &str| match text {
        "" => Some(None),
        _ if !text.bytes().all(|byte| byte.is_ascii_digit()) => None,
        _ => Some(Some(text.parse().unwrap_or(usize::MAX))),
    };
    let (first, last) = (number(first)?, number(last)?);
    let ordered = first.zip(last).is_none_or(|(first, last)| first <= last);
    (unit.trim().eq_ignore_ascii_case("bytes") && ordered).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_bytes_is_understood() {
        let check = |text: &str, length, expected: Asked| {
            let mut headers = HeaderMap::new();
            headers.insert(RANGE, text.parse().expect("valid"));
            assert_eq!(asked(&headers, length), expected, "{text} of {length}");
        };
        let outside = |text: &str| Asked::Outside(text.to_owned());
        check("bytes=0-3", 10, Asked::Part(0..4));
        check("bytes=0-99", 10, Asked::Part(0..10));
        check("bytes=9-", 10, Asked::Part(9..10));
        check("Bytes=-3", 10, Asked::Part(7..10));
        check("bytes=-99", 10, Asked::Part(0..10));
        check("bytes=0-99999999999999999999999999", 10, Asked::Part(0..10));
        check("bytes=10-", 10, outside("bytes=10-"));
        check("bytes=0-0", 0, outside("bytes=0-0"));
        check("bytes=-0", 10, outside("bytes=-0"));
        for ignored in [
            "bytes=3-1",
            "bytes=-",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=0-1,3-4",
            "rows=0-1",
            "0-1",
        ] {
            check(ignored, 10, Asked::All);
        }
    }

    #[test]
    fn a_conditional_range_gives_all_since_values_have_no_validators() {
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, "bytes=0-1".parse().expect("valid"));
        headers.insert(IF_RANGE, "\"x\"".parse().expect("valid"));
        assert_eq!(asked(&headers, 10), Asked::All);
    }
}
