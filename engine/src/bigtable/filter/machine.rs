//! Runs rows through a compiled filter.

use std::sync::Arc;

use super::node::Node;
use super::{Cell, Emit, MAX_KEPT, Skip};

/// A filter at work on one request's rows.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    root: Node,
    /// Whether the row's cells must be kept, since the filter has a condition.
    keeps: bool,
    /// Whether what it says of cells to skip may be used: a sink takes cells from the middle of the filter.
    skips: bool,
    kept: Kept,
}

/// A row's cells, until its conditions are decided.
#[derive(Debug, Clone, Default)]
struct Kept {
    cells: Vec<KeptCell>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct KeptCell {
    family: usize,
    timestamp: i64,
    /// In `bytes`: the qualifier from here, the value from there, up to.
    places: (usize, usize, usize),
}

/// A row is too large to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowTooLarge;

impl Machine {
    pub(crate) fn new(root: Node) -> Self {
        let keeps = root.has(&|node| matches!(node, Node::Condition(_)));
        let sinks = root.has(&|node| matches!(node, Node::Sink));
        Self {
            keeps,
            skips: !keeps && !sinks,
            root,
            kept: Kept::default(),
        }
    }

    /// A row begins. Returns whether its cells are needed.
    pub(crate) fn begin_row(&mut self, row: &[u8]) -> bool {
        self.root.begin_row(row);
        self.kept.clear();
        self.skip(None) != Skip::Row
    }

    /// The row's next cell.
    #[inline]
    pub(crate) fn cell(
        &mut self,
        cell: Cell<'_>,
        emit: &mut dyn Emit,
    ) -> Result<Skip, RowTooLarge> {
        if self.keeps {
            self.kept.push(cell)?;
            return Ok(Skip::Nothing);
        }
        if matches!(self.root, Node::Pass) {
            emit.emit(cell);
            return Ok(Skip::Nothing);
        }
        self.root
            .feed(emit, cell, &mut |emit, cell| emit.emit(cell));
        Ok(self.skip(Some(&cell)))
    }

    /// The row is complete.
    pub(crate) fn end_row(&mut self, emit: &mut dyn Emit) {
        if !self.keeps {
            return;
        }
        let mut nothing = Nothing;
        loop {
            for cell in self.kept.iter() {
                self.root.feed(&mut nothing, cell, &mut |_, _| {});
            }
            let whole = self.root.decide(true);
            self.root.begin_passes();
            if whole {
                break;
            }
        }
        for cell in self.kept.iter() {
            self.root
                .feed(emit, cell, &mut |emit, cell| emit.emit(cell));
        }
        self.kept.clear();
    }

    fn skip(&self, cell: Option<&Cell<'_>>) -> Skip {
        match self.skips {
            true => self.root.skip(cell),
            false => Skip::Nothing,
        }
    }
}

struct Nothing;

impl Emit for Nothing {
    fn emit(&mut self, _: Cell<'_>) {}
}

impl Kept {
    fn push(&mut self, cell: Cell<'_>) -> Result<(), RowTooLarge> {
        let from = self.bytes.len();
        let value = from + cell.qualifier.len();
        let end = value + cell.value.len();
        if end + self.cells.len() * size_of::<KeptCell>() > MAX_KEPT {
            return Err(RowTooLarge);
        }
        self.bytes.extend_from_slice(cell.qualifier);
        self.bytes.extend_from_slice(cell.value);
        self.cells.push(KeptCell {
            family: cell.family,
            timestamp: cell.timestamp,
            places: (from, value, end),
        });
        Ok(())
    }

    fn iter(&self) -> impl Iterator<Item = Cell<'_>> {
        self.cells.iter().map(|kept| {
            let (from, value, end) = kept.places;
            Cell {
                family: kept.family,
                qualifier: &self.bytes[from..value],
                timestamp: kept.timestamp,
                value: &self.bytes[value..end],
                label: None::<&Arc<str>>,
            }
        })
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
        // One large row is no reason to keep its room.
        self.bytes.shrink_to(1 << 20);
    }
}
