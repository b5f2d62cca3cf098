//! The schema that a `Table` asks for, in the engine's terms: a custom resource parsed once, which nothing after re-validates.

use std::collections::BTreeSet;

use tablemount_api::{
    BloomFilter, Compression, CompressionScope, FamilyName, FamilySchema, GcClause, GcRule,
    PutTable, RowKey, TableName, name,
};

use crate::crd::{self, CompressionType, Family, Table};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// What a Table asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Desired {
    pub(crate) name: TableName,
    pub(crate) families: Vec<FamilySchema>,
    pub(crate) splits: BTreeSet<RowKey>,
    pub(crate) may_drop: BTreeSet<FamilyName>,
    pub(crate) may_tighten: BTreeSet<FamilyName>,
    pub(crate) adopt_existing: bool,
}

impl Desired {
    /// Reads the spec; the error names the field, its value and the limit.
    pub(crate) fn new(table: &Table) -> Result<Self, String> {
        let spec = &table.spec;
        let desired = Self {
            name: table
                .table_name()
                .map_err(|error| format!("{error}; set spec.tableName"))?,
            families: spec.families.iter().map(family).collect::<Result<_, _>>()?,
            splits: spec
                .splits
                .iter()
                .map(|split| split_key(split))
                .collect::<Result<_, _>>()?,
            may_drop: names(
                spec.allow
                    .iter()
                    .filter_map(|consent| consent.drop_family.as_deref()),
            )?,
            may_tighten: names(
                spec.allow
                    .iter()
                    .filter_map(|consent| consent.tighten_gc.as_deref()),
            )?,
            adopt_existing: spec.adopt_existing,
        };
        if desired.splits.len() < spec.splits.len() {
            return Err("spec.splits: a key stands twice".to_owned());
        }
        desired
            .put_table()
            .validate()
            .map_err(|error| format!("spec: {error}"))?;
        Ok(desired)
    }

    /// The request that makes the table.
    pub(crate) fn put_table(&self) -> PutTable {
        PutTable {
            families: self.families.clone(),
            splits: self.splits.iter().cloned().collect(),
            ..PutTable::default()
        }
    }
}

/// So many column families, in words.
pub(crate) fn count_families(count: usize) -> String {
    match count {
        1 => "1 column family".to_owned(),
        n => format!("{n} column families"),
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Result<BTreeSet<FamilyName>, String> {
    names
        .map(|name| FamilyName::new(name).map_err(|error| format!("spec.allow: {error}")))
        .collect()
}

fn split_key(split: &str) -> Result<RowKey, String> {
    let bytes = name::decode_bytes(split).map_err(|error| format!("spec.splits: {error}"))?;
    RowKey::new(bytes).map_err(|error| format!("spec.splits: {split:?}: {error}"))
}

fn family(family: &Family) -> Result<FamilySchema, String> {
    let name = FamilyName::new(&family.name).map_err(|error| format!("spec.families: {error}"))?;
    let setting = |setting: &str, value: i64| {
        u32::try_from(value).map_err(|_| {
            format!("column family \"{name}\": {setting} is {value}; it must not be below 0")
        })
    };
    let mut schema = FamilySchema::new(name.clone());
    schema.gc_rule =
        gc_rule(family).map_err(|error| format!("column family \"{name}\": {error}"))?;
    schema.in_memory = family.in_memory;
    let asked = family.compression.unwrap_or_default();
    schema.compression = compression(asked.algorithm);
    schema.compression_scope = compression_scope(asked.scope);
    schema.bloom_filter = bloom_filter(family.bloom_filter.unwrap_or_default());
    if let Some(block_cache) = family.block_cache {
        schema.block_cache = block_cache;
    }
    if let Some(bytes) = family.block_size_bytes {
        schema.block_bytes = setting("blockSizeBytes", bytes.into())?;
    }
    if let Some(bytes) = family.max_value_bytes {
        schema.max_value_bytes = setting("maxValueBytes", bytes.into())?;
    }
    Ok(schema)
}

fn gc_rule(family: &Family) -> Result<GcRule, String> {
    let mut clauses = Vec::new();
    if let Some(versions) = family.max_versions {
        let max_versions = u32::try_from(versions)
            .ok()
            .filter(|versions| *versions > 0)
            .ok_or_else(|| format!("maxVersions is {versions}; it must be 1 or more"))?;
        clauses.push(GcClause {
            max_versions: Some(max_versions),
            max_age_micros: None,
        });
    }
    if let Some(seconds) = family.max_age_seconds {
        let micros = seconds
            .checked_mul(MICROS_PER_SECOND)
            .filter(|micros| *micros > 0)
            .ok_or_else(|| {
                format!(
                    "maxAgeSeconds is {seconds}; it must be 1 to {}",
                    i64::MAX / MICROS_PER_SECOND
                )
            })?;
        clauses.push(GcClause {
            max_versions: None,
            max_age_micros: Some(micros),
        });
    }
    Ok(GcRule(clauses))
}

fn compression(algorithm: CompressionType) -> Compression {
    match algorithm {
        CompressionType::None => Compression::None,
        CompressionType::Lz4 => Compression::Lz4,
        CompressionType::Snappy => Compression::Snappy,
        CompressionType::Zstd => Compression::Zstd,
    }
}

/// The custom resource's word for a compression.
pub(crate) fn compression_type(compression: Compression) -> CompressionType {
    match compression {
        Compression::None => CompressionType::None,
        Compression::Lz4 => CompressionType::Lz4,
        Compression::Snappy => CompressionType::Snappy,
        Compression::Zstd => CompressionType::Zstd,
    }
}

fn compression_scope(scope: crd::CompressionScope) -> CompressionScope {
    match scope {
        crd::CompressionScope::Block => CompressionScope::Block,
        crd::CompressionScope::Record => CompressionScope::Record,
    }
}

fn bloom_filter(filter: crd::BloomFilter) -> BloomFilter {
    match filter {
        crd::BloomFilter::None => BloomFilter::None,
        crd::BloomFilter::Row => BloomFilter::Row,
        crd::BloomFilter::RowColumn => BloomFilter::RowColumn,
    }
}

/// The custom resource's word for a scope of compression.
pub(crate) fn scope_word(scope: CompressionScope) -> crd::CompressionScope {
    match scope {
        CompressionScope::Block => crd::CompressionScope::Block,
        CompressionScope::Record => crd::CompressionScope::Record,
    }
}

/// The custom resource's word for a bloom filter.
pub(crate) fn bloom_filter_word(filter: BloomFilter) -> crd::BloomFilter {
    match filter {
        BloomFilter::None => crd::BloomFilter::None,
        BloomFilter::Row => crd::BloomFilter::Row,
        BloomFilter::RowColumn => crd::BloomFilter::RowColumn,
    }
}

/// A GC rule in words, such as `at most 3 versions, or older than 60 s`.
pub(crate) fn describe_gc(rule: &GcRule) -> String {
    let clause = |clause: &GcClause| match (clause.max_versions, clause.max_age_micros) {
        (Some(versions), None) => format!("beyond {}", count(versions)),
        (None, Some(age)) => format!("older than {}", seconds(age)),
        (Some(versions), Some(age)) => {
            format!("beyond {} and older than {}", count(versions), seconds(age))
        }
        (None, None) => "none".to_owned(),
    };
    if rule.0.is_empty() {
        return "keeps every version".to_owned();
    }
    format!(
        "collects versions {}",
        rule.0.iter().map(clause).collect::<Vec<_>>().join(", or ")
    )
}

fn count(versions: u32) -> String {
    match versions {
        1 => "the newest".to_owned(),
        n => format!("the newest {n}"),
    }
}

fn seconds(micros: i64) -> String {
    match micros % MICROS_PER_SECOND {
        0 => format!("{} s", micros / MICROS_PER_SECOND),
        _ => format!("{micros} µs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_objects::table;

    #[test]
    fn family_settings_become_the_engines() {
        let table = table(
            "t",
            "families: [{name: f, maxVersions: 3, maxAgeSeconds: 60, inMemory: true, compression: {type: Zstd, scope: Record}, blockSizeBytes: 8192, bloomFilter: RowColumn, blockCache: false, maxValueBytes: 10}, {name: g}]",
        );
        let desired = Desired::new(&table).expect("valid");
        let f = FamilyName::new("f").expect("valid");
        assert_eq!(
            desired.families,
            [
                FamilySchema {
                    gc_rule: GcRule(vec![
                        GcClause {
                            max_versions: Some(3),
                            max_age_micros: None
                        },
                        GcClause {
                            max_versions: None,
                            max_age_micros: Some(60_000_000)
                        },
                    ]),
                    compression: Compression::Zstd,
                    compression_scope: CompressionScope::Record,
                    bloom_filter: BloomFilter::RowColumn,
                    block_cache: false,
                    block_bytes: 8192,
                    in_memory: true,
                    max_value_bytes: 10,
                    ..FamilySchema::new(f)
                },
                FamilySchema::new(FamilyName::new("g").expect("valid")),
            ]
        );
    }

    #[test]
    fn splits_are_decoded_from_names() {
        let table = table(
            "t",
            "{families: [{name: f}], splits: [PL, 'a%00', '%xff00']}",
        );
        let splits: Vec<_> = Desired::new(&table)
            .expect("valid")
            .splits
            .into_iter()
            .collect();
        assert_eq!(
            splits
                .iter()
                .map(|key| key.bytes().as_ref())
                .collect::<Vec<_>>(),
            [&b"PL"[..], b"a\0", &[0xff, 0]]
        );
    }

    #[test]
    fn what_no_table_can_be_is_named() {
        let check = |spec: &str, expected: &str| {
            assert_eq!(
                Desired::new(&table("t", spec)).unwrap_err(),
                expected,
                "{spec}"
            );
        };
        check(
            "families: [{name: f, maxVersions: 0}]",
            "column family \"f\": maxVersions is 0; it must be 1 or more",
        );
        check(
            "families: [{name: f, maxAgeSeconds: 9223372036855}]",
            "column family \"f\": maxAgeSeconds is 9223372036855; it must be 1 to 9223372036854",
        );
        check(
            "families: [{name: f, blockSizeBytes: 7}]",
            "spec: column family \"f\": blockBytes is 7; it must be 1024 to 1048576",
        );
        check(
            "families: [{name: f}, {name: f}]",
            "spec: column family \"f\" stands twice",
        );
        check(
            "families: [{name: 'a:b'}]",
            "spec.families: column family name \"a:b\" is not 1 to 64 of letters, digits, '-', '_' and '.'",
        );
        check(
            "{families: [{name: f}], splits: ['%zz']}",
            "spec.splits: \"%zz\" is not a name: after % come two hex digits, or x, l, empty",
        );
        check(
            "{families: [{name: f}], splits: ['%empty']}",
            "spec.splits: \"%empty\": row key is empty; a row key has 1 to 65536 bytes",
        );
        check(
            "{families: [{name: f}], splits: [a, '%61']}",
            "spec.splits: a key stands twice",
        );
        assert_eq!(
            Desired::new(&table(&"x".repeat(51), "families: [{name: f}]")).unwrap_err(),
            format!(
                "table name \"{}\" is not 1 to 50 of letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'; set spec.tableName",
                "x".repeat(51)
            )
        );
    }

    #[test]
    fn gc_rules_read_well() {
        let check = |clauses: &[(Option<u32>, Option<i64>)], expected: &str| {
            let rule = GcRule(
                clauses
                    .iter()
                    .map(|&(max_versions, max_age_micros)| GcClause {
                        max_versions,
                        max_age_micros,
                    })
                    .collect(),
            );
            assert_eq!(describe_gc(&rule), expected);
        };
        check(&[], "keeps every version");
        check(&[(Some(1), None)], "collects versions beyond the newest");
        check(
            &[(Some(3), None), (None, Some(60_000_000))],
            "collects versions beyond the newest 3, or older than 60 s",
        );
        check(
            &[(Some(3), Some(1500))],
            "collects versions beyond the newest 3 and older than 1500 µs",
        );
    }
}
