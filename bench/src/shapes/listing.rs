//! Rows of many cells: a listing of their keys beside a scan of their cells.

use std::path::Path;

use tablemount_api::{CellContent, MutateRequest, ReadRequest};

use super::world::{World, qualifier, row, value};
use super::{Figure, Options};
use crate::rows::{self, Order};
use crate::subject::Result;

const VALUE_BYTES: usize = 32;
/// Listings, and a third as many scans.
const LISTINGS: u32 = 6;

/// Writes row after row in a pseudo-random order.
pub async fn load(options: &Options, store: &Path) -> Result<Vec<Figure>> {
    let world = World::open(&options.setup, store).await?;
    let (rows, cells) = (options.listing_rows, options.listing_cells);
    let order = Order::of_load(rows);
    let load = world.load(rows, move |world, number| {
        let number = order.row(number);
        let puts = (0..cells).map(|column| {
            let value = value(number * cells + column, VALUE_BYTES);
            Ok(world.put(qualifier(column)?, None, value))
        });
        let puts = puts.collect::<Result<_>>()?;
        Ok(MutateRequest {
            rows: vec![row(rows::key(number).to_vec(), puts)?],
        })
    });
    let time = load.await?;
    world.settle_and_close().await?;
    let text = format!("listing: {rows} rows of {cells} cells, loaded in");
    Ok(vec![Figure::new(text, time.as_secs_f64(), "s")])
}

/// Lists and scans.
pub async fn list(options: &Options, store: &Path) -> Result<Vec<Figure>> {
    let world = World::open(&options.setup, store).await?;
    let keys = ReadRequest {
        cells: CellContent::None,
        ..ReadRequest::default()
    };
    let cells = ReadRequest::default();
    let (rows, count) = (
        options.listing_rows,
        options.listing_rows * options.listing_cells,
    );
    world.time(&keys, 1, rows)?;
    let listing = world.time(&keys, LISTINGS, rows)?.as_secs_f64();
    let scan = world.time(&cells, LISTINGS / 3, count)?.as_secs_f64();
    world.engine.close().await?;
    Ok(vec![
        Figure::new("listing: keys of all rows", listing * 1e3, "ms"),
        Figure::new("listing: scan of all cells", scan * 1e3, "ms"),
        Figure::new("listing: scan by keys", scan / listing, "").goal("≥ 20"),
    ])
}
