//! What group commit reaches of what the disk can do. A measurement, not a test:
//! `cargo test -p tablemount-engine --lib -- --ignored --nocapture group_commit`.

use std::sync::atomic::AtomicU64;
use std::time::Instant;

use super::*;
use crate::storage::disk::{Disk as _, LocalDisk, ZEROS};
use crate::{Config, Engine};

const TIME: Duration = Duration::from_secs(4);
/// A record of a 100 B value, its row and column.
const RECORD: usize = 180;

/// Syncs a second of a loop that appends `bytes` and syncs them.
fn bare(bytes: usize) -> f64 {
    let folder = tempfile::tempdir().expect("folder");
    let disk = LocalDisk::open(folder.path(), false).expect("open");
    let length = 32 << 20;
    let file = disk.create("segment", length).expect("create");
    for at in (0..length).step_by(ZEROS.len()) {
        file.write_at(at, &ZEROS).expect("write");
    }
    file.sync().expect("sync");
    let (group, start) = (vec![7; bytes], Instant::now());
    let mut syncs = 0;
    while start.elapsed() < TIME / 4 {
        let slots = length / bytes as u64;
        file.write_at(syncs % slots * bytes as u64, &group)
            .expect("write");
        file.sync().expect("sync");
        syncs += 1;
    }
    syncs as f64 / start.elapsed().as_secs_f64()
}

/// Seconds of processor time this process has used.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("stat");
    let after_name = stat.rsplit_once(')').expect("a name").1;
    let ticks = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks
        .map(|field| field.parse::<u64>().expect("ticks"))
        .sum();
    ticks as f64 / 100.0
}

async fn writer(engine: Engine, writer: usize, count: Arc<AtomicU64>, until: Instant) {
    let mut number = 0_u64;
    while Instant::now() < until {
        number += 1;
        let mutation = RowMutation {
            row: row(&format!("{writer:02}-{number:016}")),
            check: None,
            mutations: vec![put_now("f", "q", &"v".repeat(100))],
        };
        let rows = vec![mutation];
        engine
            .mutate(&table(), MutateRequest { rows })
            .await
            .expect("mutate");
        count.fetch_add(1, Ordering::Relaxed);
    }
}

async fn measure(writers: usize) {
    let folder = tempfile::tempdir().expect("folder");
    let engine = Engine::open(Config::new(folder.path()))
        .await
        .expect("open");
    let body = PutTable {
        families: vec![versions("f", 1)],
        ..PutTable::default()
    };
    engine.put_table(&table(), body).await.expect("put table");
    let syncs = async || engine.server_stats().await.expect("stats").log_syncs;
    let (before, processor, start) = (syncs().await, processor_seconds(), Instant::now());
    let count = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> = (0..writers)
        .map(|number| tokio::spawn(writer(engine.clone(), number, count.clone(), start + TIME)))
        .collect();
    for task in tasks {
        task.await.expect("writer");
    }
    let seconds = start.elapsed().as_secs_f64();
    let (count, syncs) = (
        count.load(Ordering::Relaxed) as f64,
        (syncs().await - before) as f64,
    );
    let processor = processor_seconds() - processor;
    let group = count / syncs;
    let bare = bare((group * RECORD as f64) as usize);
    println!(
        "{writers} writers: {:.0} puts/s, {:.0} syncs/s of {group:.1} rows, {:.1} us of processor a put; bare loop of such groups: {bare:.0} syncs/s",
        count / seconds,
        syncs / seconds,
        processor / count * 1e6,
    );
    engine.close().await.expect("close");
}

#[test]
#[ignore = "a measurement"]
fn group_commit_speed() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    for writers in [1, 8, 64, 256] {
        runtime.block_on(measure(writers));
    }
}
