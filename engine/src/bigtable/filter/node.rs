//! The parts of a compiled filter, with what they count while a row runs through.

use std::ops::Bound;
use std::sync::Arc;

use super::re2::Pattern;
use super::{Cell, Emit, Skip};

/// Where cells go on to.
type Next<'n> = &'n mut dyn FnMut(&mut dyn Emit, Cell<'_>);

/// A filter.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Pass,
    Test(Test),
    Row(RowTest),
    /// Skips cells of the row.
    Offset {
        count: u64,
        seen: u64,
    },
    /// Ends the row after cells.
    Limit {
        count: u64,
        seen: u64,
    },
    ColumnLimit(ColumnLimit),
    Strip,
    Label(Arc<str>),
    Sink,
    Chain(Vec<Node>),
    Interleave(Vec<Node>),
    Condition(Box<Condition>),
}

/// Looks at one cell.
#[derive(Debug, Clone)]
pub(crate) enum Test {
    Block,
    /// By family, whether it passes.
    Families(Vec<bool>),
    Qualifier(Pattern),
    Columns {
        family: usize,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    },
    /// From, and before.
    Time(i64, i64),
    Value(Pattern),
    Values((Bound<Vec<u8>>, Bound<Vec<u8>>)),
    ValueMask(Vec<u8>),
}

/// Decides over the whole row by its key.
#[derive(Debug, Clone)]
pub(crate) struct RowTest {
    pub(crate) by: RowKeys,
    pub(crate) passes: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum RowKeys {
    Matching(Pattern),
    /// A part of all rows; the seed is the request's.
    Sample {
        part: f64,
        seed: u64,
    },
}

/// The newest cells of each column.
#[derive(Debug, Clone, Default)]
pub(crate) struct ColumnLimit {
    pub(crate) count: u64,
    seen: u64,
    family: usize,
    qualifier: Vec<u8>,
}

/// If anything comes out of `predicate`, `then`, else `otherwise`.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pub(crate) predicate: Node,
    pub(crate) then: Node,
    pub(crate) otherwise: Node,
    /// Something came out in this pass over the row.
    hit: bool,
    /// What was decided for this row.
    decided: Option<bool>,
}

impl Test {
    pub(crate) fn passes(&self, cell: &Cell<'_>) -> bool {
        match self {
            Self::Block => false,
            Self::Families(passing) => passing.get(cell.family).is_some_and(|passes| *passes),
            Self::Qualifier(pattern) => pattern.matches(cell.qualifier),
            Self::Columns { family, range } => {
                cell.family == *family && contains(range, cell.qualifier)
            }
            Self::Time(from, before) => (*from..*before).contains(&cell.timestamp),
            Self::Value(pattern) => pattern.matches(cell.value),
            Self::Values(range) => contains(range, cell.value),
            Self::ValueMask(mask) => {
                let masked = |(byte, mask): (&u8, &u8)| byte & mask == *mask;
                cell.value.len() == mask.len() && cell.value.iter().zip(mask).all(masked)
            }
        }
    }
}

fn contains((from, to): &(Bound<Vec<u8>>, Bound<Vec<u8>>), bytes: &[u8]) -> bool {
    let from = match from {
        Bound::Unbounded => true,
        Bound::Included(from) => from.as_slice() <= bytes,
        Bound::Excluded(from) => from.as_slice() < bytes,
    };
    from && match to {
        Bound::Unbounded => true,
        Bound::Included(to) => bytes <= to.as_slice(),
        Bound::Excluded(to) => bytes < to.as_slice(),
    }
}

impl RowKeys {
    fn holds(&self, row: &[u8]) -> bool {
        match self {
            Self::Matching(pattern) => pattern.matches(row),
            Self::Sample { part, seed } => {
                let hash = xxhash_rust::xxh3::xxh3_64_with_seed(row, *seed);
                (hash as f64) < part * u64::MAX as f64
            }
        }
    }
}

impl ColumnLimit {
    pub(crate) fn new(count: u64) -> Self {
        Self {
            count,
            ..Self::default()
        }
    }

    fn is_in(&self, cell: &Cell<'_>) -> bool {
        self.seen > 0 && self.family == cell.family && self.qualifier == cell.qualifier
    }

    /// Whether no more of this cell's column passes.
    fn is_full(&self, cell: &Cell<'_>) -> bool {
        self.seen >= self.count && self.is_in(cell)
    }

    fn takes(&mut self, cell: &Cell<'_>) -> bool {
        if !self.is_in(cell) {
            self.family = cell.family;
            self.qualifier.clear();
            self.qualifier.extend_from_slice(cell.qualifier);
            self.seen = 0;
        }
        self.seen += 1;
        self.seen <= self.count
    }
}

impl Condition {
    pub(crate) fn new(predicate: Node, then: Node, otherwise: Node) -> Self {
        Self {
            predicate,
            then,
            otherwise,
            hit: false,
            decided: None,
        }
    }
}

impl Node {
    /// What it directly consists of.
    fn each(&mut self, act: &mut dyn FnMut(&mut Node)) {
        match self {
            Self::Chain(nodes) | Self::Interleave(nodes) => nodes.iter_mut().for_each(act),
            Self::Condition(condition) => {
                act(&mut condition.predicate);
                act(&mut condition.then);
                act(&mut condition.otherwise);
            }
            _ => {}
        }
    }

    /// A row begins.
    pub(crate) fn begin_row(&mut self, row: &[u8]) {
        match self {
            Self::Row(test) => test.passes = test.by.holds(row),
            Self::Condition(condition) => condition.decided = None,
            _ => {}
        }
        self.begin_pass();
        self.each(&mut |node| node.begin_row(row));
    }

    /// The row's cells come, once more if they came already.
    fn begin_pass(&mut self) {
        match self {
            Self::Offset { seen, .. } | Self::Limit { seen, .. } => *seen = 0,
            Self::ColumnLimit(limit) => limit.seen = 0,
            Self::Condition(condition) => condition.hit = false,
            _ => {}
        }
    }

    /// As [`Self::begin_pass`], with all that it consists of.
    pub(crate) fn begin_passes(&mut self) {
        self.begin_pass();
        self.each(&mut Self::begin_passes);
    }

    /// Lets a cell run through; what is for a sink goes to `sink` at once.
    pub(crate) fn feed(&mut self, sink: &mut dyn Emit, cell: Cell<'_>, next: Next<'_>) {
        match self {
            Self::Pass => next(sink, cell),
            Self::Test(test) => {
                if test.passes(&cell) {
                    next(sink, cell);
                }
            }
            Self::Row(test) => {
                if test.passes {
                    next(sink, cell);
                }
            }
            Self::Offset { count, seen } => {
                *seen += 1;
                if seen > count {
                    next(sink, cell);
                }
            }
            Self::Limit { count, seen } => {
                *seen += 1;
                if seen <= count {
                    next(sink, cell);
                }
            }
            Self::ColumnLimit(limit) => {
                if limit.takes(&cell) {
                    next(sink, cell);
                }
            }
            Self::Strip => next(sink, Cell { value: &[], ..cell }),
            Self::Label(label) => next(
                sink,
                Cell {
                    label: Some(label),
                    ..cell
                },
            ),
            Self::Sink => sink.emit(cell),
            Self::Chain(nodes) => chain(nodes, sink, cell, next),
            Self::Interleave(nodes) => {
                for node in nodes {
                    node.feed(sink, cell, next);
                }
            }
            Self::Condition(condition) => match condition.decided {
                Some(true) => condition.then.feed(sink, cell, next),
                Some(false) => condition.otherwise.feed(sink, cell, next),
                None => {
                    let hit = &mut condition.hit;
                    condition
                        .predicate
                        .feed(sink, cell, &mut |_, _| *hit = true);
                }
            },
        }
    }

    /// After a pass over a row: decides conditions whose input was whole (`whole`: that of this filter was). Returns whether the
    /// output was whole.
    pub(crate) fn decide(&mut self, whole: bool) -> bool {
        match self {
            Self::Chain(nodes) => nodes
                .iter_mut()
                .fold(whole, |whole, node| node.decide(whole)),
            Self::Interleave(nodes) => {
                // Each must decide, whether or not the one before could.
                let undecided = nodes
                    .iter_mut()
                    .filter_map(|node| (!node.decide(whole)).then_some(()));
                undecided.count() == 0
            }
            Self::Condition(condition) => match condition.decided {
                Some(true) => condition.then.decide(whole),
                Some(false) => condition.otherwise.decide(whole),
                None => {
                    if condition.predicate.decide(whole) {
                        condition.decided = Some(condition.hit);
                    }
                    false
                }
            },
            _ => whole,
        }
    }

    /// What needs not come any more, now that `cell` was the last; none: the row begins.
    pub(crate) fn skip(&self, cell: Option<&Cell<'_>>) -> Skip {
        match self {
            Self::Row(RowTest { passes: false, .. }) | Self::Test(Test::Block) => Skip::Row,
            Self::Limit { count, seen } if seen >= count => Skip::Row,
            Self::ColumnLimit(limit) if cell.is_some_and(|cell| limit.is_full(cell)) => {
                Skip::Column
            }
            Self::Chain(nodes) => skip_of(nodes, cell),
            Self::Interleave(nodes) => nodes
                .iter()
                .map(|node| node.skip(cell))
                .min()
                .unwrap_or(Skip::Nothing),
            _ => Skip::Nothing,
        }
    }

    /// Whether any part of it is such.
    pub(crate) fn has(&self, such: &dyn Fn(&Node) -> bool) -> bool {
        such(self)
            || match self {
                Self::Chain(nodes) | Self::Interleave(nodes) => {
                    nodes.iter().any(|node| node.has(such))
                }
                Self::Condition(condition) => {
                    [&condition.predicate, &condition.then, &condition.otherwise]
                        .iter()
                        .any(|node| node.has(such))
                }
                _ => false,
            }
    }
}

fn chain(nodes: &mut [Node], sink: &mut dyn Emit, cell: Cell<'_>, next: Next<'_>) {
    match nodes {
        [] => next(sink, cell),
        [last] => last.feed(sink, cell, next),
        [first, rest @ ..] => {
            first.feed(sink, cell, &mut |sink, cell| chain(rest, sink, cell, next));
        }
    }
}

/// What a chain lets skip. The rest of a column only where nothing before counts cells over the row.
fn skip_of(nodes: &[Node], cell: Option<&Cell<'_>>) -> Skip {
    let counts = |node: &Node| matches!(node, Node::Offset { .. } | Node::Limit { .. });
    let (mut skip, mut counted) = (Skip::Nothing, false);
    for node in nodes {
        match node.skip(cell) {
            Skip::Row => return Skip::Row,
            Skip::Column if !counted => skip = Skip::Column,
            _ => {}
        }
        counted |= node.has(&counts);
    }
    skip
}
