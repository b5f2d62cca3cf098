//! Steps that write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Workload, quantile};
use crate::rows::{Order, ROW_BYTES};
use crate::subject::{Result, Subject};
use crate::writers;

/// Rows of a batch of a bulk load.
const BATCH: u64 = 100;
/// Writers of durable puts.
const PUT_WRITERS: usize = 64;
/// Rows that a load without end draws its keys from.
const MANY_ROWS: u64 = 1 << 32;
/// How often a sustained load is looked at.
const WINDOW: Duration = Duration::from_secs(10);

impl<S: Subject> Workload<S> {
    pub(super) async fn burst(&self, sync: bool) -> Result<u64> {
        let (order, rows) = (Order::of_load(self.load.rows), self.load.rows);
        let next = Arc::new(AtomicU64::new(0));
        let loaders = writers::run::<S, _, _>(self.load.loaders, |_| {
            let (subject, next) = (self.subject.clone(), next.clone());
            async move {
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= rows {
                        return Ok(());
                    }
                    let places = first..(first + BATCH).min(rows);
                    let batch: Vec<_> = places.map(|place| order.row(place)).collect();
                    subject.write(&batch, sync).await?;
                }
            }
        });
        loaders.await?;
        Ok(rows)
    }

    pub(super) async fn durable_puts(&self) -> Result<(u64, Value)> {
        let (order, loaded) = (Order::of_load(MANY_ROWS), self.load.rows);
        let (next, stop) = (Arc::new(AtomicU64::new(0)), Instant::now() + self.time());
        let puts = writers::run::<S, _, _>(PUT_WRITERS, |_| {
            let (subject, next) = (self.subject.clone(), next.clone());
            async move {
                let mut micros = Vec::new();
                while Instant::now() < stop {
                    let row = loaded + order.row(next.fetch_add(1, Ordering::Relaxed));
                    let started = Instant::now();
                    subject.write(&[row], true).await?;
                    micros.push(started.elapsed().as_micros() as u64);
                }
                Ok(micros)
            }
        });
        let mut micros = puts.await?.concat();
        micros.sort_unstable();
        let latencies = json!({
            "p50Micros": quantile(&micros, 0.5),
            "p99Micros": quantile(&micros, 0.99),
        });
        Ok((micros.len() as u64, latencies))
    }

    pub(super) async fn sustained(&self, sync: bool) -> Result<(u64, Value)> {
        let time = Duration::from_secs(self.load.sustained_seconds);
        let (order, next) = (Order::of_load(MANY_ROWS), Arc::new(AtomicU64::new(0)));
        let stop = Instant::now() + time;
        let loaders = writers::run::<S, _, _>(self.load.loaders, |_| {
            let (subject, next) = (self.subject.clone(), next.clone());
            async move {
                while Instant::now() < stop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    let places = first..first + BATCH;
                    let batch: Vec<_> = places.map(|place| order.row(place)).collect();
                    subject.write(&batch, sync).await?;
                }
                Ok(())
            }
        });
        let (loaded, windows) = tokio::join!(loaders, self.windows(&next, stop));
        loaded?;
        let rows = next.load(Ordering::Relaxed);
        let more = json!({ "windows": windows?, "userBytes": rows * ROW_BYTES });
        Ok((rows, more))
    }

    /// Rows a second, files and debt, every ten seconds until the load stops.
    async fn windows(&self, rows: &AtomicU64, stop: Instant) -> Result<Vec<Value>> {
        let (mut windows, mut before) = (Vec::new(), 0);
        while Instant::now() < stop {
            let started = Instant::now();
            tokio::time::sleep_until((started + WINDOW).min(stop).into()).await;
            let now = rows.load(Ordering::Relaxed);
            let files = self.subject.files().await?;
            windows.push(json!({
                "rowsPerSecond": (now - before) as f64 / started.elapsed().as_secs_f64(),
                "files": files.count,
                "diskBytes": files.bytes,
                "debtBytes": files.debt_bytes,
            }));
            before = now;
        }
        Ok(windows)
    }
}
