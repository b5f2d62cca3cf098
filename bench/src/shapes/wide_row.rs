//! A row of very many qualifiers, read in pages at random places.
//!
//! Cells inside a row keep their order when rows are read from the highest down (the model's rule), so a reversed page is a page
//! of a reversed read: the row is found from its far end, its cells come in their order.

use std::path::Path;
use std::time::Instant;

use tablemount_api::{CellPosition, MutateRequest, Position, ReadRequest, RowKey};

use super::world::{World, qualifier, row, value};
use super::{Figure, Options};
use crate::process;
use crate::rows::{Order, Random};
use crate::subject::{Result, Setup};
use crate::workload::quantile;

const ROW: &str = "wide";
const VALUE_BYTES: usize = 32;
/// Qualifiers of one request.
const BATCH: u64 = 1000;
/// Cells of a page.
const PAGE: u64 = 1000;
/// Rows before and behind the wide one.
const NEIGHBOURS: u64 = 100;

/// Fills the row in a pseudo-random order, and some neighbours.
pub async fn load(options: &Options, store: &Path) -> Result<Vec<Figure>> {
    let world = World::open(&options.setup, store).await?;
    let (order, qualifiers) = (Order::of_load(options.qualifiers), options.qualifiers);
    let neighbours = world.load(NEIGHBOURS, |world, number| {
        let cell = || -> Result<_> { Ok(vec![world.put(qualifier(0)?, None, value(number, 32))]) };
        let rows = vec![
            row(format!("a{number}"), cell()?)?,
            row(format!("z{number}"), cell()?)?,
        ];
        Ok(MutateRequest { rows })
    });
    neighbours.await?;
    let load = world.load(qualifiers.div_ceil(BATCH), move |world, number| {
        let places = number * BATCH..((number + 1) * BATCH).min(qualifiers);
        let puts = places.map(|place| {
            let column = order.row(place);
            Ok(world.put(qualifier(column)?, None, value(column, VALUE_BYTES)))
        });
        let rows = vec![row(ROW, puts.collect::<Result<_>>()?)?];
        Ok(MutateRequest { rows })
    });
    let time = load.await?;
    world.settle_and_close().await?;
    let text = format!("wide row: {qualifiers} qualifiers, loaded in");
    Ok(vec![Figure::new(text, time.as_secs_f64(), "s")])
}

/// Reads pages of each kind.
pub async fn read(options: &Options, store: &Path) -> Result<Vec<Figure>> {
    let setup = Setup {
        cache_mib: options.page_cache_mib,
        ..options.setup.clone()
    };
    let world = World::open(&setup, store).await?;
    let mut figures = Vec::new();
    for (text, reverse, continued) in [
        ("forward, by its first qualifier", false, false),
        ("forward, behind a position", false, true),
        ("reverse, by its first qualifier", true, false),
        ("reverse, behind a position", true, true),
    ] {
        let request = |place| request(&world, place, reverse, continued);
        let before = process::memory()?.now;
        process::forget_peak()?;
        let micros = pages(&world, options, &request)?;
        let growth = process::memory()?.peak.saturating_sub(before);
        let millis = |share| quantile(&micros, share) as f64 / 1e3;
        let figure = |what: &str, value, unit| {
            Figure::new(
                format!("wide row, page of {PAGE} {text}: {what}"),
                value,
                unit,
            )
        };
        figures.extend([
            figure("median", millis(0.5), "ms"),
            figure("99 %", millis(0.99), "ms"),
            figure("slowest", millis(1.0), "ms").goal("≤ 5 ms"),
            figure("growth of RSS", growth as f64 / f64::from(1 << 20), "MiB").goal("≤ 64 MiB"),
        ]);
    }
    world.engine.close().await?;
    Ok(figures)
}

fn request(world: &World, place: u64, reverse: bool, continued: bool) -> Result<ReadRequest> {
    let row = RowKey::new(ROW)?;
    let mut request = ReadRequest {
        reverse,
        ..ReadRequest::default()
    };
    if continued {
        let cell = CellPosition {
            family: world.family.clone(),
            qualifier: qualifier(place - 1)?,
            timestamp: None,
        };
        request.after = Some(Position {
            row,
            cell: Some(cell),
        });
    } else {
        request.row = Some(row);
        request.qualifier_start = Some(qualifier(place)?);
    }
    Ok(request)
}

/// The times of all pages in microseconds, sorted.
fn pages(
    world: &World,
    options: &Options,
    request: &dyn Fn(u64) -> Result<ReadRequest>,
) -> Result<Vec<u64>> {
    let mut random = Random::new(5);
    let places = options.qualifiers.saturating_sub(PAGE + 1).max(1);
    let mut micros = Vec::new();
    for _ in 0..options.pages {
        let place = 1 + random.below(places);
        let request = request(place)?;
        let (mut first, mut last) = (None, Vec::new());
        let started = Instant::now();
        let count = world.visit(&request, PAGE, &mut |cell| {
            last.clear();
            last.extend_from_slice(cell.qualifier);
            first.get_or_insert_with(|| cell.qualifier.to_vec());
        })?;
        micros.push(started.elapsed().as_micros() as u64);
        let ends = (qualifier(place)?, qualifier(place + PAGE - 1)?);
        if count != PAGE || first.as_deref() != Some(ends.0.as_ref()) || last != ends.1.as_ref() {
            return Err(format!("the page at {place} has {count} cells or wrong ends").into());
        }
    }
    micros.sort_unstable();
    Ok(micros)
}
