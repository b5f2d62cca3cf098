//! Row filters: compiled once per request, then fed a row's cells in their order.
//!
//! ```text
//! RowFilter ─ compile ─► Filter { nodes, pushdown } ─► Machine: begin_row, cell…, end_row ─► Emit
//! ```
//! Cells run through without being kept, but in filters with a condition: those keep a row's cells until all its conditions are
//! decided, since a condition looks at a whole row before its first cell can go anywhere.
//!
//! **Invariants**: [`pushdown`] leaves out only cells that the filter drops; a machine's memory is bounded by [`MAX_KEPT`].

pub(crate) mod compile;
pub(crate) mod machine;
mod node;
pub(crate) mod pushdown;
pub(crate) mod re2;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(crate) use self::compile::compile;
pub(crate) use self::machine::Machine;
pub(crate) use self::pushdown::Pushdown;

/// Bytes of one row that a filter with a condition keeps: the size up to which a row can be read at all.
pub(crate) const MAX_KEPT: usize = 256 << 20;

/// A cell on its way through a filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    /// The family's place in the order of the table's families.
    pub(crate) family: usize,
    pub(crate) qualifier: &'a [u8],
    pub(crate) timestamp: i64,
    pub(crate) value: &'a [u8],
    pub(crate) label: Option<&'a Arc<str>>,
}

/// Takes the cells that come out of a filter.
pub(crate) trait Emit {
    fn emit(&mut self, cell: Cell<'_>);
}

/// What needs not be fed any more, since nothing of it would come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Skip {
    Nothing,
    /// The rest of the column.
    Column,
    /// The rest of the row.
    Row,
}
