//! Holds the generated and the example manifests to the code.

use std::path::{Path, PathBuf};

use tablemount_operator::crds_yaml;
use tablemount_operator::manifest::{self, Object};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("a parent")
        .to_owned()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn crds_are_what_the_code_says() {
    for path in [
        "crds/tablemount.dev.yaml",
        "charts/tablemount/crds/tablemount.dev.yaml",
    ] {
        assert!(
            read(path) == crds_yaml(),
            "{path} is not what `tablemount crds` prints: run `make crds`"
        );
    }
}

/// `kubectl explain` has something to say about everything.
#[test]
fn every_field_is_described() {
    fn check(schema: &serde_json::Value, path: &str) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, field) in properties {
            let path = format!("{path}.{name}");
            assert!(
                field["description"].is_string() || path.ends_with(".metadata"),
                "{path} has no description"
            );
            check(field, &path);
            check(&field["items"], &path);
        }
    }
    for crd in tablemount_operator::crds() {
        let crd = serde_json::to_value(crd).expect("JSON");
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        check(
            schema,
            crd["spec"]["names"]["kind"].as_str().expect("a kind"),
        );
    }
}

/// Unbounded strings and lists make CEL rules too costly for the API server, and objects too large for etcd.
#[test]
fn every_string_and_list_of_a_spec_is_bounded() {
    fn check(schema: &serde_json::Value, path: &str) {
        match schema["type"].as_str() {
            Some("string") => assert!(
                schema["maxLength"].is_u64() || schema["enum"].is_array(),
                "{path} has no maxLength"
            ),
            Some("array") => assert!(schema["maxItems"].is_u64(), "{path} has no maxItems"),
            _ => {}
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            check(field, &format!("{path}.{name}"));
        }
        if schema["items"].is_object() {
            check(&schema["items"], &format!("{path}[]"));
        }
    }
    for crd in tablemount_operator::crds() {
        let crd = serde_json::to_value(crd).expect("JSON");
        check(
            &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"],
            "spec",
        );
    }
}

#[test]
fn examples_can_be_applied_each_by_itself() {
    let mut clusters = Vec::new();
    for (file, expected) in [
        ("blog.yaml", &["blogtable", "usertable"][..]),
        ("map.yaml", &["map"]),
        ("stocks.yaml", &["stocks"]),
    ] {
        let path = format!("crds/examples/{file}");
        let objects =
            manifest::parse(&read(&path), &path).unwrap_or_else(|error| panic!("{error}"));
        let mut tables = Vec::new();
        for object in objects {
            match object {
                Object::TableCluster(cluster) => clusters.push(cluster),
                Object::Table(table) => {
                    assert_eq!(table.spec.cluster_ref.name, "main", "{path}");
                    tables.push(table.table_name().expect("a legal name").to_string());
                }
            }
        }
        assert_eq!(tables, expected, "{path}");
    }
    assert_eq!(clusters.len(), 3, "each file has its TableCluster");
    assert!(
        clusters.windows(2).all(|pair| pair[0] == pair[1]),
        "and it is the same in all"
    );
}
