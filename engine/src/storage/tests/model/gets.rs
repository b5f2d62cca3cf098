//! Gets of one cell beside the model: they have a path of their own (`read/direct.rs`), which asks filters, looks into files in
//! the order of their times and takes parts of values.

use std::ops::Range;

use tablemount_api::ValueRequest;

use super::*;
use crate::read::direct::{self, CellValue};

impl Schedule {
    /// A get shows the first cell that a read of its column and times alone shows.
    pub(super) fn get(&mut self) {
        let request = value_request(&mut self.random);
        let part = part(&mut self.random);
        let subject = self.subject();
        let table_now = subject.store.table(&table()).expect("table");
        let ours = direct::get(&subject.store, &table_now, (&request).into(), &part).expect("get");
        let lines = self
            .durable
            .read(&table(), &as_read(&request), subject.clock.now())
            .expect("read");
        let first = cells(&lines).into_iter().find_map(|(_, cell)| cell);
        let theirs = first.map(|cell| {
            let value = cell.value.expect("a value").0;
            let (length, part) = (value.len() as u64, part(value.len() as u64));
            CellValue {
                timestamp: cell.timestamp,
                length,
                value: value.slice(part.start as usize..part.end as usize),
            }
        });
        assert_eq!(ours, theirs, "{request:?}");
    }
}

fn value_request(random: &mut Random) -> ValueRequest {
    ValueRequest {
        row: row(random.word(&ROWS)),
        family: family(random.word(&["all", "one", "three", "young"])),
        qualifier: qualifier(random.word(&QUALIFIERS)),
        at: random.chance(30).then(|| time(random)),
        timestamp: random.chance(20).then(|| time(random)),
    }
}

/// The whole value, or some part of it.
fn part(random: &mut Random) -> impl Fn(u64) -> Range<u64> + use<> {
    let whole = random.chance(70);
    let (start, length) = (random.below(100), random.below(100));
    move |all| match whole {
        true => 0..all,
        false => start.min(all)..(start + length).min(all),
    }
}

/// The read that shows what a get shows.
fn as_read(request: &ValueRequest) -> ReadRequest {
    let exact = request.timestamp;
    ReadRequest {
        row: Some(request.row.clone()),
        families: vec![request.family.clone()],
        qualifier: Some(request.qualifier.clone()),
        at: request.at.into_iter().chain(exact).min(),
        since: exact,
        versions: Some(1),
        ..ReadRequest::default()
    }
}
