//! Deletes of row ranges: one entry a family and tablet, however many rows.
//!
//! **Invariants**: it holds all rows' locks exclusively while it is logged, so no read-modify-write that began before it writes
//! what it read after it; each tablet's part is one log record; the answer comes when all are durable. Rows written later are not
//! touched, whatever their timestamps.

use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::{DeleteRows, RowKey, TableName};

use crate::storage::log::{Entry, Op};
use crate::storage::store::Store;
use crate::storage::table::Table;
use crate::storage::tablet::Tablet;
use crate::write::record;
use crate::{Error, Result};

/// Deletes the rows; durable when it returns.
pub(crate) async fn delete_rows(
    store: &Arc<Store>,
    table: &TableName,
    rows: DeleteRows,
) -> Result<()> {
    rows.validate()?;
    let (writer, table) = (store.clone(), store.table(table)?);
    let logged = tokio::task::spawn_blocking(move || log(&writer, &table, &rows)).await;
    let group = logged.map_err(|error| Error::Io(format!("delete rows: {error}")))??;
    store.log()?.durable(group).await
}

/// Logs the deletes; returns the group that must be durable.
pub(crate) fn log(store: &Store, table: &Table, rows: &DeleteRows) -> Result<u64> {
    let (from, to) = bounds(rows);
    let _all_rows = store.lock_all();
    let schema = table.schema();
    let mut group = 0;
    for tablet in &table.tablets {
        let Some((from, stop)) = clip(tablet, &from, to.as_ref()) else {
            continue;
        };
        let entry = |family: &tablemount_api::FamilyInfo| Entry {
            family: family.id,
            op: Op::DeleteRows { stop: stop.clone() },
        };
        let entries = schema.record.families.iter().map(entry).collect();
        let mut record = record(tablet, from, entries);
        group = store.append(tablet, &mut record)?.group.max(group);
    }
    store.log()?.ask(group);
    Ok(group)
}

/// The first row, and the first after the last; `None`: to the end.
fn bounds(rows: &DeleteRows) -> (Bytes, Option<Bytes>) {
    if let Some(prefix) = &rows.prefix {
        let mut next = prefix.0.to_vec();
        while next.pop_if(|last| *last == u8::MAX).is_some() {}
        let to = next.last_mut().map(|last| *last += 1);
        return (prefix.0.clone(), to.map(|()| next.into()));
    }
    let bytes = |key: &RowKey| key.bytes().clone();
    (
        rows.start.as_ref().map(bytes).unwrap_or_default(),
        rows.stop.as_ref().map(bytes),
    )
}

/// The part of the range that lies in the tablet.
fn clip(tablet: &Tablet, from: &Bytes, to: Option<&Bytes>) -> Option<(Bytes, Option<Bytes>)> {
    let start = tablet.start.as_ref().map(RowKey::bytes);
    let stop = tablet.stop.as_ref().map(RowKey::bytes);
    let from = start.map_or(from, |start| start.max(from));
    let to = match (stop, to) {
        (Some(stop), Some(to)) => Some(stop.min(to)),
        (stop, to) => stop.or(to),
    };
    to.is_none_or(|to| from < to)
        .then(|| (from.clone(), to.cloned()))
}
