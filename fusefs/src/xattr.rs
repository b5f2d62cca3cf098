//! Extended attributes: the bytes behind the names, `user.tablemount.key`, `.qualifier` and `.timestamp`.
//!
//! **Invariant**: none of them costs a request.

use bytes::Bytes;

use crate::errno::Failure;
use crate::node::Node;

const KEY: &str = "user.tablemount.key";
const QUALIFIER: &str = "user.tablemount.qualifier";
const TIMESTAMP: &str = "user.tablemount.timestamp";

/// The attribute `name` of `node`.
pub(crate) fn get(node: &Node, name: &[u8]) -> Result<Bytes, Failure> {
    let value = match str::from_utf8(name) {
        Ok(KEY) => node.row().map(|row| row.key.clone()),
        Ok(QUALIFIER) => node.column().map(|column| column.qualifier.clone()),
        Ok(TIMESTAMP) => match node {
            Node::Cell(_, timestamp) => Some(timestamp.to_string().into()),
            _ => None,
        },
        _ => None,
    };
    value.ok_or(Failure::NoAttribute)
}

/// The names of the node's attributes, each ended by NUL.
pub(crate) fn list(node: &Node) -> Bytes {
    let names = [KEY, QUALIFIER, TIMESTAMP]
        .into_iter()
        .filter(|name| get(node, name.as_bytes()).is_ok());
    names
        .flat_map(|name| [name, "\0"])
        .collect::<String>()
        .into()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use tablemount_api::TableName;

    use super::*;
    use crate::path::{Step, parse};

    fn walk(path: &str) -> Node {
        let table = Node::table(TableName::new("t").expect("valid"));
        path.split('/')
            .fold(table, |node, name| match parse(&node, OsStr::new(name)) {
                Some(Step::Child(node)) => node,
                other => panic!("{name}: {other:?}"),
            })
    }

    #[test]
    fn attributes_of_rows_columns_and_versions() {
        let cell = walk("a%2Fb/f/%empty/15");
        assert_eq!(get(&cell, b"user.tablemount.key").expect("key"), "a/b");
        assert_eq!(
            get(&cell, b"user.tablemount.qualifier").expect("qualifier"),
            ""
        );
        assert_eq!(
            get(&cell, b"user.tablemount.timestamp").expect("timestamp"),
            "15"
        );
        assert!(matches!(
            get(&cell, b"security.capability"),
            Err(Failure::NoAttribute)
        ));
        assert_eq!(
            list(&cell),
            "user.tablemount.key\0user.tablemount.qualifier\0user.tablemount.timestamp\0"
        );
        assert_eq!(list(&walk("a%2Fb/f")), "user.tablemount.key\0");
        assert_eq!(list(&Node::Root), "");
    }
}
