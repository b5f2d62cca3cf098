//! Steps that read.
//!
//! **Invariants**: every value read is checked against its key, and every scan against the rows that it must have visited, so a
//! subject that answers wrongly fails its benchmark.

use std::time::Instant;

use super::Workload;
use crate::rows::{self, Order, Random};
use crate::subject::{Result, Scan, Subject};

/// Rows of a short scan.
const SHORT_SCAN: u64 = 100;

impl<S: Subject> Workload<S> {
    pub(super) fn warm(&self) -> Result<u64> {
        let order = Order::of_reads(self.load.rows);
        for place in 0..self.load.rows {
            check_get(&*self.subject, order.row(place))?;
        }
        Ok(self.load.rows)
    }

    pub(super) async fn gets(&self, tasks: u64) -> Result<u64> {
        let (order, rows) = (Order::of_reads(self.load.rows), self.load.rows);
        let stop = Instant::now() + self.time();
        let readers: Vec<_> = (0..tasks)
            .map(|task| {
                let subject = self.subject.clone();
                tokio::spawn(async move {
                    let (first, mut done) = (task * (rows / tasks), 0);
                    while Instant::now() < stop {
                        for place in first + done..first + done + 64 {
                            check_get(&*subject, order.row(place))?;
                        }
                        done += 64;
                        // There are more tasks than threads.
                        tokio::task::yield_now().await;
                    }
                    Result::Ok(done)
                })
            })
            .collect();
        let mut gets = 0;
        for reader in readers {
            gets += reader.await??;
        }
        Ok(gets)
    }

    pub(super) fn absent_gets(&self) -> Result<u64> {
        let order = Order::of_reads(self.load.rows);
        let (stop, mut gets) = (Instant::now() + self.time(), 0);
        while Instant::now() < stop {
            for place in gets..gets + 64 {
                let key = rows::absent_key(order.row(place));
                if let Some(row) = self.subject.get(&key)? {
                    return Err(format!("an absent key has the value of row {row}").into());
                }
            }
            gets += 64;
        }
        Ok(gets)
    }

    pub(super) fn short_scans(&self) -> Result<u64> {
        let mut random = Random::new(3);
        let starts = self.load.rows.saturating_sub(SHORT_SCAN) + 1;
        let (stop, mut scans) = (Instant::now() + self.time(), 0);
        while Instant::now() < stop {
            let first = random.below(starts);
            let key = rows::key(first);
            let scan = Scan {
                from: Some(&key),
                reverse: false,
                rows: SHORT_SCAN,
            };
            check_scan(
                &*self.subject,
                scan,
                first..(first + SHORT_SCAN).min(self.load.rows),
            )?;
            scans += 1;
        }
        Ok(scans)
    }

    pub(super) fn full_scans(&self, reverse: bool) -> Result<u64> {
        let scan = Scan {
            from: None,
            reverse,
            rows: u64::MAX,
        };
        let (stop, mut rows) = (Instant::now() + self.time(), 0);
        while rows == 0 || Instant::now() < stop {
            check_scan(&*self.subject, scan, 0..self.load.rows)?;
            rows += self.load.rows;
        }
        Ok(rows)
    }
}

/// Gets a row and checks what comes.
fn check_get<S: Subject>(subject: &S, row: u64) -> Result<()> {
    match subject.get(&rows::key(row))? {
        Some(found) if found == row => Ok(()),
        found => Err(format!("the get of row {row} answered {found:?}").into()),
    }
}

/// Scans, and checks that just these rows came.
fn check_scan<S: Subject>(subject: &S, scan: Scan<'_>, rows: std::ops::Range<u64>) -> Result<()> {
    let (mut count, mut sum) = (0, 0_u64);
    subject.scan(scan, &mut |_, value| {
        count += 1;
        sum = sum.wrapping_add(rows::row_of(value).unwrap_or(u64::MAX));
    })?;
    let expected_count = rows.end - rows.start;
    let expected_sum = rows.fold(0, u64::wrapping_add);
    if (count, sum) != (expected_count, expected_sum) {
        let text = format!(
            "a scan visited {count} rows with sum {sum}; expected {expected_count} with {expected_sum}"
        );
        return Err(text.into());
    }
    Ok(())
}
