//! Writers against a store whose flushes stand still: they slow down, stop at the budget, and go on when there is room.

use std::time::Instant;

use super::*;
use crate::storage::disk::LocalDisk;
use crate::storage::pressure::StallReason;
use crate::storage::workers::Workers;
use crate::write::mutate;

const BUDGET: u64 = 4 << 20;
const WRITERS: usize = 8;

fn request(writer: usize, i: usize) -> MutateRequest {
    MutateRequest {
        rows: vec![RowMutation {
            row: row(&format!("{writer}-{i:05}")),
            check: None,
            mutations: vec![put("f", "q", 1, &"v".repeat(1000))],
        }],
    }
}

#[test]
fn writers_slow_down_before_they_stop_and_lose_nothing() {
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let _runtime = runtime.enter();
    let folder = tempfile::tempdir().expect("tempdir");
    let mut options = options();
    options.memtable_budget_bytes = BUDGET;
    options.log_budget_bytes = 64 << 20;
    let disk = Arc::new(LocalDisk::open(folder.path(), false).expect("open"));
    let clock = Arc::new(crate::clock::SystemClock);
    let opened = open::open(disk, clock, options, false).expect("open");
    let store = Arc::new(opened);
    let body = PutTable {
        families: vec![versions("f", 1)],
        ..PutTable::default()
    };
    store.put_table(&table(), &body).expect("put table");
    let workers = Workers::start(&store).expect("threads");
    let (_, tablet) = store.tablets().remove(0);

    let (started, blocked) = (Instant::now(), tablet.clone());
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (locked, is_locked) = std::sync::mpsc::channel::<()>();
    let blocker = std::thread::spawn(move || {
        let _no_flush = blocked.flushing.lock();
        locked.send(()).expect("waits");
        released.recv().expect("sent");
    });
    is_locked.recv().expect("locked");
    // Twice what the budget takes.
    let count = 2 * BUDGET as usize / 1000 / WRITERS;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                for i in 0..count {
                    mutate(&store, &table(), request(writer, i)).await?;
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    let deadline = started + Duration::from_secs(60);
    let mut slowed = false;
    while !store.memtables_full() {
        slowed |= store.stall_reason(&tablet) == StallReason::MemtablesFull;
        assert!(Instant::now() < deadline, "memory never fills");
        std::thread::yield_now();
    }
    assert!(slowed, "a reason was told before memory was full");
    // The last 40 % of the budget cost 145 ns a byte on average.
    let filled = started.elapsed();
    assert!(filled > Duration::from_millis(150), "{filled:?}");
    assert_eq!(store.stall_reason(&tablet), StallReason::MemtablesFull);
    let held = store.stats().memtable_bytes;
    assert!(held < BUDGET + BUDGET / 8, "{held}");

    release.send(()).expect("waits");
    for writer in writers {
        let written = runtime.block_on(writer).expect("runs");
        written.expect("every write succeeds");
    }
    blocker.join().expect("ends");
    store.stop();
    store.log().expect("log").close();
    workers.join();
    let keys = ReadRequest {
        cells: tablemount_api::CellContent::None,
        ..ReadRequest::default()
    };
    let lines = read_lines(&store, &keys).expect("read");
    assert_eq!(
        lines.len() - 1,
        count * WRITERS,
        "all rows, and the page's end"
    );
}

#[test]
fn a_tablet_with_many_files_slows_its_writers_down() {
    let subject = Subject::new(vec![versions("f", 1)]);
    let (_, tablet) = subject.store.tablets().remove(0);
    let delay = |subject: &Subject| {
        let tablets = subject.store.tablets();
        let tablets = tablets.iter().map(|(_, tablet)| &**tablet);
        subject.store.delay(tablets, || 100_000)
    };
    for i in 0..30 {
        subject.write("r", vec![put("f", "q", i, "v")]);
        subject.flush();
        if i < 20 {
            assert_eq!(delay(&subject), (Duration::ZERO, StallReason::None));
        }
    }
    let (time, reason) = delay(&subject);
    assert_eq!(reason, StallReason::CompactionDebt);
    assert!(time > Duration::from_millis(1), "{time:?}");
    assert_eq!(
        subject.store.stall_reason(&tablet),
        StallReason::CompactionDebt
    );
    while let Some(merge) = subject.store.next_merge(None) {
        subject.store.merge(&merge).expect("merge");
    }
    assert_eq!(delay(&subject), (Duration::ZERO, StallReason::None));
    assert_eq!(subject.store.stall_reason(&tablet), StallReason::None);
}
