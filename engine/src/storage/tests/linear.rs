//! Linearizability of columns: threads write and read the same few columns of a real engine while it flushes and merges; what
//! they were told must be right in some order that keeps to the times of calls and answers.
//!
//! A round is one history a column. It ends with a read that comes after all else, which fixes where the next begins.
//! `TABLEMOUNT_LINEAR_SEED` sets the first seed; when threads run is up to the machine, so a seed may need several runs.

mod checker;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tablemount_api::CellCheck;
use tokio::runtime::Runtime;

use self::checker::{Event, MAX_OPERATIONS, Operation, State, is_linearizable};
use super::*;
use crate::storage::random::Random;
use crate::{Config, Engine};

const TIME: Duration = Duration::from_secs(2);
const THREADS: u64 = 6;
const OPERATIONS: u64 = 16;
/// Row and qualifier; columns `n…` are numbers, `t…` texts.
const COLUMNS: [(&str, &str); 4] = [("a", "n"), ("a", "t"), ("b", "n"), ("b", "t")];
/// Of one column in a round, without the last read.
const MOST: usize = 40;
const _: () = assert!(MOST < MAX_OPERATIONS);
const _: () = assert!(THREADS * OPERATIONS <= (MOST * COLUMNS.len()) as u64);

/// An operation to do: the column's index, and what without its answer.
type Planned = (usize, Operation);

struct Subject {
    engine: Engine,
    runtime: Runtime,
    clock: AtomicU64,
}

fn number(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// Each thread's operations of a round. Values are unlike all others, but small sums.
fn plan(random: &mut Random, unique: &mut i64) -> Vec<Vec<Planned>> {
    let mut counts = [0; COLUMNS.len()];
    let mut operation = || {
        let mut column = random.below(COLUMNS.len() as u64) as usize;
        while counts[column] == MOST {
            column = (column + 1) % COLUMNS.len();
        }
        counts[column] += 1;
        *unique += 1;
        (column, planned(random, COLUMNS[column].1 == "n", *unique))
    };
    (0..THREADS)
        .map(|_| (0..OPERATIONS).map(|_| operation()).collect())
        .collect()
}

fn planned(random: &mut Random, is_number: bool, unique: i64) -> Operation {
    let value = match is_number {
        true => number(unique * 1_000_000),
        false => Bytes::from(format!("<{unique}>")),
    };
    match random.below(20) {
        0..2 => Operation::Put(value),
        2 => Operation::Delete,
        3..9 if is_number => Operation::Increment(1 + random.below(9) as i64, Bytes::new()),
        3..9 => Operation::Append(value, Bytes::new()),
        // Often right only for the first: columns are empty at times.
        9 => Operation::CheckAndPut(None, value, false),
        // On what the thread reads first.
        10..13 => Operation::CheckAndPut(Some(Bytes::new()), value, false),
        _ => Operation::Read(None),
    }
}

impl Subject {
    fn open(folder: &std::path::Path) -> Self {
        let runtime = Runtime::new().expect("runtime");
        let engine = runtime.block_on(Engine::open(Config::new(folder)));
        let engine = engine.expect("open");
        let body = PutTable {
            families: vec![versions("f", 1)],
            splits: vec![row("b")],
            ..PutTable::default()
        };
        let made = runtime.block_on(engine.put_table(&table(), body));
        made.expect("put table");
        Self {
            engine,
            runtime,
            clock: AtomicU64::new(0),
        }
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn get(&self, column: usize) -> State {
        let (key, q) = COLUMNS[column];
        let cell = self
            .engine
            .get(&table(), &row(key), &family("f"), &qualifier(q));
        cell.expect("get").map(|cell| cell.value)
    }

    /// One mutation of a column; whether it was applied, and the value it came to, if it tells.
    fn mutate(&self, column: usize, check: Option<State>, mutation: Mutation) -> (bool, Bytes) {
        let (key, q) = COLUMNS[column];
        let check = check.map(|value| CellCheck {
            family: family("f"),
            qualifier: qualifier(q),
            value: value.map(Base64),
        });
        let request = MutateRequest {
            rows: vec![RowMutation {
                row: row(key),
                check,
                mutations: vec![mutation],
            }],
        };
        let done = self.runtime.block_on(self.engine.mutate(&table(), request));
        let result = done.expect("mutate").results.remove(0);
        let cell = result.cells.into_iter().next();
        let value = cell
            .and_then(|cell| cell.value)
            .unwrap_or(Base64(Bytes::new()));
        (result.applied, value.0)
    }

    /// Does an operation; returns it with its answer.
    fn act(&self, column: usize, operation: Operation) -> Operation {
        let (family, qualifier) = (family("f"), qualifier(COLUMNS[column].1));
        let put = |value: &Bytes| Mutation::Put {
            family: family.clone(),
            qualifier: qualifier.clone(),
            timestamp: None,
            value: Base64(value.clone()),
        };
        match operation {
            Operation::Put(value) => {
                self.mutate(column, None, put(&value));
                Operation::Put(value)
            }
            Operation::Delete => {
                self.mutate(column, None, delete_column("f", COLUMNS[column].1));
                Operation::Delete
            }
            Operation::Increment(by, _) => {
                let mutation = increment("f", COLUMNS[column].1, by);
                Operation::Increment(by, self.mutate(column, None, mutation).1)
            }
            Operation::Append(tail, _) => {
                let value = Base64(tail.clone());
                let mutation = Mutation::Append {
                    family,
                    qualifier,
                    value,
                };
                Operation::Append(tail, self.mutate(column, None, mutation).1)
            }
            Operation::CheckAndPut(expected, value, _) => {
                let check = Some(expected.clone());
                let (applied, _) = self.mutate(column, check, put(&value));
                Operation::CheckAndPut(expected, value, applied)
            }
            Operation::Read(_) => Operation::Read(self.get(column)),
        }
    }

    fn record(&self, column: usize, operation: Operation) -> Event {
        let called = self.tick();
        let operation = self.act(column, operation);
        Event {
            called,
            answered: self.tick(),
            operation,
        }
    }

    /// One thread's operations; a check on what is there reads it first.
    fn run(&self, planned: Vec<Planned>) -> Vec<(usize, Event)> {
        let act = |(column, operation)| {
            let operation = match operation {
                Operation::CheckAndPut(Some(_), value, applied) => {
                    Operation::CheckAndPut(self.get(column), value, applied)
                }
                other => other,
            };
            (column, self.record(column, operation))
        };
        planned.into_iter().map(act).collect()
    }

    /// Runs all threads, and flushes and merges meanwhile; the histories by column.
    fn round(&self, plan: Vec<Vec<Planned>>, compact: bool) -> Vec<Vec<Event>> {
        let mut histories = vec![Vec::new(); COLUMNS.len()];
        std::thread::scope(|scope| {
            let run = |planned| scope.spawn(|| self.run(planned));
            let threads: Vec<_> = plan.into_iter().map(run).collect();
            if compact {
                let compacted = self.runtime.block_on(self.engine.compact(&table(), None));
                compacted.expect("compact");
            }
            for thread in threads {
                for (column, event) in thread.join().expect("a thread") {
                    histories[column].push(event);
                }
            }
        });
        for (column, history) in histories.iter_mut().enumerate() {
            history.push(self.record(column, Operation::Read(None)));
        }
        histories
    }
}

/// The same history, but that its last read saw another value.
fn falsified(history: &[Event]) -> Vec<Event> {
    let mut history = history.to_vec();
    if let Some(last) = history.last_mut() {
        last.operation = Operation::Read(Some(Bytes::from_static(b"never written")));
    }
    history
}

/// Rounds until the time is over; how many, how many operations, and how many of these overlapped with one before.
fn rounds(subject: &Subject, first_seed: u64) -> (u64, usize, usize) {
    let mut initial = vec![None; COLUMNS.len()];
    let (mut unique, mut seed, mut operations, mut overlaps) = (0, first_seed, 0, 0);
    let started = Instant::now();
    while started.elapsed() < TIME {
        let mut random = Random::new(seed);
        let plan = plan(&mut random, &mut unique);
        let histories = subject.round(plan, random.chance(50));
        for (column, history) in histories.iter().enumerate() {
            let begin = &initial[column];
            assert!(
                is_linearizable(begin, history),
                "TABLEMOUNT_LINEAR_SEED={seed}, column {:?} from {begin:?}: {history:#?}",
                COLUMNS[column]
            );
            assert!(!is_linearizable(begin, &falsified(history)));
            operations += history.len();
            overlaps += overlapping(history);
            initial[column] = subject.get(column);
        }
        seed += 1;
    }
    (seed - first_seed, operations, overlaps)
}

fn overlapping(history: &[Event]) -> usize {
    let overlaps = |event: &&Event| {
        let before = |other: &Event| other.called < event.called && event.called < other.answered;
        history.iter().any(before)
    };
    history.iter().filter(overlaps).count()
}

#[test]
fn columns_are_linearizable() {
    let folder = tempfile::tempdir().expect("tempdir");
    let subject = Subject::open(folder.path());
    let seed = std::env::var("TABLEMOUNT_LINEAR_SEED");
    let seed = seed.map_or(1, |text| text.parse().expect("a number"));
    let (rounds, operations, overlaps) = rounds(&subject, seed);
    println!("{rounds} rounds, {operations} operations, {overlaps} while another ran");
    assert!(overlaps > 0, "threads ran one after the other");
    let closed = subject.runtime.block_on(subject.engine.close());
    closed.expect("close");
}
