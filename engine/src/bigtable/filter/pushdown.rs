//! What storage can leave out for a filter: families, columns, times, versions.
//!
//! **Invariants**: only the filter itself, or the first parts of a chain at its top, are looked at, up to the first that counts
//! cells; so nothing is left out that the filter would let through or count.

use std::ops::Bound;

use tablemount_api::{Base64, FamilyInfo, Qualifier, ReadRequest, Timestamp};

use super::node::{Node, Test};

/// Bounds of a read that a filter implies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pushdown {
    /// By family, whether any of its cells may pass.
    families: Vec<bool>,
    /// From, inclusive, and to, exclusive.
    qualifiers: (Option<Vec<u8>>, Option<Vec<u8>>),
    prefix: Option<Vec<u8>>,
    since: i64,
    /// Inclusive.
    at: i64,
    versions: Option<u32>,
    /// Whether the filter looks at values or lets any out.
    pub(crate) values: bool,
}

impl Pushdown {
    pub(crate) fn of(root: &Node, families: usize) -> Self {
        let mut pushdown = Self {
            families: vec![true; families],
            qualifiers: (None, None),
            prefix: None,
            since: i64::MIN,
            at: i64::MAX,
            versions: None,
            values: needs_values(root),
        };
        let nodes = match root {
            Node::Chain(nodes) => nodes.as_slice(),
            one => std::slice::from_ref(one),
        };
        for node in nodes {
            match node {
                Node::Pass | Node::Row(_) | Node::Strip | Node::Label(_) => {}
                Node::Test(test) => pushdown.narrow(test),
                Node::ColumnLimit(limit) => {
                    pushdown.versions = u32::try_from(limit.count).ok();
                    break;
                }
                _ => break,
            }
            // Versions are counted before any test of a value.
            if matches!(
                node,
                Node::Test(Test::Value(_) | Test::Values(_) | Test::ValueMask(_))
            ) {
                break;
            }
        }
        pushdown
    }

    fn narrow(&mut self, test: &Test) {
        match test {
            Test::Block => self.families.fill(false),
            Test::Families(passing) => {
                for (may, passes) in self.families.iter_mut().zip(passing) {
                    *may &= passes;
                }
            }
            Test::Qualifier(pattern) => match pattern.literal() {
                Some(literal) => {
                    self.from(literal.to_vec());
                    self.to([literal, &[0]].concat());
                }
                None if self.prefix.is_none() && !pattern.prefix().is_empty() => {
                    self.prefix = Some(pattern.prefix().to_vec());
                }
                None => {}
            },
            Test::Columns { family, range } => {
                for (i, may) in self.families.iter_mut().enumerate() {
                    *may &= i == *family;
                }
                match &range.0 {
                    Bound::Included(from) => self.from(from.clone()),
                    Bound::Excluded(from) => self.from([from, &[0][..]].concat()),
                    Bound::Unbounded => {}
                }
                match &range.1 {
                    Bound::Included(to) => self.to([to, &[0][..]].concat()),
                    Bound::Excluded(to) => self.to(to.clone()),
                    Bound::Unbounded => {}
                }
            }
            Test::Time(from, before) => {
                self.since = self.since.max(*from);
                self.at = self.at.min(before.saturating_sub(1));
            }
            Test::Value(_) | Test::Values(_) | Test::ValueMask(_) => {}
        }
    }

    fn from(&mut self, from: Vec<u8>) {
        let present = self.qualifiers.0.take().unwrap_or_default();
        self.qualifiers.0 = Some(present.max(from));
    }

    fn to(&mut self, to: Vec<u8>) {
        self.qualifiers.1 = Some(match self.qualifiers.1.take() {
            Some(present) => present.min(to),
            None => to,
        });
    }

    /// Whether nothing can come out.
    pub(crate) fn is_nothing(&self) -> bool {
        let (from, to) = &self.qualifiers;
        let columns = to
            .as_ref()
            .is_some_and(|to| to <= from.as_ref().unwrap_or(&Vec::new()));
        columns || self.since > self.at || !self.families.contains(&true)
    }

    /// Puts the bounds into a request.
    pub(crate) fn apply(&self, request: &mut ReadRequest, families: &[FamilyInfo]) {
        if self.families.contains(&false) {
            let wanted = families.iter().zip(&self.families);
            let wanted = wanted.filter(|(_, may)| **may);
            request.families = wanted
                .map(|(family, _)| family.schema.name.clone())
                .collect();
        }
        let bound = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_ref()?;
            // A bound longer than any qualifier cannot be asked for, and is not needed.
            Qualifier::new(bytes.clone()).ok()
        };
        request.qualifier_start = bound(&self.qualifiers.0);
        request.qualifier_stop = bound(&self.qualifiers.1);
        let prefix = self.prefix.as_ref();
        request.qualifier_prefix = prefix.map(|prefix| Base64(prefix.clone().into()));
        request.since = (self.since != i64::MIN).then_some(Timestamp(self.since));
        request.at = (self.at != i64::MAX).then_some(Timestamp(self.at));
        request.versions = self.versions;
    }
}

/// Whether values come out, or are looked at on the way.
fn needs_values(root: &Node) -> bool {
    let looks = |node: &Node| {
        matches!(
            node,
            Node::Test(Test::Value(_) | Test::Values(_) | Test::ValueMask(_))
        )
    };
    let sinks = |node: &Node| matches!(node, Node::Sink);
    let strips = match root {
        Node::Strip => true,
        Node::Chain(nodes) => nodes.iter().any(|node| matches!(node, Node::Strip)),
        _ => false,
    };
    !strips || root.has(&looks) || root.has(&sinks)
}
