//! What the table takes: checks cells against its families before anything is sent, so that a bad line is known by its number.

use std::fmt::Write as _;

use anyhow::{anyhow, ensure};
use bytes::Bytes;
use tablemount_api::{Base64, FamilyName, Mutation, Qualifier, TableInfo, Timestamp};

/// The table's families and the timestamp of cells that bring none.
#[derive(Debug, Clone)]
pub(crate) struct Families {
    table: String,
    families: Vec<(FamilyName, usize)>,
    default_timestamp: Timestamp,
}

impl Families {
    /// The families of `table` as it is now.
    pub(crate) fn new(table: &TableInfo, default_timestamp: Timestamp) -> Self {
        let of = |info: &tablemount_api::FamilyInfo| {
            (
                info.schema.name.clone(),
                info.schema.max_value_bytes as usize,
            )
        };
        Self {
            table: table.name.to_string(),
            families: table.families.iter().map(of).collect(),
            default_timestamp,
        }
    }

    /// The family's name, shared.
    pub(crate) fn find(&self, name: &str) -> anyhow::Result<FamilyName> {
        Ok(self.entry(name)?.0.clone())
    }

    /// A cell to write.
    pub(crate) fn put(
        &self,
        family: &str,
        qualifier: Qualifier,
        timestamp: Option<i64>,
        value: Bytes,
    ) -> anyhow::Result<Mutation> {
        let (family, limit) = self.entry(family)?;
        ensure!(
            value.len() <= *limit,
            "value is {} bytes; limit of column family \"{family}\" is {limit}",
            value.len()
        );
        let timestamp = timestamp.map_or(self.default_timestamp, Timestamp);
        ensure!(
            timestamp.0 >= 0,
            "timestamp is {timestamp}; it must be 0 or more"
        );
        Ok(Mutation::Put {
            family: family.clone(),
            qualifier,
            timestamp: Some(timestamp),
            value: Base64(value),
        })
    }

    fn entry(&self, name: &str) -> anyhow::Result<&(FamilyName, usize)> {
        self.families
            .iter()
            .find(|(family, _)| family.as_str() == name)
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> anyhow::Error {
        let mut known = String::new();
        for (index, (family, _)) in self.families.iter().enumerate() {
            let _ = write!(known, "{}\"{family}\"", if index == 0 { "" } else { ", " });
        }
        anyhow!(
            "column family {name:?} not found in table \"{}\" (families: {known})",
            self.table
        )
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tablemount_api::{FamilyInfo, FamilySchema, TableName};

    use super::*;

    /// A table with families `info` (values up to 10 bytes) and `text`, and the default timestamp 7.
    pub(in crate::import) fn families() -> Families {
        let family = |id, name: &str, max_value_bytes| {
            let schema = FamilySchema::new(FamilyName::new(name).expect("name"));
            FamilyInfo {
                id,
                schema: FamilySchema {
                    max_value_bytes,
                    ..schema
                },
            }
        };
        let table = TableInfo {
            name: TableName::new("t").expect("name"),
            uid: "u".to_owned(),
            version: 1,
            created: Timestamp(0),
            families: vec![family(1, "info", 10), family(2, "text", 100 << 20)],
            splits: Vec::new(),
            owner: None,
            deletion_protection: false,
        };
        Families::new(&table, Timestamp(7))
    }

    #[test]
    fn what_the_table_does_not_take_is_named() {
        let check = |family: &str, timestamp, value: &'static str, expected: &str| {
            let put = families().put(family, Qualifier::default(), timestamp, value.into());
            assert_eq!(put.expect_err("refused").to_string(), expected);
        };
        check(
            "Info",
            None,
            "",
            "column family \"Info\" not found in table \"t\" (families: \"info\", \"text\")",
        );
        check(
            "info",
            None,
            "12345678901",
            "value is 11 bytes; limit of column family \"info\" is 10",
        );
        check(
            "info",
            Some(-1),
            "",
            "timestamp is -1; it must be 0 or more",
        );
    }
}
