//! What this process has used, from `/proc/self`: processor time, memory, bytes written.

use std::fs;
use std::time::{Duration, Instant};

use crate::subject::Result;

/// Ticks of `/proc/self/stat` a second: fixed in Linux's interface.
const TICKS: u64 = 100;
/// Idle is less than this share of a core.
const IDLE_SHARE: f64 = 0.1;
/// And writes fewer bytes than this in a look: a compaction that is held back computes little.
const IDLE_BYTES: u64 = 1 << 20;
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

/// Threads that run, wait for a core or wait for a disk, this one excepted.
fn busy_threads() -> Result<usize> {
    let me = fs::read_link("/proc/thread-self")?;
    let mut busy = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?;
        // A thread may end before it is looked at.
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
        if me.file_name() != Some(&task.file_name()) && state.starts_with(['R', 'D']) {
            busy += 1;
        }
    }
    Ok(busy)
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

/// Waits until the store's own threads neither compute nor write, but no longer than `limit`; returns how long they did.
pub async fn idle(limit: Duration) -> Result<Duration> {
    let (started, mut busy) = (Instant::now(), Duration::ZERO);
    loop {
        let (look, written_before) = (Span::start()?, written()?);
        tokio::time::sleep(IDLE_LOOK).await;
        let share = look.cpu()?.as_secs_f64() / look.elapsed().as_secs_f64();
        let rests =
            share < IDLE_SHARE && written()? - written_before < IDLE_BYTES && busy_threads()? == 0;
        if rests || started.elapsed() > limit {
            return Ok(busy);
        }
        busy = started.elapsed();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

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
    fn threads_that_want_to_run_are_counted() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let started = Instant::now();
            while busy_threads().unwrap() == 0 && started.elapsed() < Duration::from_secs(10) {}
            let busy = busy_threads().unwrap();
            stop.store(true, Ordering::Relaxed);
            assert!(busy > 0);
        });
    }

    #[test]
    fn names_are_found_in_proc() {
        assert_eq!(number("a: 1\nVmRSS:\t  12 kB\n", "VmRSS:").unwrap(), 12);
        assert!(number("a: 1", "b:").is_err());
    }
}
