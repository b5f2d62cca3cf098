use tablemount_api::{FamilyInfo, Timestamp};

use super::*;
use crate::test_objects::table;

fn owner(name: &str) -> Owner {
    Owner {
        cluster: "k8s".into(),
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
    }
}

/// The table as it is after `spec` was applied for `t`.
fn observed(spec: &str) -> TableInfo {
    let desired = Desired::new(&table("t", spec)).expect("valid");
    let families = desired
        .families
        .iter()
        .zip(1..)
        .map(|(schema, id)| FamilyInfo {
            id,
            schema: schema.clone(),
        })
        .collect();
    TableInfo {
        name: desired.name,
        uid: "table-1".into(),
        version: 3,
        created: Timestamp(0),
        families,
        splits: desired.splits.into_iter().collect(),
        owner: Some(owner("t")),
        deletion_protection: false,
    }
}

fn changes(from: &str, to: &str) -> Vec<(ChangeClass, String, bool)> {
    let desired = Desired::new(&table("t", to)).expect("valid");
    let changes = plan(&desired, &owner("t"), Some(&observed(from))).expect("possible");
    changes
        .into_iter()
        .map(|change| (change.class, change.description, change.allowed))
        .collect()
}

fn refusal(from: &TableInfo, to: &str, owner: &Owner) -> (Reason, String) {
    let refusal = plan(
        &Desired::new(&table("t", to)).expect("valid"),
        owner,
        Some(from),
    )
    .unwrap_err();
    (refusal.reason, refusal.message)
}

#[test]
fn equal_schemas_need_no_change() {
    let spec = "{families: [{name: a, maxVersions: 3, maxAgeSeconds: 5}, {name: b, compression: {type: Zstd}}], splits: [k, m]}";
    assert_eq!(changes(spec, spec), []);
    assert_eq!(
        changes(spec, &spec.replace("[k, m]", "[m]")),
        [],
        "splits are minimum bounds"
    );
    assert_eq!(
        changes(
            "families: [{name: a}]",
            "families: [{name: a, blockSizeBytes: 4096, compression: {scope: Block}, bloomFilter: Row, blockCache: true}]"
        ),
        [],
        "a default spelt out"
    );
}

#[test]
fn a_new_table_is_made() {
    let desired = Desired::new(&table("t", "families: [{name: a}, {name: b}]")).expect("valid");
    let changes = plan(&desired, &owner("t"), None).expect("possible");
    assert_eq!(changes.len(), 1);
    assert_eq!(
        changes[0].description,
        "make table \"t\" with 2 column families"
    );
}

#[test]
fn settings_change_without_loss() {
    let check = |family: &str, class, description: &str| {
        let from = "families: [{name: a}]";
        assert_eq!(
            changes(from, &format!("families: [{family}]")),
            [(class, description.to_owned(), true)]
        );
    };
    check(
        "{name: a, inMemory: true}",
        ChangeClass::Online,
        "column family \"a\": inMemory false becomes true",
    );
    check(
        "{name: a, maxValueBytes: 9}",
        ChangeClass::Online,
        "column family \"a\": maxValueBytes 104857600 becomes 9",
    );
    check(
        "{name: a, compression: {type: Lz4}}",
        ChangeClass::Rewrite,
        "column family \"a\": compression None becomes Lz4",
    );
    check(
        "{name: a, compression: {scope: Record}}",
        ChangeClass::Online,
        "column family \"a\": compression.scope Block becomes Record",
    );
    check(
        "{name: a, bloomFilter: RowColumn}",
        ChangeClass::Online,
        "column family \"a\": bloomFilter Row becomes RowColumn",
    );
    check(
        "{name: a, bloomFilter: None}",
        ChangeClass::Online,
        "column family \"a\": bloomFilter Row becomes None",
    );
    check(
        "{name: a, blockCache: false}",
        ChangeClass::Online,
        "column family \"a\": blockCache true becomes false",
    );
    check(
        "{name: a, blockSizeBytes: 8192}",
        ChangeClass::Rewrite,
        "column family \"a\": blockSizeBytes 4096 becomes 8192",
    );
    check(
        "{name: a}, {name: b}",
        ChangeClass::Online,
        "add column family \"b\"",
    );
}

#[test]
fn loss_needs_consent() {
    let drop = (
        ChangeClass::Destructive,
        "drop column family \"b\" and its data".to_owned(),
    );
    let from = "families: [{name: a}, {name: b}]";
    assert_eq!(
        changes(from, "families: [{name: a}]"),
        [(drop.0, drop.1.clone(), false)]
    );
    assert_eq!(
        changes(from, "{families: [{name: a}], allow: [{dropFamily: b}]}"),
        [(drop.0, drop.1.clone(), true)]
    );
    assert_eq!(
        changes(from, "{families: [{name: a}], allow: [{tightenGC: b}]}"),
        [(drop.0, drop.1, false)]
    );
    let tighten = "column family \"a\" collects versions beyond the newest 2; until now it collects versions beyond the newest 3";
    assert_eq!(
        changes(
            "families: [{name: a, maxVersions: 3}]",
            "{families: [{name: a, maxVersions: 2}], allow: [{tightenGC: a}]}"
        ),
        [(ChangeClass::Destructive, tighten.to_owned(), true)]
    );
}

#[test]
fn gc_rules_are_tighter_when_a_clause_is_new() {
    let check =
        |old: &[(Option<u32>, Option<i64>)], new: &[(Option<u32>, Option<i64>)], expected| {
            let rule = |clauses: &[(Option<u32>, Option<i64>)]| {
                GcRule(
                    clauses
                        .iter()
                        .map(|&(max_versions, max_age_micros)| GcClause {
                            max_versions,
                            max_age_micros,
                        })
                        .collect(),
                )
            };
            assert_eq!(
                is_tighter(&rule(old), &rule(new)),
                expected,
                "{old:?} → {new:?}"
            );
        };
    let (versions, age) = (|n| (Some(n), None), |age| (None, Some(age)));
    check(&[], &[versions(3)], true);
    check(&[versions(3)], &[], false);
    check(&[versions(3)], &[versions(2)], true);
    check(&[versions(3)], &[versions(4)], false);
    check(&[versions(3)], &[age(5)], true);
    check(&[versions(3)], &[versions(3), age(5)], true);
    check(&[versions(3), age(5)], &[age(6)], false);
    check(&[versions(3)], &[(Some(3), Some(5))], false);
    check(&[(Some(3), Some(5))], &[versions(3)], true);
    check(&[(Some(3), Some(5))], &[(Some(4), Some(5))], false);
}

#[test]
fn ownership() {
    let spec = "families: [{name: a}]";
    let adopting = "{families: [{name: a}], adoptExisting: true}";
    let described = |from: &TableInfo, to: &str| {
        let changes = plan(
            &Desired::new(&table("t", to)).expect("valid"),
            &owner("t"),
            Some(from),
        )
        .expect("possible");
        changes
            .into_iter()
            .map(|change| change.description)
            .collect::<Vec<_>>()
    };
    let with = |owner: Option<Owner>| TableInfo {
        owner,
        ..observed(spec)
    };

    let earlier = with(Some(Owner {
        uid: "earlier".into(),
        ..owner("t")
    }));
    assert_eq!(
        described(&earlier, spec),
        ["take up table \"t\" again, made by an earlier object of this name"]
    );
    assert_eq!(described(&with(None), adopting), ["adopt table \"t\""]);
    assert_eq!(
        described(&with(Some(owner("u"))), adopting),
        ["adopt table \"t\""]
    );

    assert_eq!(
        refusal(&with(None), spec, &owner("t")),
        (
            Reason::NotAdopted,
            "table \"t\" exists already and was not made by a Table; take it over with spec.adoptExisting: true, or choose another spec.tableName".to_owned()
        )
    );
    assert_eq!(
        refusal(&with(Some(owner("u"))), spec, &owner("t")),
        (
            Reason::OwnedByOther,
            "table \"t\" belongs to Table \"u\" in namespace \"shop\"; choose another spec.tableName, or take it over with spec.adoptExisting: true".to_owned()
        )
    );
    let elsewhere = with(Some(Owner {
        cluster: "up".into(),
        ..owner("t")
    }));
    assert_eq!(
        refusal(&elsewhere, spec, &owner("t")),
        (
            Reason::OwnedByOther,
            "table \"t\" belongs to Table \"t\" in namespace \"shop\" of another cluster (up); choose another spec.tableName, or take it over with spec.adoptExisting: true".to_owned()
        )
    );
}

#[test]
fn splits_cannot_be_added() {
    assert_eq!(
        refusal(&observed("{families: [{name: a}], splits: [m]}"), "{families: [{name: a}], splits: [m, 'p%00', q, r, s, t]}", &owner("t")),
        (
            Reason::SplitsImmutable,
            "table \"t\" exists and is not split at p%00, q, r and 2 more: splits cannot be added to a table that exists; take them out of spec.splits".to_owned()
        )
    );
}

#[test]
fn unused_consents_are_named() {
    let desired = Desired::new(&table(
        "t",
        "{families: [{name: a}], allow: [{dropFamily: b}, {tightenGC: a}]}",
    ))
    .expect("valid");
    let changes = plan(
        &desired,
        &owner("t"),
        Some(&observed("families: [{name: a}, {name: b}]")),
    )
    .expect("possible");
    assert_eq!(
        unused_permissions(&desired, &changes),
        [Permission::TightenGc(FamilyName::new("a").expect("valid"))]
    );
}
