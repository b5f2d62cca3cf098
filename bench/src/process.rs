//! What this process has used, from `/proc/self`: processor time, memory, bytes written.

use std::fs;
use std::time::{Duration, Instant};

use crate::subject::Result;

/// Ticks of `/proc/self/stat` a second: fixed in Linux's interface.
const TICKS: u64 = 100;
/// Idle is less than this share of a core.
const IDLE_SHARE: f64 = 0.1;
/// How long a look at idleness takes.
const IDLE_LOOK: Duration = Duration::from_millis(500);

/// User and system time of all threads so far.
pub fn cpu() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The command's name stands in parentheses and may hold anything; user and system time are the 12th and 13th after it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|ticks| ticks.parse::<u64>().ok())
        .sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS))
}

/// Resident memory now, and the most since [`forget_peak`].
pub fn memory() -> Result<Memory> {
    let status = fs::read_to_string("/proc/self/status")?;
    Ok(Memory {
        now: number(&status, "VmRSS:")? << 10,
        peak: number(&status, "VmHWM:")? << 10,
    })
}

/// Resident memory, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Now.
    pub now: u64,
    /// The most.
    pub peak: u64,
}

/// Lets the peak start again from what is resident now.
pub fn forget_peak() -> Result<()> {
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

/// Bytes that this process caused to be written to disks.
pub fn written() -> Result<u64> {
    number(&fs::read_to_string("/proc/self/io")?, "write_bytes:")
}

fn number(text: &str, name: &str) -> Result<u64> {
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let value = value.ok_or_else(|| format!("/proc/self does not tell {name}"))?;
    Ok(value.parse()?)
}

/// What was used between two moments.
pub struct Span {
    started: Instant,
    cpu: Duration,
}

impl Span {
    /// Starts.
    pub fn start() -> Result<Self> {
        let cpu = cpu()?;
        Ok(Self {
            started: Instant::now(),
            cpu,
        })
    }

    /// Time passed.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Processor time used.
    pub fn cpu(&self) -> Result<Duration> {
        Ok(cpu()?.saturating_sub(self.cpu))
    }
}

/// Waits until the store's own threads have nothing to do, but no longer than `limit`; returns how long they had.
pub async fn idle(limit: Duration) -> Result<Duration> {
    let started = Instant::now();
    loop {
        let (busy_until, look) = (started.elapsed(), Span::start()?);
        tokio::time::sleep(IDLE_LOOK).await;
        let share = look.cpu()?.as_secs_f64() / look.elapsed().as_secs_f64();
        if share < IDLE_SHARE || started.elapsed() > limit {
            return Ok(busy_until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_what_is_used() {
        let before = memory().unwrap().now;
        let block = vec![1_u8; 64 << 20];
        let after = memory().unwrap();
        assert!(after.now >= before + (60 << 20), "{before} {after:?}");
        assert!(after.peak >= after.now);
        drop(block);
    }

    #[test]
    fn a_busy_thread_is_seen() {
        let span = Span::start().unwrap();
        let mut sum = 0_u64;
        while span.elapsed() < Duration::from_millis(200) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(span.cpu().unwrap() > Duration::from_millis(20), "{sum}");
    }

    #[test]
    fn names_are_found_in_proc() {
        assert_eq!(number("a: 1\nVmRSS:\t  12 kB\n", "VmRSS:").unwrap(), 12);
        assert!(number("a: 1", "b:").is_err());
    }
}
