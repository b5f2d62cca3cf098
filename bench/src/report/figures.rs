//! Which figures of which steps the comparison shows.

use serde_json::Value;

use crate::workload::Step;

/// A row: what of which step.
pub struct Row {
    pub text: &'static str,
    pub step: Step,
    pub figure: Figure,
}

/// What a row shows.
#[derive(Clone, Copy)]
pub enum Figure {
    /// Operations a second: the more, the better.
    Rate,
    /// The less, the better.
    Cost(fn(&Value) -> Option<f64>),
}

impl Figure {
    /// The figure in what a step answered.
    pub fn of(self, answer: &Value) -> Option<f64> {
        match self {
            Self::Rate => Some(answer["operations"].as_f64()? / answer["seconds"].as_f64()?),
            Self::Cost(cost) => cost(answer),
        }
    }
}

const fn rate(text: &'static str, step: Step) -> Row {
    let figure = Figure::Rate;
    Row { text, step, figure }
}

const fn cost(text: &'static str, step: Step, cost: fn(&Value) -> Option<f64>) -> Row {
    let figure = Figure::Cost(cost);
    Row { text, step, figure }
}

/// All rows.
pub const ROWS: &[Row] = &[
    rate(
        "bulk load within the memtables, unsynced¹, rows/s",
        Step::LoadBurst,
    ),
    rate(
        "bulk load within the memtables, synced, rows/s",
        Step::LoadBurstSynced,
    ),
    rate(
        "sustained bulk load, unsynced¹, rows/s",
        Step::LoadSustained,
    ),
    rate(
        "sustained bulk load, synced, rows/s",
        Step::LoadSustainedSynced,
    ),
    rate("durable puts, 64 writers, puts/s", Step::Puts64),
    rate("gets, 1 task, gets/s", Step::Get1),
    rate("gets, 16 tasks, gets/s", Step::Get16),
    rate("gets of absent keys, 1 task, gets/s", Step::GetAbsent),
    rate("scans of 100 rows, 1 task, scans/s", Step::Scan100),
    rate("full scan, rows/s", Step::ScanAll),
    rate("reverse scan, rows/s", Step::ScanReverse),
    cost("durable put, median, ms", Step::Puts64, |value| {
        millis(value, "p50Micros")
    }),
    cost("durable put, 99 %, ms", Step::Puts64, |value| {
        millis(value, "p99Micros")
    }),
    cost("reopening, ms", Step::Reopen, |value| {
        Some(value["seconds"].as_f64()? * 1e3)
    }),
    cost("flush and merge into one run, s", Step::Settle, |value| {
        value["seconds"].as_f64()
    }),
    cost("disk after that, MiB", Step::Settle, |value| {
        mib(value, "diskBytes")
    }),
    cost("RSS after the load, MiB", Step::LoadBurst, |value| {
        mib(value, "memoryBytes")
    }),
    cost(
        "RSS after reopening and all reads, MiB",
        Step::ScanReverse,
        |value| mib(value, "memoryBytes"),
    ),
    cost(
        "highest RSS of the sustained load, unsynced¹, MiB",
        Step::LoadSustained,
        |value| mib(value, "peakMemoryBytes"),
    ),
    cost(
        "highest RSS of the sustained load, synced, MiB",
        Step::LoadSustainedSynced,
        |value| mib(value, "peakMemoryBytes"),
    ),
    cost(
        "bytes written for each byte of the sustained load, synced",
        Step::LoadSustainedSynced,
        amplification,
    ),
    cost(
        "busy after the sustained load, synced, s",
        Step::LoadSustainedSynced,
        |value| value["busyAfterSeconds"].as_f64(),
    ),
];

fn millis(value: &Value, name: &str) -> Option<f64> {
    Some(value[name].as_f64()? / 1e3)
}

fn mib(value: &Value, name: &str) -> Option<f64> {
    Some(value[name].as_f64()? / f64::from(1 << 20))
}

fn amplification(value: &Value) -> Option<f64> {
    Some(value["writtenBytes"].as_f64()? / value["userBytes"].as_f64()?)
}
