//! Families as `tables create --family` takes them: `NAME[:SETTING,…]`, and the words of their settings.
//!
//! **Invariants**: what is not set is as in the engine's default schema; a wrong setting is named with its value and choices.

use anyhow::{anyhow, bail};
use tablemount_api::{
    Aggregate, BloomFilter, Compression, CompressionScope, FamilyName, FamilySchema, GcClause,
    GcRule,
};

const SETTINGS: &str = "maxVersions, maxAgeSeconds, inMemory, compression, compressionScope, blockBytes, bloomFilter, blockCache, \
     maxValueBytes, aggregate";

pub(super) const AGGREGATES: [(&str, Aggregate); 3] = [
    ("sum", Aggregate::Sum),
    ("min", Aggregate::Min),
    ("max", Aggregate::Max),
];

pub(super) const COMPRESSIONS: [(&str, Compression); 4] = [
    ("none", Compression::None),
    ("lz4", Compression::Lz4),
    ("snappy", Compression::Snappy),
    ("zstd", Compression::Zstd),
];

const SCOPES: [(&str, CompressionScope); 2] = [
    ("block", CompressionScope::Block),
    ("record", CompressionScope::Record),
];

pub(super) const BLOOM_FILTERS: [(&str, BloomFilter); 3] = [
    ("none", BloomFilter::None),
    ("row", BloomFilter::Row),
    ("rowColumn", BloomFilter::RowColumn),
];

/// The word for `value`, which stands among `choices`.
pub(super) fn word<T: PartialEq>(value: T, choices: &[(&'static str, T)]) -> &'static str {
    choices
        .iter()
        .find(|(_, choice)| *choice == value)
        .map_or("unknown", |(word, _)| word)
}

/// Parses `NAME[:SETTING,…]`.
pub(super) fn family(text: &str) -> anyhow::Result<FamilySchema> {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let mut family = FamilySchema::new(FamilyName::new(name)?);
    let mut clause = GcClause::default();
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        apply(setting, &mut family, &mut clause)
            .map_err(|reason| anyhow!("column family \"{name}\": {reason}"))?;
    }
    // Versions and age each end a version's life, as in a manifest.
    let versions = clause.max_versions.map(|n| GcClause {
        max_versions: Some(n),
        ..GcClause::default()
    });
    let age = clause.max_age_micros.map(|age| GcClause {
        max_age_micros: Some(age),
        ..GcClause::default()
    });
    family.gc_rule = GcRule(versions.into_iter().chain(age).collect());
    Ok(family)
}

fn apply(setting: &str, family: &mut FamilySchema, clause: &mut GcClause) -> anyhow::Result<()> {
    let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
    match name {
        "maxVersions" => clause.max_versions = Some(number(name, value)?),
        "maxAgeSeconds" => {
            clause.max_age_micros = Some(i64::from(number(name, value)?) * 1_000_000)
        }
        "inMemory" => family.in_memory = switch(name, value)?,
        "compression" => family.compression = choose(name, value, &COMPRESSIONS)?,
        "compressionScope" => family.compression_scope = choose(name, value, &SCOPES)?,
        "blockBytes" => family.block_bytes = number(name, value)?,
        "bloomFilter" => family.bloom_filter = choose(name, value, &BLOOM_FILTERS)?,
        "blockCache" => family.block_cache = switch(name, value)?,
        "maxValueBytes" => family.max_value_bytes = number(name, value)?,
        "aggregate" => family.aggregate = Some(choose(name, value, &AGGREGATES)?),
        _ => bail!("unknown setting {name:?} (settings: {SETTINGS})"),
    }
    Ok(())
}

fn number(name: &str, value: &str) -> anyhow::Result<u32> {
    value
        .parse()
        .map_err(|_| anyhow!("{name} is {value:?}; it must be a whole number"))
}

/// A setting that stands alone is on.
fn switch(name: &str, value: &str) -> anyhow::Result<bool> {
    match value {
        "" | "true" => Ok(true),
        "false" => Ok(false),
        _ => bail!("{name} is {value:?}; it must be true or false"),
    }
}

fn choose<T: Copy>(name: &str, value: &str, choices: &[(&str, T)]) -> anyhow::Result<T> {
    if let Some((_, choice)) = choices.iter().find(|(word, _)| *word == value) {
        return Ok(*choice);
    }
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    let words = match words.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        other => other.join(""),
    };
    bail!("{name} is {value:?}; it must be {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_with_settings() {
        let named = |name| FamilySchema::new(FamilyName::new(name).expect("name"));
        assert_eq!(family("info").expect("family"), named("info"));
        let set = "text:maxVersions=3,maxAgeSeconds=60,inMemory,compression=zstd,compressionScope=record,blockBytes=8192,\
                   bloomFilter=rowColumn,blockCache=false,maxValueBytes=9,aggregate=max";
        let clause = |max_versions, max_age_micros| GcClause {
            max_versions,
            max_age_micros,
        };
        assert_eq!(
            family(set).expect("family"),
            FamilySchema {
                gc_rule: GcRule(vec![clause(Some(3), None), clause(None, Some(60_000_000))]),
                compression: Compression::Zstd,
                compression_scope: CompressionScope::Record,
                bloom_filter: BloomFilter::RowColumn,
                block_cache: false,
                block_bytes: 8192,
                in_memory: true,
                max_value_bytes: 9,
                aggregate: Some(Aggregate::Max),
                ..named("text")
            }
        );
        assert_eq!(
            family("f:inMemory=false,compression=none,compressionScope=block,bloomFilter=row,blockCache")
                .expect("family"),
            named("f"),
            "defaults spelt out"
        );
    }

    #[test]
    fn bad_settings_are_named() {
        let check = |text: &str, expected: &str| {
            assert_eq!(family(text).expect_err("bad").to_string(), expected);
        };
        check(
            "a:maxVersions=x",
            "column family \"a\": maxVersions is \"x\"; it must be a whole number",
        );
        check(
            "a:compression=gzip",
            "column family \"a\": compression is \"gzip\"; it must be none, lz4, snappy or zstd",
        );
        check(
            "a:compressionScope=row",
            "column family \"a\": compressionScope is \"row\"; it must be block or record",
        );
        check(
            "a:bloomFilter=RowColumn",
            "column family \"a\": bloomFilter is \"RowColumn\"; it must be none, row or rowColumn",
        );
        check(
            "a:blockCache=no",
            "column family \"a\": blockCache is \"no\"; it must be true or false",
        );
        check(
            "a:maxVersion=1",
            "column family \"a\": unknown setting \"maxVersion\" (settings: maxVersions, maxAgeSeconds, inMemory, \
             compression, compressionScope, blockBytes, bloomFilter, blockCache, maxValueBytes, aggregate)",
        );
    }
}
