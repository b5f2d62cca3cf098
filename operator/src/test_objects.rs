//! Objects for tests.

use serde_json::{Value, json};

use crate::crd::{Table, TableCluster};

/// The Table `name` in namespace `shop`, on TableCluster `main`, with more of the spec as YAML.
pub(crate) fn table(name: &str, spec: &str) -> Table {
    let mut object = object("Table", name, spec);
    object["spec"]["clusterRef"] = json!({"name": "main"});
    serde_json::from_value(object).expect("a Table")
}

/// The TableCluster `name` in namespace `shop`, with the spec as YAML.
pub(crate) fn cluster(name: &str, spec: &str) -> TableCluster {
    serde_json::from_value(object("TableCluster", name, spec)).expect("a TableCluster")
}

fn object(kind: &str, name: &str, spec: &str) -> Value {
    json!({
        "apiVersion": "tablemount.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": 1},
        "spec": serde_yaml::from_str::<Value>(spec).expect("YAML"),
    })
}
