//! Hands lines out to four lanes and makes batches of them.
//!
//! **Invariant**: lines of one row go through one lane, in their order.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use anyhow::Context as _;
use tablemount_api::{Mutation, RowMutation, TableName};
use tablemount_client::Client;
use tokio::sync::mpsc;

use super::send::{Batch, Cell, Part, Target, lane};
use super::{Line, Report, Source};
use crate::cmd::put::LARGE_VALUE_BYTES;

const LANES: usize = 4;
const BATCH_ROWS: usize = 2_000;
const BATCH_BYTES: usize = 1 << 20;
/// What a cell takes in a request besides its bytes, roughly.
const CELL_BYTES: usize = 100;

/// Writes all lines of `source`; an error says why the import stopped before the end.
pub(crate) async fn load(
    client: Client,
    table: TableName,
    source: Box<dyn Source>,
    report: Arc<Report>,
) -> anyhow::Result<()> {
    let target = Target {
        client,
        table,
        report: Arc::clone(&report),
    };
    let mut lanes = tokio::task::JoinSet::new();
    let mut queues = Vec::with_capacity(LANES);
    for _ in 0..LANES {
        let (queue, batches) = mpsc::channel(1);
        queues.push(Queue {
            queue,
            parts: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
        });
        lanes.spawn(lane(target.clone(), batches));
    }
    let reader = tokio::task::spawn_blocking(move || read(source, queues, &report));
    let mut failed = None;
    while let Some(done) = lanes.join_next().await {
        if let Err(error) = done.context("lane")? {
            failed.get_or_insert(error);
        }
    }
    let read = reader.await.context("reader")?;
    failed.map_or(read, Err)
}

/// Hands the lines out. Ends early, without an error, when a lane has ended: that lane knows why.
fn read(
    mut source: Box<dyn Source>,
    mut queues: Vec<Queue>,
    report: &Report,
) -> anyhow::Result<()> {
    let hasher = RandomState::new();
    let end = loop {
        let (number, row) = match source.next() {
            Ok(Some(Line::Row { number, row })) => (number, row),
            Ok(Some(Line::Bad { number, reason })) => {
                report.bad(number, &reason);
                continue;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let lane = (hasher.hash_one(row.row.bytes()) % LANES as u64) as usize;
        if queues[lane].push(number, row).is_err() {
            return Ok(());
        }
    };
    // What was read before the file broke off is written too.
    for queue in &mut queues {
        let _ = queue.flush();
    }
    end
}

/// The lane has ended.
struct Ended;

/// A lane's batch in the making.
struct Queue {
    queue: mpsc::Sender<Batch>,
    parts: Vec<Part>,
    rows: Vec<RowMutation>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, line: u64, mut row: RowMutation) -> Result<(), Ended> {
        let large = take_large(&mut row);
        let key = row.row.clone();
        let mut rest = row.mutations;
        while !rest.is_empty() {
            let after = rest.split_off(rest.len().min(RowMutation::MAX_MUTATIONS));
            let last = after.is_empty() && large.is_empty();
            let row = RowMutation {
                row: key.clone(),
                check: None,
                mutations: rest,
            };
            self.add(Part { line, last }, row)?;
            rest = after;
        }
        let mut large = large.into_iter().peekable();
        while let Some(cell) = large.next() {
            // In its place: what was read before it is sent before it.
            self.flush()?;
            let last = large.peek().is_none();
            self.send(Batch::Value {
                part: Part { line, last },
                row: key.clone(),
                cell,
            })?;
        }
        Ok(())
    }

    fn add(&mut self, part: Part, row: RowMutation) -> Result<(), Ended> {
        self.bytes += weight(&row);
        self.parts.push(part);
        self.rows.push(row);
        if self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), Ended> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let parts = std::mem::take(&mut self.parts);
        let rows = std::mem::take(&mut self.rows);
        self.send(Batch::Rows { parts, rows })
    }

    fn send(&self, batch: Batch) -> Result<(), Ended> {
        self.queue.blocking_send(batch).map_err(|_| Ended)
    }
}

fn weight(row: &RowMutation) -> usize {
    let cells = row.mutations.iter().map(|mutation| match mutation {
        Mutation::Put {
            qualifier, value, ..
        } => qualifier.bytes().len() + value.0.len() + CELL_BYTES,
        _ => CELL_BYTES,
    });
    row.row.bytes().len() + cells.sum::<usize>()
}

/// Takes out the values that are too long for JSON.
fn take_large(row: &mut RowMutation) -> Vec<Cell> {
    let is_large = |mutation: &Mutation| matches!(mutation, Mutation::Put { value, .. } if value.0.len() > LARGE_VALUE_BYTES);
    if !row.mutations.iter().any(is_large) {
        return Vec::new();
    }
    let (large, small) = std::mem::take(&mut row.mutations)
        .into_iter()
        .partition(is_large);
    row.mutations = small;
    let cell = |mutation| match mutation {
        Mutation::Put {
            family,
            qualifier,
            timestamp,
            value,
        } => Some(Cell {
            family,
            qualifier,
            timestamp,
            value: value.0,
        }),
        _ => None,
    };
    Vec::into_iter(large).filter_map(cell).collect()
}

#[cfg(test)]
mod tests {
    use tablemount_api::{Base64, FamilyName, Qualifier, RowKey, Timestamp};

    use super::*;

    fn put(value_bytes: usize) -> Mutation {
        Mutation::Put {
            family: FamilyName::new("f").expect("name"),
            qualifier: Qualifier::default(),
            timestamp: Some(Timestamp(1)),
            value: Base64(vec![0; value_bytes].into()),
        }
    }

    fn pushed(mutations: Vec<Mutation>) -> Vec<(usize, bool)> {
        let (queue, mut batches) = mpsc::channel(100);
        let mut queue = Queue {
            queue,
            parts: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
        };
        let row = RowMutation {
            row: RowKey::new("r").expect("key"),
            check: None,
            mutations,
        };
        assert!(queue.push(1, row).is_ok() && queue.flush().is_ok());
        let mut sent = Vec::new();
        while let Ok(batch) = batches.try_recv() {
            match batch {
                Batch::Rows { rows, parts } => {
                    let of = |(row, part): (&RowMutation, &Part)| (row.mutations.len(), part.last);
                    sent.extend(rows.iter().zip(&parts).map(of));
                }
                Batch::Value { cell, part, .. } => sent.push((cell.value.len(), part.last)),
            }
        }
        sent
    }

    #[test]
    fn long_values_go_alone_and_after_the_rest() {
        let large = LARGE_VALUE_BYTES + 1;
        assert_eq!(
            pushed(vec![put(large), put(1), put(large)]),
            [(1, false), (large, false), (large, true)]
        );
        assert_eq!(pushed(vec![put(large)]), [(large, true)]);
        assert_eq!(pushed(vec![put(1), put(2)]), [(2, true)]);
    }

    #[test]
    fn rows_of_many_cells_are_split() {
        const MAX: usize = RowMutation::MAX_MUTATIONS;
        assert_eq!(pushed(vec![put(1); MAX]), [(MAX, true)]);
        assert_eq!(pushed(vec![put(1); MAX + 5]), [(MAX, false), (5, true)]);
    }
}
