//! From a directory and a name to what the name stands for, and back: pure. Whether it exists is not asked here.
//!
//! **Invariants**: for what a listing shows, `parse(directory, name)` is the listed node (property test); a name that is
//! spelled in another way than a listing would is an [`Step::Alias`]; a name that starts with `@` is never a key's.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use bytes::Bytes;
use tablemount_api::name::{LongName, Name, decode, encode};
use tablemount_api::time::parse_at;
use tablemount_api::{FamilyName, TableName, Timestamp};

use crate::bounds::Bounds;
use crate::node::{Generated, Node, View};

/// What a name in a directory stands for.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// This.
    Child(Node),
    /// This, which listings call `name`.
    Alias { name: String, node: Node },
    /// Something whose bytes the name does not hold; [`fill`] makes it of them.
    Long(LongName),
    /// The link to the next page.
    More,
}

/// What `name` stands for in the directory `parent`; `None`: nothing.
pub(crate) fn parse(parent: &Node, name: &OsStr) -> Option<Step> {
    let spelled = spelled(name);
    if spelled.starts_with('@') {
        return virtual_child(parent, &spelled);
    }
    match parent {
        Node::View(base, view) => argument(base, view, &spelled),
        Node::Column { column, .. } if spelled == "latest" => {
            Some(Step::Child(Node::Latest(column.clone())))
        }
        _ => match decode(&spelled).ok()? {
            Name::Long(long) => Some(Step::Long(long)),
            Name::Bytes(bytes) => {
                let node = fill(parent, bytes.into())?;
                let canonical = listed_name(&node)?;
                // A name that is not UTF-8 is spelled as such a name cannot be.
                match canonical.as_bytes() == name.as_bytes() {
                    true => Some(Step::Child(node)),
                    false => Some(Step::Alias {
                        name: canonical,
                        node,
                    }),
                }
            }
        },
    }
}

/// What the bytes behind a name stand for in the directory `parent`.
pub(crate) fn fill(parent: &Node, bytes: Bytes) -> Option<Node> {
    match parent {
        Node::Root => Some(Node::table(
            TableName::new(str::from_utf8(&bytes).ok()?).ok()?,
        )),
        Node::Table { .. } => parent.row_child(bytes),
        Node::Row(_) => parent.family_child(FamilyName::new(str::from_utf8(&bytes).ok()?).ok()?),
        Node::Family { .. } => parent.column_child(bytes),
        Node::Column { .. } => {
            parent.version_child(Timestamp(str::from_utf8(&bytes).ok()?.parse().ok()?))
        }
        Node::View(base, view) => match view {
            View::Prefix => base.bounded(|bounds, _| bounds.prefix(bytes)),
            View::After => base.bounded(|bounds, max_bytes| bounds.after(&bytes, max_bytes)),
            View::RangeStart => Some(Node::View(base.clone(), View::RangeStop { start: bytes })),
            View::RangeStop { start } => {
                base.bounded(|bounds, _| bounds.range(start.clone(), bytes))
            }
            View::At | View::Limit | View::Tablet => None,
        },
        Node::Cell(..)
        | Node::Newest(_)
        | Node::Latest(_)
        | Node::Link(_)
        | Node::Generated(..) => None,
    }
}

/// The name under which a listing shows the node; `None`: no listing shows it.
pub(crate) fn listed_name(node: &Node) -> Option<String> {
    match node {
        Node::Table { scope, .. } => Some(encode(scope.table.as_str().as_bytes())),
        Node::Row(row) => Some(encode(&row.key)),
        Node::Family { family, .. } => Some(encode(family.family.as_str().as_bytes())),
        Node::Column { column, .. } | Node::Newest(column) => Some(encode(&column.qualifier)),
        Node::Cell(_, timestamp) => Some(timestamp_name(*timestamp)),
        Node::Latest(_) => Some("latest".to_owned()),
        Node::Root | Node::Link(_) | Node::View(..) | Node::Generated(..) => None,
    }
}

/// A version's file name.
pub(crate) fn timestamp_name(timestamp: Timestamp) -> String {
    encode(timestamp.to_string().as_bytes())
}

fn virtual_child(parent: &Node, name: &str) -> Option<Step> {
    let generated = |file| Some(Node::Generated(Box::new(parent.clone()), file));
    let view = |view| Some(Node::View(Box::new(parent.clone()), view));
    let bounded = |then| parent.bounded(|bounds, _| bounds).and_then(|_| view(then));
    let node = match (name, parent) {
        (_, Node::View(..)) => None,
        ("@help", _) => generated(Generated::Help),
        ("@stats", Node::Root) => generated(Generated::ServerStats),
        ("@config", Node::Root) => generated(Generated::Config),
        ("@schema.yaml", Node::Table { .. }) => generated(Generated::Schema),
        ("@stats.json", Node::Table { .. }) => generated(Generated::TableStats),
        ("@tablet", Node::Table { rows, .. }) if *rows == Bounds::default() => view(View::Tablet),
        ("@row.json", Node::Row(_)) => generated(Generated::RowJson),
        ("@at", Node::Table { .. } | Node::Row(_) | Node::Family { .. } | Node::Column { .. }) => {
            view(View::At)
        }
        ("@latest", _) => parent.latest(),
        ("@reverse", _) => parent.reversed(),
        ("@prefix", _) => bounded(View::Prefix),
        ("@range", _) => bounded(View::RangeStart),
        ("@after", _) => bounded(View::After),
        ("@limit", _) => bounded(View::Limit),
        ("@more", Node::Table { .. } | Node::Family { .. } | Node::Column { .. }) => {
            return Some(Step::More);
        }
        _ => None,
    };
    node.map(Step::Child)
}

/// What an argument makes of a view. Any spelling will do.
fn argument(base: &Node, view: &View, text: &str) -> Option<Step> {
    let plain = || match decode(text) {
        Ok(Name::Bytes(bytes)) => String::from_utf8(bytes).ok(),
        _ => None,
    };
    let node = match view {
        View::At => base.at(parse_at(&plain()?).ok()?),
        View::Limit => {
            let limit = plain()?.parse().ok().filter(|limit| *limit > 0)?;
            base.bounded(|bounds, _| bounds.limit(limit))
        }
        // Resolved by whoever knows the tablets.
        View::Tablet => None,
        View::Prefix | View::After | View::RangeStart | View::RangeStop { .. } => {
            match decode(text).ok()? {
                Name::Long(long) => return Some(Step::Long(long)),
                Name::Bytes(bytes) => fill(
                    &Node::View(Box::new(base.clone()), view.clone()),
                    bytes.into(),
                ),
            }
        }
    };
    node.map(Step::Child)
}

/// The name as text; bytes that are not UTF-8 as escapes.
fn spelled(name: &OsStr) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
