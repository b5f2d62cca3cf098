use super::*;

const TABLE: &str = "apiVersion: tablemount.dev/v1alpha1\nkind: Table\nmetadata: {name: blog}\n";
const CLUSTER: &str =
    "apiVersion: tablemount.dev/v1alpha1\nkind: TableCluster\nmetadata: {name: main}\n";
const SPEC: &str = "spec: {clusterRef: {name: main}, families: [{name: f}]}\n";

fn refused(text: &str, expected: &str) {
    let error = parse(text, "blog.yaml")
        .map(|objects| format!("{objects:?}"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("blog.yaml: {expected}"),
        "{text}"
    );
}

fn refused_table(spec: &str, expected: &str) {
    refused(
        &format!("{TABLE}spec: {{clusterRef: {{name: main}}, {spec}}}"),
        &format!("document 1 (Table \"blog\"): {expected}"),
    );
}

#[test]
fn documents_become_objects_in_order() {
    let text = format!("# a comment\n---\n{CLUSTER}spec: {{}}\n---\n---\n{TABLE}{SPEC}");
    let objects = parse(&text, "blog.yaml").expect("valid");
    let [Object::TableCluster(cluster), Object::Table(table)] = &objects[..] else {
        panic!("{objects:?}")
    };
    assert_eq!(
        (cluster.spec.replicas, cluster.spec.storage.size.as_str()),
        (1, "10Gi")
    );
    assert_eq!(table.spec.families[0].name, "f");
}

#[test]
fn json_is_yaml() {
    let text = r#"{"apiVersion": "tablemount.dev/v1alpha1", "kind": "TableCluster", "metadata": {"name": "main"}, "spec": {}}"#;
    assert_eq!(parse(text, "main.json").expect("valid").len(), 1);
}

#[test]
fn typos_are_named_with_what_is_known() {
    refused_table(
        "families: [{name: f, maxVersion: 3}]",
        "unknown field spec.families[0].maxVersion (known: blockCache, blockSizeBytes, bloomFilter, compression, inMemory, maxAgeSeconds, maxValueBytes, maxVersions, name)",
    );
    refused_table(
        "families: [{name: f, compression: {type: snappy}}]",
        "spec.families[0].compression.type is \"snappy\"; it must be one of None, Lz4, Snappy, Zstd",
    );
    refused_table(
        "families: [{name: f, compression: {scope: Row}}]",
        "spec.families[0].compression.scope is \"Row\"; it must be one of Block, Record",
    );
    refused_table(
        "families: [{name: f, bloomFilter: Rows}]",
        "spec.families[0].bloomFilter is \"Rows\"; it must be one of None, Row, RowColumn",
    );
    refused(
        &format!("{TABLE}{SPEC}Spec: {{}}"),
        "document 1 (Table \"blog\"): unknown field Spec (known: apiVersion, kind, metadata, spec, status)",
    );
    refused(
        &format!(
            "{}{SPEC}",
            TABLE.replace("{name: blog}", "{name: blog, label: {}}")
        ),
        "document 1 (Table \"blog\"): unknown field metadata.label (known: annotations, creationTimestamp, deletionGracePeriodSeconds, deletionTimestamp, finalizers, generateName, generation, labels, managedFields, name, namespace, ownerReferences, resourceVersion, uid)",
    );
}

#[test]
fn all_mistakes_of_a_document_are_told_at_once() {
    refused_table(
        "families: [{name: f, maxVersions: 0, inMemory: 'yes'}], deletionPolicy: Drop",
        "spec.deletionPolicy is \"Drop\"; it must be one of Retain, Delete; spec.families[0].inMemory is \"yes\"; it must be a boolean; spec.families[0].maxVersions is 0; it must be 1 to 2147483647",
    );
}

#[test]
fn wrong_types_and_bounds_are_named() {
    refused_table(
        "families: []",
        "spec.families has 0 items; it must be 1 to 100",
    );
    refused_table(
        "families: [{name: f}, {name: f}]",
        "spec.families: name \"f\" stands twice",
    );
    refused_table(
        "families: [{name: f}], splits: [10]",
        "spec.splits[0] is 10; it must be a string; put it in quotes",
    );
    refused_table(
        "families: [{name: f}], splits: [a, a]",
        "spec.splits: \"a\" stands twice",
    );
    refused_table(
        "families: [{maxVersions: 1}]",
        "spec.families[0].name must be set",
    );
    refused_table(
        "families: [{name: f, blockSizeBytes: 7}]",
        "spec.families[0].blockSizeBytes is 7; it must be 1024 to 1048576",
    );
    refused(TABLE, "document 1 (Table \"blog\"): spec must be set");
    refused(
        &format!("{}{SPEC}", TABLE.replace("{name: blog}", "{}")),
        "document 1 (Table \"\"): metadata.name must be set",
    );
    refused(
        &format!("{}{SPEC}", TABLE.replace("blog", "Blog")),
        "document 1 (Table \"Blog\"): metadata.name \"Blog\" is not at most 253 of a-z, 0-9, '-' and '.', starting and ending with a letter or digit",
    );
}

#[test]
fn rules_are_those_of_the_api_server() {
    let replicas = format!("{CLUSTER}spec: {{replicas: 2}}");
    refused(
        &replicas,
        "document 1 (TableCluster \"main\"): spec.replicas: replicas must be 0 or 1: several servers are not supported yet",
    );
    refused(
        &format!("{CLUSTER}spec: {{storage: {{size: big}}}}"),
        "document 1 (TableCluster \"main\"): spec.storage.size: size must be a quantity above 0, such as 10Gi",
    );
    refused(
        &format!("{}spec: {{}}", CLUSTER.replace("main", "main.x")),
        "document 1 (TableCluster \"main.x\"): metadata.name must be at most 40 lower-case letters, digits and '-', starting with a letter: Services are named after it",
    );
    refused_table(
        "families: [{name: 'a:b'}]",
        "spec.families[0].name: a column family's name must be letters, digits, '-', '_' and '.'",
    );
    refused_table(
        "families: [{name: f}], allow: [{}]",
        "spec.allow[0]: a consent has exactly one of dropFamily and tightenGC",
    );
    refused_table(
        "families: [{name: f}], tableName: 'a/b'",
        "spec.tableName: tableName must be letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'",
    );
    let long = "x".repeat(51);
    refused(
        &format!("{}{SPEC}", TABLE.replace("blog", &long)),
        &format!(
            "document 1 (Table \"{long}\"): metadata.name is over 50 characters, too long for a table: set spec.tableName"
        ),
    );
}

#[test]
fn what_cannot_change_is_refused_by_rules() {
    let table = |spec: &str| crate::test_objects::table("t", spec);
    let update = |old: &Table, new: &Table| {
        new.validate_cel_update(old)
            .map_err(|errors| errors[0].message.clone())
    };
    let before = table("{families: [{name: f}], tableName: x}");
    assert_eq!(
        update(
            &before,
            &table("{families: [{name: f}, {name: g}], tableName: x}")
        ),
        Ok(())
    );
    let renamed =
        "tableName cannot change: make another Table and copy the data with export and import";
    assert_eq!(
        update(&before, &table("{families: [{name: f}], tableName: y}")).unwrap_err(),
        renamed
    );
    assert_eq!(
        update(&before, &table("{families: [{name: f}]}")).unwrap_err(),
        renamed
    );
    let mut moved = before.clone();
    moved.spec.cluster_ref.name = "other".to_owned();
    assert!(
        update(&before, &moved)
            .unwrap_err()
            .starts_with("clusterRef cannot change")
    );
}

#[test]
fn volumes_only_grow() {
    let cluster = |spec: &str| crate::test_objects::cluster("main", spec);
    let update = |old: &str, new: &str| {
        cluster(new)
            .validate_cel_update(&cluster(old))
            .map_err(|errors| errors[0].message.clone())
    };
    assert_eq!(
        update("storage: {size: 1Gi}", "storage: {size: 2Gi}"),
        Ok(())
    );
    assert_eq!(
        update("storage: {size: 1Gi}", "storage: {size: 1024Mi}"),
        Ok(())
    );
    assert_eq!(
        update("storage: {size: 1Gi}", "storage: {size: 500Mi}").unwrap_err(),
        "size cannot shrink: volumes only grow"
    );
    let class = "storageClassName cannot change: a volume keeps the class that it was made with";
    assert_eq!(
        update("{}", "storage: {storageClassName: fast}").unwrap_err(),
        class
    );
}

#[test]
fn other_kinds_are_refused() {
    let known = "tablemount.dev/v1alpha1 has Table and TableCluster";
    refused(
        "apiVersion: v1\nkind: Pod",
        &format!("document 1: v1 Pod is not known here; {known}"),
    );
    refused(
        &TABLE.replace("kind: Table", "kind: Tabel"),
        &format!("document 1: tablemount.dev/v1alpha1 Tabel is not known here; {known}"),
    );
    refused(
        &TABLE.replace("v1alpha1", "v1"),
        &format!("document 1: tablemount.dev/v1 Table is not known here; {known}"),
    );
    refused("kind: Table", "document 1: apiVersion and kind must be set");
    refused("- a", "document 1: apiVersion and kind must be set");
}

#[test]
fn what_is_not_yaml_is_named_with_its_place() {
    let error = parse("a: [", "blog.yaml").unwrap_err().to_string();
    assert!(
        error.starts_with("blog.yaml: document 1: not YAML: ") && error.contains("line"),
        "{error}"
    );
    let twice = parse(&format!("{TABLE}{SPEC}{SPEC}"), "blog.yaml")
        .unwrap_err()
        .to_string();
    assert!(twice.contains("duplicate"), "{twice}");
}

#[test]
fn an_object_stands_once_in_a_file() {
    refused(
        &format!("{TABLE}{SPEC}---\n{TABLE}{SPEC}"),
        "document 2 (Table \"blog\"): stands twice in the file",
    );
}
