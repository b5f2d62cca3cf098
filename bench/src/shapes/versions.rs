//! Cells of many versions: a scan of the newest beside a scan of all.

use std::path::Path;

use tablemount_api::{MutateRequest, Qualifier, ReadRequest, Timestamp};

use super::world::{World, row, value};
use super::{Figure, Options};
use crate::rows::{self, Order};
use crate::subject::Result;

const VALUE_BYTES: usize = 100;
/// Rows of one request.
const BATCH: u64 = 100;
/// Scans of each kind.
const SCANS: u32 = 5;

/// Writes version after version, each in the same pseudo-random order of the rows.
pub async fn load(options: &Options, store: &Path) -> Result<Vec<Figure>> {
    let world = World::open(&options.setup, store).await?;
    let (cells, order) = (options.cells, Order::of_load(options.cells));
    let mut seconds = 0.0;
    for version in 1..=options.versions {
        let load = world.load(cells.div_ceil(BATCH), move |world, number| {
            let places = number * BATCH..((number + 1) * BATCH).min(cells);
            let rows = places.map(|place| {
                let number = order.row(place);
                let value = value(number * 1000 + version, VALUE_BYTES);
                let timestamp = Some(Timestamp(version as i64 * 1000));
                let put = world.put(Qualifier::default(), timestamp, value);
                row(rows::key(number).to_vec(), vec![put])
            });
            Ok(MutateRequest {
                rows: rows.collect::<Result<_>>()?,
            })
        });
        seconds += load.await?.as_secs_f64();
    }
    world.settle_and_close().await?;
    let text = format!("{} versions of {cells} cells, loaded in", options.versions);
    Ok(vec![Figure::new(text, seconds, "s")])
}

/// Scans both ways, in turns, after one scan that fills the cache.
pub async fn scan(options: &Options, store: &Path) -> Result<Vec<Figure>> {
    let world = World::open(&options.setup, store).await?;
    let all = ReadRequest::default();
    let newest = ReadRequest {
        versions: Some(1),
        ..ReadRequest::default()
    };
    let (cells, versions) = (options.cells, options.cells * options.versions);
    world.time(&all, 1, versions)?;
    let (mut newest_seconds, mut all_seconds) = (0.0, 0.0);
    for _ in 0..SCANS {
        newest_seconds += world.time(&newest, 1, cells)?.as_secs_f64() / f64::from(SCANS);
        all_seconds += world.time(&all, 1, versions)?.as_secs_f64() / f64::from(SCANS);
    }
    world.engine.close().await?;
    Ok(vec![
        Figure::new("versions: scan of the newest", newest_seconds * 1e3, "ms"),
        Figure::new("versions: scan of all", all_seconds * 1e3, "ms"),
        Figure::new("versions: newest by all", newest_seconds / all_seconds, "").goal("≤ 0.35"),
    ])
}
