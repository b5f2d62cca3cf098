//! Statistics in a Table's status: few, and seldom, for every change of them is a write to the API server.
//!
//! **Invariants**: taken anew at most every [`PERIOD`] (`a_minute_lies_between`), so that the write of a status, which is a
//! reason to reconcile again, does not lead to the next; figures that did not change keep their time, and nothing is written
//! (`unchanged_figures_are_no_change`).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tablemount_api::stats::TableStats;

use crate::crd::StatsStatus;

/// The least time between two looks.
const PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// Whether statistics are to be looked at again.
pub(crate) fn are_due(known: Option<&StatsStatus>, at: Timestamp) -> bool {
    known.is_none_or(|known| {
        let age = at.duration_since(known.observed.0);
        // A clock that was set back does not stop the figures.
        age >= PERIOD || age.is_negative()
    })
}

/// The status for `stats` as seen at `at`.
pub(crate) fn status(stats: &TableStats, known: Option<StatsStatus>, at: Timestamp) -> StatsStatus {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let now = StatsStatus {
        observed: Time(at),
        size: size(stats.disk_bytes),
        disk_bytes: number(stats.disk_bytes),
        files: number(stats.files),
        estimated_rows: number(stats.estimated_rows),
        memtable_bytes: number(stats.memtable_bytes),
        estimated_debt_bytes: number(stats.estimated_debt_bytes),
    };
    let same = |known: &StatsStatus| {
        let observed = known.observed.clone();
        StatsStatus {
            observed,
            ..now.clone()
        } == *known
    };
    known.filter(same).unwrap_or(now)
}

/// Bytes with the largest unit that leaves at least 1, to a tenth: `1.2Gi`.
fn size(bytes: u64) -> String {
    let units = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let steps = bytes.max(1).ilog2() / 10;
    match units.get((steps as usize).wrapping_sub(1)) {
        Some(unit) => format!("{:.1}{unit}", bytes as f64 / (1_u64 << (10 * steps)) as f64),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("in range")
    }

    fn stats(disk_bytes: u64) -> TableStats {
        TableStats {
            table: tablemount_api::TableName::new("t").expect("valid"),
            disk_bytes,
            raw_bytes: 0,
            files: 1,
            memtable_bytes: 2,
            estimated_debt_bytes: 3,
            estimated_rows: 4,
            families: Vec::new(),
            tablets: Vec::new(),
        }
    }

    #[test]
    fn a_minute_lies_between() {
        let known = status(&stats(1), None, at(1000));
        assert!(are_due(None, at(1000)));
        for (second, due) in [(1000, false), (1059, false), (1060, true), (999, true)] {
            assert_eq!(are_due(Some(&known), at(second)), due, "{second}");
        }
    }

    #[test]
    fn unchanged_figures_are_no_change() {
        let known = status(&stats(1), None, at(1000));
        assert_eq!(
            (
                known.disk_bytes,
                known.files,
                known.memtable_bytes,
                known.estimated_debt_bytes
            ),
            (1, 1, 2, 3)
        );
        assert_eq!(status(&stats(1), Some(known.clone()), at(2000)), known);
        let changed = status(&stats(2), Some(known), at(2000));
        assert_eq!((changed.disk_bytes, changed.observed), (2, Time(at(2000))));
    }

    #[test]
    fn sizes_are_for_people() {
        let sizes = [
            0,
            1,
            1023,
            1024,
            1_048_575,
            5 << 20,
            1_288_490_189,
            u64::MAX,
        ]
        .map(size);
        assert_eq!(
            sizes,
            [
                "0", "1", "1023", "1.0Ki", "1024.0Ki", "5.0Mi", "1.2Gi", "16.0Ei"
            ]
        );
        assert_eq!(status(&stats(u64::MAX), None, at(0)).disk_bytes, i64::MAX);
    }
}
