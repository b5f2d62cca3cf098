//! Generated texts.

use tablemount_api::{
    BloomFilter, Compression, CompressionScope, FamilyInfo, FamilyName, GcClause, GcRule, RowKey,
    TableName, Timestamp,
};

use super::*;

#[test]
fn a_schema_reads_as_a_manifest() {
    let family = |id, schema| FamilyInfo { id, schema };
    let named = |name| FamilySchema::new(FamilyName::new(name).expect("valid"));
    let clause = |max_versions, max_age_micros| GcClause {
        max_versions,
        max_age_micros,
    };
    let info = TableInfo {
        name: TableName::new("blogtable").expect("valid"),
        uid: "abc".to_owned(),
        version: 3,
        created: Timestamp(1_215_000_000_000_000),
        families: vec![
            family(
                1,
                FamilySchema {
                    gc_rule: GcRule(vec![clause(Some(1), None)]),
                    in_memory: true,
                    ..named("info")
                },
            ),
            family(
                2,
                FamilySchema {
                    gc_rule: GcRule(vec![
                        clause(Some(3), None),
                        clause(None, Some(86_400_000_000)),
                    ]),
                    compression: Compression::Snappy,
                    compression_scope: CompressionScope::Record,
                    bloom_filter: BloomFilter::RowColumn,
                    block_cache: false,
                    ..named("text")
                },
            ),
            family(
                3,
                FamilySchema {
                    gc_rule: GcRule(vec![clause(Some(2), Some(5_000_000))]),
                    ..named("odd")
                },
            ),
        ],
        splits: vec![RowKey::new("A/A").expect("valid")],
        owner: None,
        deletion_protection: false,
    };
    let expected = "\
apiVersion: tablemount.dev/v1alpha1
kind: Table
metadata:
  name: blogtable
spec:
  families:
  - name: info
    maxVersions: 1
    inMemory: true
  - name: text
    maxVersions: 3
    maxAgeSeconds: 86400
    compression:
      type: Snappy
      scope: Record
    bloomFilter: RowColumn
    blockCache: false
  - name: odd
    gcRule:
    - maxVersions: 2
      maxAgeMicros: 5000000
  splits:
  - A%2FA
status:
  tableUid: abc
  observedSchemaVersion: 3
  created: 2008-07-02T12:00:00Z
";
    assert_eq!(String::from_utf8_lossy(&schema(&info)), expected);
}

#[test]
fn help_names_what_resolves() {
    let table = Node::table(TableName::new("t").expect("valid"));
    for name in [
        "@at",
        "@latest",
        "@prefix",
        "@range",
        "@after",
        "@limit",
        "@reverse",
        "@schema.yaml",
        "@stats.json",
    ] {
        assert!(help(&table).contains(name), "{name}");
    }
    assert!(help(&table).contains("not a snapshot"));
    assert!(help(&Node::Root).contains("@config") && !help(&Node::Root).contains("@reverse/  "));
}
