//! Points in time as people write them, for `--at` on the command line and `@at/…` in the filesystem.
//!
//! **Invariant**: one reading of a text everywhere: digits are microseconds since 1970, a date is the end of that day in UTC (so
//! that "at a day" includes the day), a time without an offset is UTC.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use thiserror::Error;

use crate::model::Timestamp;

/// A text that names no point in time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a time; give microseconds since 1970, a date such as 2008-07-02 (its end, UTC) or a time such as \
     2008-07-02T12:00:00Z"
)]
pub struct InvalidTime(String);

/// The newest timestamp that lies at or before the time `text` names.
pub fn parse_at(text: &str) -> Result<Timestamp, InvalidTime> {
    let invalid = || InvalidTime(text.chars().take(100).collect());
    if text
        .strip_prefix('-')
        .unwrap_or(text)
        .bytes()
        .all(|b| b.is_ascii_digit())
    {
        return text.parse().map(Timestamp).map_err(|_| invalid());
    }
    let time = match text.len() {
        10 => end_of_day(text),
        _ => text.parse().ok().or_else(|| in_utc(text.parse().ok()?)),
    };
    time.map(floor_micros).ok_or_else(invalid)
}

fn end_of_day(text: &str) -> Option<jiff::Timestamp> {
    let date: Date = text.parse().ok()?;
    in_utc(date.at(23, 59, 59, 999_999_999))
}

fn in_utc(time: DateTime) -> Option<jiff::Timestamp> {
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

fn floor_micros(time: jiff::Timestamp) -> Timestamp {
    // i128 nanoseconds of any year that jiff has, in microseconds, fit an i64.
    Timestamp(i64::try_from(time.as_nanosecond().div_euclid(1000)).unwrap_or(i64::MAX))
}

/// The time of `timestamp` in RFC 3339, or nothing if it lies outside the years -9999 to 9999.
pub fn rfc3339(timestamp: Timestamp) -> Option<String> {
    jiff::Timestamp::from_microsecond(timestamp.0)
        .ok()
        .map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_people_write() {
        let check =
            |text: &str, micros: i64| assert_eq!(parse_at(text), Ok(Timestamp(micros)), "{text}");
        check("15", 15);
        check("0", 0);
        check("-5", -5);
        check("1215000000000000", 1_215_000_000_000_000);
        check("1970-01-01", 86_399_999_999);
        check("1970-01-02T00:00:00Z", 86_400_000_000);
        check("1970-01-02T01:00:00+01:00", 86_400_000_000);
        check("1970-01-02T00:00:00", 86_400_000_000);
        check("1970-01-02 00:00:00.000001", 86_400_000_001);
        check("1970-01-01T00:00:00.0000019Z", 1);
        check("1969-12-31T23:59:59.9999999Z", -1);
    }

    #[test]
    fn what_is_no_time_is_named() {
        for bad in [
            "",
            "-",
            "x",
            "2008-13-01",
            "2008-07",
            "99999999999999999999",
            "1.5",
            "today",
            "2008-07-0é",
        ] {
            assert!(parse_at(bad).is_err(), "{bad}");
        }
        assert_eq!(
            parse_at("July").expect_err("no time").to_string(),
            "\"July\" is not a time; give microseconds since 1970, a date such as 2008-07-02 (its end, UTC) or a time such \
             as 2008-07-02T12:00:00Z"
        );
    }

    #[test]
    fn timestamps_are_shown_as_times() {
        assert_eq!(
            rfc3339(Timestamp(1_215_000_000_000_000)).as_deref(),
            Some("2008-07-02T12:00:00Z")
        );
        assert_eq!(rfc3339(Timestamp::MAX), None);
    }
}
