//! Timestamps in files.

use anyhow::anyhow;
use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;

/// How timestamps are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    /// Microseconds, RFC 3339, or a date (its start, UTC).
    Any,
    /// As `strftime` would write them; without an offset in UTC, without a time of day at its start.
    Pattern(String),
}

impl TimeFormat {
    /// Microseconds since 1970, 0 or more.
    pub(crate) fn micros(&self, text: &[u8]) -> anyhow::Result<i64> {
        let refuse = || {
            anyhow!(
                "timestamp {:?} is not {}",
                String::from_utf8_lossy(text),
                self.describe()
            )
        };
        let text = str::from_utf8(text).map_err(|_| refuse())?;
        let micros = match self {
            Self::Any => any(text),
            Self::Pattern(pattern) => by_pattern(pattern, text),
        };
        micros.filter(|micros| *micros >= 0).ok_or_else(refuse)
    }

    fn describe(&self) -> String {
        match self {
            Self::Any => "microseconds since 1970, RFC 3339 or a date (name its form with --timestamp-format)".to_owned(),
            Self::Pattern(pattern) => format!("of the form {pattern:?}, or lies before 1970"),
        }
    }
}

fn any(text: &str) -> Option<i64> {
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok();
    }
    if text.len() == 10 {
        return in_utc(
            text.parse::<Date>()
                .ok()?
                .to_datetime(jiff::civil::Time::midnight()),
        );
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => Some(time.as_microsecond()),
        Err(_) => in_utc(text.parse().ok()?),
    }
}

fn by_pattern(pattern: &str, text: &str) -> Option<i64> {
    let parsed = BrokenDownTime::parse(pattern, text).ok()?;
    match parsed.to_timestamp() {
        Ok(time) => Some(time.as_microsecond()),
        Err(_) if parsed.offset().is_some() => None,
        Err(_) => in_utc(parsed.to_datetime().ok()?),
    }
}

fn in_utc(time: DateTime) -> Option<i64> {
    Some(
        time.to_zoned(TimeZone::UTC)
            .ok()?
            .timestamp()
            .as_microsecond(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_in_files() {
        let check = |format: &TimeFormat, text: &str, expected: i64| {
            assert_eq!(
                format.micros(text.as_bytes()).expect("time"),
                expected,
                "{text}"
            );
        };
        let day = 86_400_000_000;
        check(&TimeFormat::Any, "15", 15);
        check(&TimeFormat::Any, "1970-01-02", day);
        check(&TimeFormat::Any, "1970-01-02T00:00:01Z", day + 1_000_000);
        check(&TimeFormat::Any, "1970-01-02 00:00:01", day + 1_000_000);
        let pattern = |pattern: &str| TimeFormat::Pattern(pattern.to_owned());
        check(&pattern("%b %d %Y"), "Jan 2 1970", day);
        check(
            &pattern("%d.%m.%Y %H:%M"),
            "02.01.1970 00:01",
            day + 60_000_000,
        );
        check(
            &pattern("%Y-%m-%dT%H:%M:%S%z"),
            "1970-01-02T01:00:00+0100",
            day,
        );
        check(&pattern("%s"), "86400", day);
    }

    #[test]
    fn what_is_no_timestamp_is_named() {
        let check = |format: &TimeFormat, text: &str, expected: &str| {
            assert_eq!(
                format
                    .micros(text.as_bytes())
                    .expect_err("no time")
                    .to_string(),
                expected
            );
        };
        check(
            &TimeFormat::Any,
            "Jan 1 2000",
            "timestamp \"Jan 1 2000\" is not microseconds since 1970, RFC 3339 or a date (name its form with \
             --timestamp-format)",
        );
        check(
            &TimeFormat::Pattern("%Y".to_owned()),
            "x",
            "timestamp \"x\" is not of the form \"%Y\", or lies before 1970",
        );
    }
}
