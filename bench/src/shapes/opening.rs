//! Opening a large store, part of which is only in the commit log, as after a crash.

use std::path::Path;
use std::time::Instant;

use tablemount_api::{MutateRequest, Qualifier, RowKey};

use super::world::{World, row, value};
use super::{Figure, Options};
use crate::process;
use crate::rows::{self, KEY_BYTES, Order};
use crate::subject::Result;

const VALUE_BYTES: usize = 1000;
/// Bytes of a row as its writer counts them.
const ROW_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;
/// Rows of one request.
const BATCH: u64 = 100;

/// Fills the store, closes it, opens it, writes what only the log is to have, and ends without closing.
pub async fn load(options: &Options, store: &Path) -> Result<Vec<Figure>> {
    let (total, logged) = (requests(options.open_mib), requests(options.log_mib));
    let flushed = total.saturating_sub(logged);
    let order = Order::of_load(total * BATCH);
    let world = World::open(&options.setup, store).await?;
    let time = fill(&world, order, 0, flushed).await?;
    let rate = (flushed * BATCH * ROW_BYTES) as f64 / f64::from(1 << 20) / time;
    world.engine.close().await?;
    drop(world);
    let world = World::open(&options.setup, store).await?;
    fill(&world, order, flushed, total - flushed).await?;
    let (server, table) = (
        world.engine.server_stats().await?,
        world.engine.table_stats(&world.table).await?,
    );
    // As if the process were killed: the log's end stays as it is.
    std::mem::forget(world);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let files = table
        .families
        .iter()
        .map(|family| family.files)
        .sum::<u64>();
    Ok(vec![
        Figure::new("opening: loaded at", rate, "MiB/s"),
        Figure::new("opening: SSTs", mib(table.disk_bytes), "MiB"),
        Figure::new("opening: SSTs", files as f64, "files"),
        Figure::new(
            "opening: only in the log",
            mib(server.memtable_bytes),
            "MiB of memtables",
        ),
    ])
}

/// The number of requests that write so much.
fn requests(mib: u64) -> u64 {
    ((mib << 20) / ROW_BYTES).div_ceil(BATCH).max(1)
}

async fn fill(world: &World, order: Order, first: u64, count: u64) -> Result<f64> {
    let load = world.load(count, move |world, number| {
        let places = (first + number) * BATCH..(first + number + 1) * BATCH;
        let rows = places.map(|place| {
            let number = order.row(place);
            let put = world.put(Qualifier::default(), None, value(number, VALUE_BYTES));
            row(rows::key(number).to_vec(), vec![put])
        });
        Ok(MutateRequest {
            rows: rows.collect::<Result<_>>()?,
        })
    });
    Ok(load.await?.as_secs_f64())
}

/// Opens, and sees that the first and the last row written are there.
pub async fn open(options: &Options, store: &Path, how: &str) -> Result<Vec<Figure>> {
    let started = Instant::now();
    let world = World::open(&options.setup, store).await?;
    let seconds = started.elapsed().as_secs_f64();
    let peak = process::memory()?.peak;
    let total = requests(options.open_mib).max(requests(options.log_mib)) * BATCH;
    let order = Order::of_load(total);
    for place in [0, total - 1] {
        let number = order.row(place);
        let key = RowKey::new(rows::key(number).to_vec())?;
        let cell = world
            .engine
            .get(&world.table, &key, &world.family, &Qualifier::default())?;
        if cell.is_none_or(|cell| *cell.value != *value(number, VALUE_BYTES)) {
            return Err(format!("row {number} was lost or changed").into());
        }
    }
    world.engine.close().await?;
    Ok(vec![
        Figure::new(format!("opening {how}"), seconds, "s").goal("≤ 1 s"),
        Figure::new(
            format!("opening {how}: highest RSS"),
            peak as f64 / f64::from(1 << 20),
            "MiB",
        ),
    ])
}
