//! The store with its threads: writers slow down, stop and go on; closing is prompt; compactors give way.

use std::time::Instant;

use super::*;
use crate::storage::disk::LocalDisk;
use crate::storage::pressure::StallReason;
use crate::storage::workers::Workers;
use crate::write::mutate;

/// A store on a folder with its threads.
struct Running {
    store: Arc<Store>,
    workers: Workers,
    tablet: Arc<Tablet>,
}

impl Running {
    fn start(folder: &std::path::Path, options: Options) -> Self {
        let disk = Arc::new(LocalDisk::open(folder, false).expect("open"));
        let clock = Arc::new(crate::clock::SystemClock);
        let store = Arc::new(open::open(disk, clock, options, false).expect("open"));
        let body = PutTable {
            families: vec![versions("f", 1)],
            ..PutTable::default()
        };
        store.put_table(&table(), &body).expect("put table");
        let workers = Workers::start(&store).expect("threads");
        let (_, tablet) = store.tablets().remove(0);
        Self {
            store,
            workers,
            tablet,
        }
    }

    fn stop(&self) {
        self.store.stop();
        self.store.log().expect("log").close();
        self.workers.join();
    }
}

/// Polls a condition.
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

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
    let running = Running::start(folder.path(), options);
    let Running { store, tablet, .. } = &running;

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
    let mut slowed = false;
    wait("memory never fills", || {
        slowed |= store.stall_reason(tablet) == StallReason::MemtablesFull;
        store.memtables_full()
    });
    assert!(slowed, "a reason was told before memory was full");
    // The last 40 % of the budget cost 145 ns a byte on average.
    let filled = started.elapsed();
    assert!(filled > Duration::from_millis(150), "{filled:?}");
    assert_eq!(store.stall_reason(tablet), StallReason::MemtablesFull);
    let held = store.stats().memtable_bytes;
    assert!(held < BUDGET + BUDGET / 8, "{held}");

    release.send(()).expect("waits");
    for writer in writers {
        let written = runtime.block_on(writer).expect("runs");
        written.expect("every write succeeds");
    }
    blocker.join().expect("ends");
    running.stop();
    let keys = ReadRequest {
        cells: tablemount_api::CellContent::None,
        ..ReadRequest::default()
    };
    let lines = read_lines(store, &keys).expect("read");
    assert_eq!(
        lines.len() - 1,
        count * WRITERS,
        "all rows, and the page's end"
    );
}

/// Names and nice values of this process's threads.
fn threads() -> Vec<(String, i64)> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc");
    let read = |path: std::path::PathBuf| {
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        // Fields after the name, which may hold spaces: the 17th is the nice value.
        let nice = stat.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse();
        Some((name.trim().to_owned(), nice.ok()?))
    };
    tasks.filter_map(|task| read(task.ok()?.path())).collect()
}

#[test]
fn closing_does_not_wait_for_a_long_merge_and_compactors_give_way() {
    let runtime = tokio::runtime::Runtime::new().expect("runtime");
    let _runtime = runtime.enter();
    let folder = tempfile::tempdir().expect("tempdir");
    let mut options = options();
    // Four files of 256 KiB take half a minute.
    options.compaction_bytes_per_second = 64 << 10;
    let running = Running::start(folder.path(), options);
    let Running { store, tablet, .. } = &running;
    let (all, _) = store.tablets().remove(0);
    for file in 0..4 {
        for i in 0..256 {
            let written = runtime.block_on(mutate(store, &table(), request(file, i)));
            written.expect("written");
        }
        store.flush(&all, tablet).expect("flush");
    }
    wait("no merge begins", || store.jobs.lock().count() == 1);
    let nice = |name: &str| -> Vec<i64> {
        let named = threads().into_iter().filter(|(thread, _)| thread == name);
        named.map(|(_, nice)| nice).collect()
    };
    let compactors = nice("compactor");
    assert!(
        compactors.len() >= 2 && compactors.iter().all(|nice| *nice == 5),
        "{compactors:?}"
    );
    assert!(nice("flusher").iter().all(|nice| *nice < 10));
    let started = Instant::now();
    running.stop();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let files = store.table_stats(&all).files;
    assert_eq!(files, 4, "the merge was given up");
    let left = std::fs::read_dir(folder.path().join("tablets/00000001/sst/1")).expect("list");
    assert_eq!(left.count(), 4, "and left no file");
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
