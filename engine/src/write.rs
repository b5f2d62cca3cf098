//! Writes: check the whole request, then log each row under its lock, then wait until all is durable.
//!
//! **Invariants**: nothing is written unless every row of the request is legal; a row is one log record, so it is atomic; what
//! reads before it writes (check, increment, append, deletes limited to timestamps) holds the row's lock exclusively, sees up to
//! the last written mutation, and answers only when everything it read or wrote is durable.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tablemount_api::{
    Cell, FamilyInfo, FamilyName, MutateRequest, MutateResponse, Mutation, Qualifier, RowKey,
    RowMutation, RowResult, TableName, Timestamp, name,
};

use crate::row_update::RowUpdate;
use crate::storage::counters;
use crate::storage::log::{Entry, Op, Record};
use crate::storage::pressure::StallReason;
use crate::storage::store::Store;
use crate::storage::table::{Schema, Table};
use crate::storage::tablet::Tablet;
use crate::{Error, Result};

/// The most bytes that one row's mutation may log: the largest value and room for others. A group of the log takes more.
pub(crate) const MAX_ROW_BYTES: usize = 128 << 20;
/// How long a writer waits for flushes to make room.
const MEMORY_WAIT: Duration = Duration::from_secs(30);
/// What a mutation takes of memory beside its bytes, about.
const ENTRY_BYTES: usize = 128;

/// A request of at most so many rows and logged bytes is written by the task that brings it, while nothing must be waited for.
const INLINE_ROWS: usize = 16;
const INLINE_BYTES: usize = 64 << 10;

/// Whether a thread may wait: for a row's lock, a full group, the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waits {
    May,
    Never,
}

/// A request, checked, and what is done of it.
pub(crate) struct Plan {
    table: Arc<Table>,
    schema: Arc<Schema>,
    rows: Vec<PlannedRow>,
    done: Applied,
}

/// A row to write.
enum PlannedRow {
    /// Needs no reading.
    Plain(PlainRow),
    Update(RowMutation),
}

/// A row's log record, but for the time.
struct PlainRow {
    tablet: Arc<Tablet>,
    record: Record,
    /// The entries that take the server's time.
    untimed: Vec<usize>,
}

/// What became of a plan.
pub(crate) struct Applied {
    pub(crate) response: MutateResponse,
    /// Durable when this group is.
    pub(crate) group: u64,
    /// Why the rest of the rows was not written.
    pub(crate) failure: Option<Error>,
}

/// Checks, writes, waits.
pub(crate) async fn mutate(
    store: &Arc<Store>,
    table: &TableName,
    request: MutateRequest,
) -> Result<MutateResponse> {
    let plan = Plan::check(store, table, request)?;
    let applied = perform(store, plan).await?;
    applied.failure.map_or(Ok(applied.response), Err)
}

/// Writes the rows that can be written; for each whether it was, in their order. What is wrong with a row already stands in its
/// place.
pub(crate) async fn mutate_each(
    store: &Arc<Store>,
    table: Arc<Table>,
    rows: Vec<Result<RowMutation>>,
) -> Result<Vec<Result<()>>> {
    store.log()?;
    let schema = table.schema();
    let (mut outcomes, mut planned) = (Vec::with_capacity(rows.len()), Vec::new());
    for row in rows {
        let checked = row.and_then(|row| {
            check_row(&table, &schema, &row)?;
            PlannedRow::new(&table, &schema, row)
        });
        outcomes.push(checked.map(|row| planned.push(row)));
    }
    let plan = Plan {
        rows: planned,
        done: Applied::nothing(),
        schema,
        table,
    };
    let applied = perform(store, plan).await?;
    let written = applied.response.results.len();
    let mut failure = applied.failure;
    for outcome in outcomes
        .iter_mut()
        .filter(|outcome| outcome.is_ok())
        .skip(written)
    {
        *outcome = Err(failure.take().unwrap_or_else(|| {
            Error::Unavailable("not written, since a row before it failed".to_owned())
        }));
    }
    Ok(outcomes)
}

/// Reads a row under its lock, then changes it as `choose` says; returns whether it chose the first kind of change, and the
/// cells that increments and appends wrote. Durable when it returns.
pub(crate) async fn update_row(
    store: &Arc<Store>,
    table: Arc<Table>,
    row: RowKey,
    choose: impl FnOnce(&RowUpdate<'_>) -> Result<(bool, Vec<Mutation>)> + Send + 'static,
) -> Result<(bool, Vec<Cell>)> {
    store.log()?;
    // What it will write is not known yet; the least is an entry.
    let bytes = || (row.bytes().len() + ENTRY_BYTES) as u64;
    slow_down(store, std::iter::once(&**table.tablet(&row)), bytes).await;
    wait_for_memory(store).await?;
    let writer = store.clone();
    let update = move || {
        let schema = table.schema();
        let check = |row: &RowMutation| check_row(&table, &schema, row);
        let written = update(&writer, &table, &schema, &row, false, |update| {
            let (applied, mutations) = choose(update)?;
            let mutation = RowMutation {
                row: row.clone(),
                check: None,
                mutations,
            };
            if !mutation.mutations.is_empty() {
                check(&mutation)?;
            }
            Ok((applied, Cow::Owned(mutation.mutations)))
        })?;
        writer.log()?.ask(written.group);
        Ok::<_, Error>(written)
    };
    let written = tokio::task::spawn_blocking(update)
        .await
        .map_err(|error| Error::Io(format!("an update ended: {error}")))??;
    store.log()?.durable(written.group).await?;
    Ok((written.applied, written.cells))
}

/// Writes what was planned, and waits.
async fn perform(store: &Arc<Store>, mut plan: Plan) -> Result<Applied> {
    let table = plan.table.name.clone();
    let tablets = plan.rows.iter().map(|row| &**row.tablet(&plan.table));
    let bytes = || plan.rows.iter().map(PlannedRow::bytes).sum();
    slow_down(store, tablets, bytes).await;
    wait_for_memory(store).await?;
    let applied = if plan.is_small() && plan.advance(store, Waits::Never)? {
        plan.finish(store)?
    } else {
        let writer = store.clone();
        let applied = tokio::task::spawn_blocking(move || plan.apply(&writer)).await;
        applied.map_err(|error| Error::Io(format!("write to table \"{table}\": {error}")))??
    };
    store.log()?.durable(applied.group).await?;
    Ok(applied)
}

/// Holds the request back for a while where memtables fill or files pile up faster than the store works them off.
async fn slow_down<'a>(
    store: &Store,
    tablets: impl Iterator<Item = &'a Tablet>,
    bytes: impl FnOnce() -> u64,
) {
    let (delay, reason) = store.delay(tablets, bytes);
    if delay.is_zero() {
        return;
    }
    let flushed = store.work.flushed.notified();
    match reason {
        // Memory may be free before the time is over.
        StallReason::MemtablesFull => {
            drop(tokio::time::timeout(delay, flushed).await);
        }
        _ => tokio::time::sleep(delay).await,
    }
    counters::stalled(reason.as_str(), delay);
}

/// About what a row's update takes of memory.
fn update_bytes(row: &RowMutation) -> u64 {
    let mutations = row.mutations.iter().map(|mutation| match mutation {
        Mutation::Put {
            qualifier, value, ..
        }
        | Mutation::Append {
            qualifier, value, ..
        }
        | Mutation::Merge {
            qualifier, value, ..
        } => qualifier.bytes().len() + value.0.len(),
        _ => 0,
    });
    let each = row.row.bytes().len() + ENTRY_BYTES;
    mutations.map(|bytes| (bytes + each) as u64).sum()
}

async fn wait_for_memory(store: &Store) -> Result<()> {
    if !store.memtables_full() {
        return Ok(());
    }
    let started = Instant::now();
    let room = async {
        loop {
            let flushed = store.work.flushed.notified();
            if !store.memtables_full() {
                return;
            }
            store.wake(|work| work.flush = true);
            flushed.await;
        }
    };
    let waited = tokio::time::timeout(MEMORY_WAIT, room).await;
    counters::stalled(StallReason::MemtablesFull.as_str(), started.elapsed());
    waited.map_err(|_| {
        let (limit, seconds) = (store.options.memtable_budget_bytes, MEMORY_WAIT.as_secs());
        Error::Exhausted(format!("memtables hold more than their limit of {limit} bytes for {seconds} s: flushes do not keep up"))
    })
}

impl Plan {
    /// Checks the request against the table.
    pub(crate) fn check(store: &Store, table: &TableName, request: MutateRequest) -> Result<Self> {
        store.log()?;
        let table = store.table(table)?;
        let schema = table.schema();
        for row in &request.rows {
            check_row(&table, &schema, row)?;
        }
        let rows = request.rows.into_iter();
        let rows = rows.map(|row| PlannedRow::new(&table, &schema, row));
        Ok(Self {
            rows: rows.collect::<Result<_>>()?,
            done: Applied::nothing(),
            schema,
            table,
        })
    }

    /// Logs row after row, waiting where it must.
    pub(crate) fn apply(mut self, store: &Store) -> Result<Applied> {
        self.advance(store, Waits::May)?;
        self.finish(store)
    }

    /// Whether it is worth less than handing it to another thread.
    fn is_small(&self) -> bool {
        let bytes = |row: &PlannedRow| match row {
            PlannedRow::Plain(row) => row.record.bytes(),
            PlannedRow::Update(_) => 0,
        };
        self.rows.len() <= INLINE_ROWS && self.rows.iter().map(bytes).sum::<usize>() <= INLINE_BYTES
    }

    /// Logs rows from where it stopped. Returns false if the next would have to wait, and must not.
    fn advance(&mut self, store: &Store, waits: Waits) -> Result<bool> {
        let count = self.rows.len();
        while self.done.failure.is_none()
            && let Some(row) = self.rows.get_mut(self.done.response.results.len())
        {
            let written = match row {
                PlannedRow::Plain(row) => put(store, row, waits),
                PlannedRow::Update(_) if waits == Waits::Never => Ok(None),
                PlannedRow::Update(row) => {
                    let untimed = row.mutations.iter().any(brings_no_timestamp);
                    update(
                        store,
                        &self.table,
                        &self.schema,
                        &row.row,
                        untimed,
                        |update| {
                            let holds = row
                                .check
                                .as_ref()
                                .map_or(Ok(true), |check| update.holds(check))?;
                            let mutations: &[Mutation] = if holds { &row.mutations } else { &[] };
                            Ok((holds, Cow::Borrowed(mutations)))
                        },
                    )
                    .map(Some)
                }
            };
            match written {
                Ok(Some(written)) => self.done.add(written),
                Ok(None) => return Ok(false),
                Err(error) => {
                    let (table, key) = (&self.table.name, name::encode(row.key()));
                    let done = self.done.response.results.len();
                    let context = format!(
                        "table \"{table}\", row \"{key}\" ({done} of {count} rows were written before it)"
                    );
                    // What it read, and what the rows before it wrote, must be durable before the answer tells of it.
                    self.done.group = store.log()?.newest_group();
                    self.done.failure = Some(error.context(context));
                }
            }
        }
        Ok(true)
    }

    /// What was done, once no row is left or one failed.
    fn finish(self, store: &Store) -> Result<Applied> {
        store.log()?.ask(self.done.group);
        Ok(self.done)
    }
}

impl PlannedRow {
    fn new(table: &Table, schema: &Schema, row: RowMutation) -> Result<Self> {
        if reads(schema, &row) {
            return Ok(Self::Update(row));
        }
        let tablet = table.tablet(&row.row).clone();
        let mut entries = Vec::with_capacity(row.mutations.len());
        let mut untimed = Vec::new();
        for mutation in row.mutations {
            if brings_no_timestamp(&mutation) {
                untimed.push(entries.len());
            }
            push_plain(schema, mutation, Timestamp::MIN, &mut entries)?;
        }
        let record = record(&tablet, row.row.into_bytes(), entries);
        Ok(Self::Plain(PlainRow {
            tablet,
            record,
            untimed,
        }))
    }

    fn tablet<'a>(&'a self, table: &'a Table) -> &'a Arc<Tablet> {
        match self {
            Self::Plain(row) => &row.tablet,
            Self::Update(row) => table.tablet(&row.row),
        }
    }

    /// About what it takes of memory.
    fn bytes(&self) -> u64 {
        match self {
            Self::Plain(PlainRow { record, .. }) => {
                let each = record.row.len() + ENTRY_BYTES;
                (record.bytes() + record.entries.len() * each) as u64
            }
            Self::Update(row) => update_bytes(row),
        }
    }

    fn key(&self) -> &[u8] {
        match self {
            Self::Plain(row) => &row.record.row,
            Self::Update(row) => row.row.bytes(),
        }
    }
}

impl Applied {
    fn nothing() -> Self {
        let (results, timestamp) = (Vec::new(), None);
        Self {
            response: MutateResponse { results, timestamp },
            group: 0,
            failure: None,
        }
    }

    fn add(&mut self, written: Written) {
        self.group = self.group.max(written.group);
        self.response.timestamp = self.response.timestamp.max(written.timestamp);
        self.response.results.push(RowResult {
            applied: written.applied,
            cells: written.cells,
        });
    }
}

/// What became of one row.
struct Written {
    applied: bool,
    cells: Vec<Cell>,
    group: u64,
    /// The server's time, if the row was given it.
    timestamp: Option<Timestamp>,
}

/// A record that has no sequence number yet.
pub(crate) fn record(tablet: &Tablet, row: Bytes, entries: Vec<Entry>) -> Record {
    Record {
        tablet: tablet.id,
        first_sequence: 0,
        server_timestamp: tablet.server_timestamp(),
        row,
        entries,
    }
}

/// Logs a plain mutation. `None`: it would have to wait, and must not.
fn put(store: &Store, row: &mut PlainRow, waits: Waits) -> Result<Option<Written>> {
    let PlainRow {
        tablet,
        record,
        untimed,
    } = row;
    let _lock = match waits {
        Waits::May => store.lock_shared(tablet.id, &record.row),
        Waits::Never => match store.try_lock_shared(tablet.id, &record.row) {
            Some(lock) => lock,
            None => return Ok(None),
        },
    };
    // Under the lock: a read-modify-write that comes between has a time of its own order.
    let now = tablet.give_timestamp(store.clock.now());
    for entry in untimed.iter() {
        if let Op::Put { timestamp, .. } = &mut record.entries[*entry].op {
            *timestamp = now;
        }
    }
    record.server_timestamp = tablet.server_timestamp();
    let appended = match waits {
        Waits::May => Some(store.append(tablet, record)?),
        Waits::Never => store.try_append(tablet, record)?,
    };
    Ok(appended.map(|appended| Written {
        applied: true,
        cells: Vec::new(),
        group: appended.group,
        timestamp: (!untimed.is_empty()).then_some(now),
    }))
}

/// Runs a mutation that reads, under the row's exclusive lock: the one that `choose` decides for. `untimed`: the answer is to say
/// which time the server gave.
fn update<'m>(
    store: &Store,
    table: &Table,
    schema: &Schema,
    row: &RowKey,
    untimed: bool,
    choose: impl FnOnce(&RowUpdate<'_>) -> Result<(bool, Cow<'m, [Mutation]>)>,
) -> Result<Written> {
    let (tablet, key) = (table.tablet(row), row.bytes());
    let _lock = store.lock_exclusive(tablet.id, key);
    let now = store.clock.now();
    let given = tablet.give_timestamp(now);
    let mut update = RowUpdate::new(tablet.state(), schema, key, given, now);
    let (applied, mutations) = choose(&update)?;
    let timestamp = untimed.then_some(given);
    if mutations.is_empty() {
        // What was read may not be durable yet.
        let group = store.log()?.newest_group();
        return Ok(Written {
            applied,
            cells: Vec::new(),
            group,
            timestamp,
        });
    }
    for mutation in mutations.iter() {
        update.apply(mutation)?;
    }
    let (entries, cells) = update.finish();
    let mut record = record(tablet, key.clone(), entries);
    let group = store.append(tablet, &mut record)?.group;
    Ok(Written {
        applied,
        cells,
        group,
        timestamp,
    })
}

fn brings_no_timestamp(mutation: &Mutation) -> bool {
    matches!(
        mutation,
        Mutation::Put {
            timestamp: None,
            ..
        } | Mutation::Merge {
            timestamp: None,
            ..
        }
    )
}

/// Turns a mutation that needs no reading into entries.
pub(crate) fn push_plain(
    schema: &Schema,
    mutation: Mutation,
    now: Timestamp,
    entries: &mut Vec<Entry>,
) -> Result<()> {
    let mut push = |family: &FamilyName, op| -> Result<()> {
        entries.push(Entry {
            family: schema.family(family)?.id,
            op,
        });
        Ok(())
    };
    match mutation {
        Mutation::Put {
            family,
            qualifier,
            timestamp,
            value,
        } => {
            let timestamp = timestamp.unwrap_or(now);
            push(
                &family,
                Op::Put {
                    qualifier: qualifier.into_bytes(),
                    timestamp,
                    value: value.0,
                },
            )
        }
        Mutation::DeleteCell {
            family,
            qualifier,
            timestamp,
        } => push(
            &family,
            Op::DeleteCell {
                qualifier: qualifier.into_bytes(),
                timestamp,
            },
        ),
        Mutation::DeleteColumn {
            family,
            qualifier,
            min_timestamp,
            max_timestamp,
        } => {
            let (min, max) = (
                min_timestamp.unwrap_or(Timestamp::MIN),
                max_timestamp.unwrap_or(Timestamp::MAX),
            );
            push(
                &family,
                Op::DeleteColumn {
                    qualifier: qualifier.into_bytes(),
                    min,
                    max,
                },
            )
        }
        Mutation::DeleteFamily { family } => push(&family, Op::DeleteFamily),
        Mutation::DeleteRow {} => schema
            .record
            .families
            .iter()
            .try_for_each(|family| push(&family.schema.name, Op::DeleteFamily)),
        Mutation::Increment { .. } | Mutation::Append { .. } | Mutation::Merge { .. } => Err(
            Error::Invalid("increment, append and merge read before they write".to_owned()),
        ),
    }
}

/// Whether a row's mutation must read before it writes.
fn reads(schema: &Schema, row: &RowMutation) -> bool {
    row.check.is_some()
        || row
            .mutations
            .iter()
            .any(|mutation| mutation_reads(schema, mutation))
}

/// Whether a mutation must read: increments and appends; and deletes limited to timestamps where the GC rule counts versions,
/// since versions that it hides must not come back.
pub(crate) fn mutation_reads(schema: &Schema, mutation: &Mutation) -> bool {
    let counts = |family: &FamilyName| schema.family(family).is_ok_and(counts_versions);
    match mutation {
        Mutation::Increment { .. } | Mutation::Append { .. } | Mutation::Merge { .. } => true,
        Mutation::DeleteCell { family, .. } => counts(family),
        Mutation::DeleteColumn {
            family,
            min_timestamp,
            max_timestamp,
            ..
        } => (min_timestamp.is_some() || max_timestamp.is_some()) && counts(family),
        _ => false,
    }
}

fn counts_versions(family: &FamilyInfo) -> bool {
    family
        .schema
        .gc_rule
        .0
        .iter()
        .any(|clause| clause.max_versions.is_some())
}

fn check_row(table: &Table, schema: &Schema, row: &RowMutation) -> Result<()> {
    let count = row.mutations.len();
    if count == 0 || count > RowMutation::MAX_MUTATIONS {
        let (key, limit) = (name::encode(row.row.bytes()), RowMutation::MAX_MUTATIONS);
        return Err(Error::Invalid(format!(
            "row \"{key}\" has {count} mutations; a row takes 1 to {limit} at once"
        )));
    }
    if let Some(check) = &row.check {
        schema.family(&check.family)?;
    }
    let mut bytes = row.row.bytes().len();
    for mutation in &row.mutations {
        let (qualifier, value) = check_mutation(table, schema, mutation)?;
        let entries = match mutation {
            Mutation::DeleteRow {} => schema.record.families.len(),
            _ => 1,
        };
        bytes += entries * (qualifier + value + 64);
    }
    if bytes > MAX_ROW_BYTES {
        let key = name::encode(row.row.bytes());
        return Err(Error::TooLarge(format!(
            "row \"{key}\": mutations of {bytes} bytes; limit is {MAX_ROW_BYTES}"
        )));
    }
    Ok(())
}

/// Checks one mutation; returns its qualifier and its value's length.
pub(crate) fn check_mutation(
    table: &Table,
    schema: &Schema,
    mutation: &Mutation,
) -> Result<(usize, usize)> {
    let none = Qualifier::default();
    let (family, qualifier, value) = match mutation {
        Mutation::Put {
            family,
            qualifier,
            value,
            ..
        }
        | Mutation::Append {
            family,
            qualifier,
            value,
        }
        | Mutation::Merge {
            family,
            qualifier,
            value,
            ..
        } => (family, qualifier, value.0.len()),
        Mutation::Increment {
            family, qualifier, ..
        } => (family, qualifier, 8),
        Mutation::DeleteCell {
            family, qualifier, ..
        }
        | Mutation::DeleteColumn {
            family, qualifier, ..
        } => (family, qualifier, 0),
        Mutation::DeleteFamily { family } => (family, &none, 0),
        Mutation::DeleteRow {} => return Ok((0, 0)),
    };
    let family = schema.family(family)?;
    check_value(table.name.as_str(), family, value)?;
    check_aggregate(mutation, family, value)?;
    Ok((qualifier.bytes().len(), value))
}

/// Checks that cells of an aggregate family are merged into, and no others.
fn check_aggregate(mutation: &Mutation, family: &FamilyInfo, value: usize) -> Result<()> {
    let name = &family.schema.name;
    match (mutation, family.schema.aggregate) {
        (Mutation::Merge { .. }, None) => Err(Error::Invalid(format!(
            "column family \"{name}\" is not an aggregate family: nothing can be merged into its cells"
        ))),
        (Mutation::Merge { .. }, Some(_)) if value != 8 => Err(Error::Invalid(format!(
            "column family \"{name}\": input of {value} bytes; an integer has 8"
        ))),
        (Mutation::Put { .. } | Mutation::Increment { .. } | Mutation::Append { .. }, Some(_)) => {
            Err(Error::Invalid(format!(
                "column family \"{name}\" is an aggregate family: its cells are only merged into"
            )))
        }
        _ => Ok(()),
    }
}

/// Checks a value's length against its family's limit.
pub(crate) fn check_value(table: &str, family: &FamilyInfo, bytes: usize) -> Result<()> {
    let limit = family.schema.max_value_bytes;
    if bytes <= limit as usize {
        return Ok(());
    }
    let family = &family.schema.name;
    Err(Error::TooLarge(format!(
        "value of {bytes} bytes in table \"{table}\", column family \"{family}\"; limit is {limit} (maxValueBytes)"
    )))
}
