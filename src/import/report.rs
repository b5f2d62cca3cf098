//! What the user sees of an import: a progress bar on a terminal, bad lines, the summary.
//!
//! **Invariant**: all bad lines are shown with number and reason, on a terminal the first [`SHOWN`]; all are counted.

use std::io::{IsTerminal as _, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};

use crate::exit;

/// How many bad lines are shown.
const SHOWN: u64 = 20;

/// Counts and shows; shared by the source's thread and the lanes.
pub(crate) struct Report {
    file: String,
    bar: ProgressBar,
    started: Instant,
    rows: Arc<AtomicU64>,
    bad: AtomicU64,
}

impl Report {
    /// For a file of `length` bytes, if that is known.
    pub(crate) fn new(file: String, length: Option<u64>) -> Self {
        let rows = Arc::new(AtomicU64::new(0));
        let bar = match std::io::stderr().is_terminal() {
            true => bar(length, Arc::clone(&rows)),
            false => ProgressBar::hidden(),
        };
        Self {
            file,
            bar,
            started: Instant::now(),
            rows,
            bad: AtomicU64::new(0),
        }
    }

    /// `input`, moving the bar as it is read.
    pub(crate) fn track<R: Read>(&self, input: R) -> impl Read + use<R> {
        self.bar.wrap_read(input)
    }

    /// Rows were acknowledged.
    pub(crate) fn written(&self, rows: u64) {
        self.rows.fetch_add(rows, Relaxed);
    }

    /// How many rows were acknowledged.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Relaxed)
    }

    /// How many lines were bad.
    pub(crate) fn bad_lines(&self) -> u64 {
        self.bad.load(Relaxed)
    }

    /// A line cannot be written.
    pub(crate) fn bad(&self, line: u64, reason: &str) {
        let before = self.bad.fetch_add(1, Relaxed);
        let all = !std::io::stderr().is_terminal();
        let message = match before {
            SHOWN if !all => "further bad lines are counted; 2> FILE takes all of them".to_owned(),
            n if n > SHOWN && !all => return,
            _ => format!("{} line {line}: {reason}", self.file),
        };
        self.bar.suspend(|| exit::report(&message));
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// `1,000,000 rows, 3 bad lines`.
    pub(crate) fn counts(&self) -> String {
        let (rows, bad) = (self.rows(), self.bad_lines());
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        let mut text = format!("{} row{}", HumanCount(rows), plural(rows));
        if bad > 0 {
            text.push_str(&format!(", {} bad line{}", HumanCount(bad), plural(bad)));
        }
        text
    }

    /// The counts with the time, and with the speed where that means something.
    pub(crate) fn summary(&self) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        let mut text = format!("{} in {seconds:.1} s", self.counts());
        if seconds >= 1.0 {
            let speed = HumanCount((self.rows() as f64 / seconds) as u64);
            text.push_str(&format!(", {speed} rows/s"));
        }
        text
    }
}

fn bar(length: Option<u64>, rows: Arc<AtomicU64>) -> ProgressBar {
    let (bar, template) = match length {
        Some(length) => (
            ProgressBar::new(length),
            "{bar:30} {percent:>3}%  {rows} rows  {binary_bytes_per_sec}  {eta} left",
        ),
        None => (
            ProgressBar::new_spinner(),
            "{spinner} {rows} rows  {binary_bytes}  {binary_bytes_per_sec}",
        ),
    };
    let count = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}", HumanCount(rows.load(Relaxed)));
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.with_key("rows", count));
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
