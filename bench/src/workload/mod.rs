//! The rows of the comparison, as steps on one open subject.
//!
//! **Invariants**: a step runs for a given time or a given number of rows, whichever its doc names; after it the store's own
//! threads come to rest before the next subject's turn.

mod reads;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{self, Span};
use crate::subject::{Result, Subject};

/// How long a step waits for the store's own threads afterwards.
const IDLE_LIMIT: Duration = Duration::from_secs(300);

/// What the steps are given.
#[derive(Debug, Clone, clap::Args)]
pub struct Load {
    /// Rows loaded
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// How long each step of reads or durable puts runs
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    pub seconds: u64,
    /// How long a sustained load runs
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub sustained_seconds: u64,
    /// Writers of bulk loads
    #[arg(long, default_value_t = 4)]
    pub loaders: usize,
}

/// One row of the comparison, or a step between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Step {
    /// Bulk load that fits into the memtables, as each subject's users load
    LoadBurst,
    /// The same, each batch synced
    LoadBurstSynced,
    /// Flush and merge into one sorted run
    Settle,
    /// Close and open in a new process
    Reopen,
    /// Read every row once, so that the cache holds what it can
    Warm,
    /// Gets by one task
    Get1,
    /// Gets by 16 tasks
    Get16,
    /// Gets of absent keys by one task
    GetAbsent,
    /// Scans of 100 rows
    Scan100,
    /// Scans of all rows
    ScanAll,
    /// Scans of all rows from the highest key down
    ScanReverse,
    /// Durable puts by 64 writers
    Puts64,
    /// Bulk load for a given time, as each subject's users load
    LoadSustained,
    /// The same, each batch synced
    LoadSustainedSynced,
}

/// A subject between opening and closing, and what its steps are given.
pub struct Workload<S> {
    pub subject: Arc<S>,
    pub load: Load,
}

impl<S: Subject> Workload<S> {
    /// Runs a step: `operations`, `seconds`, `cpuSeconds`, memory, files, and what else the step has to tell.
    pub async fn run(&self, step: Step) -> Result<Value> {
        process::forget_peak()?;
        let (written, span) = (process::written()?, Span::start()?);
        let (operations, mut more) = match step {
            Step::LoadBurst => (self.burst(false).await?, json!({})),
            Step::LoadBurstSynced => (self.burst(true).await?, json!({})),
            Step::LoadSustained => self.sustained(false).await?,
            Step::LoadSustainedSynced => self.sustained(true).await?,
            Step::Settle => (self.settle().await?, json!({})),
            Step::Warm => (self.warm()?, json!({})),
            Step::Get1 => (self.gets(1).await?, json!({})),
            Step::Get16 => (self.gets(16).await?, json!({})),
            Step::GetAbsent => (self.absent_gets()?, json!({})),
            Step::Scan100 => (self.short_scans()?, json!({})),
            Step::ScanAll => (self.full_scans(false)?, json!({})),
            Step::ScanReverse => (self.full_scans(true)?, json!({})),
            Step::Puts64 => self.durable_puts().await?,
            Step::Reopen => return Err("a process does not reopen its own store".into()),
        };
        let (seconds, cpu, memory) = (span.elapsed(), span.cpu()?, process::memory()?);
        let answer = json!({
            "operations": operations,
            "seconds": seconds.as_secs_f64(),
            "cpuSeconds": cpu.as_secs_f64(),
            "memoryBytes": memory.now,
            "peakMemoryBytes": memory.peak,
            "busyAfterSeconds": process::idle(IDLE_LIMIT).await?.as_secs_f64(),
            "cpuSecondsWithBusyAfter": span.cpu()?.as_secs_f64(),
            "writtenBytes": process::written()? - written,
        });
        let files = self.subject.files().await?;
        more["files"] = files.count.into();
        more["diskBytes"] = files.bytes.into();
        Ok(merged(answer, more))
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.load.seconds)
    }

    async fn settle(&self) -> Result<u64> {
        self.subject.settle().await?;
        Ok(self.load.rows)
    }
}

/// The value that a share of sorted values does not exceed; 0 of none.
pub fn quantile(sorted: &[u64], share: f64) -> u64 {
    let place = (sorted.len() as f64 * share) as usize;
    sorted
        .get(place.min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0)
}

fn merged(mut answer: Value, more: Value) -> Value {
    if let (Value::Object(answer), Value::Object(more)) = (&mut answer, more) {
        answer.extend(more);
    }
    answer
}
