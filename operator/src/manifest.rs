//! Reads manifests as `kubectl apply` takes them and refuses what the API server would refuse, with all of a document's
//! mistakes in one line: unknown fields, wrong types, bounds, enums and CEL rules.
//!
//! **Invariant**: the only source of the rules is the generated CRD; there is no second list of fields here.

mod schema;

use std::sync::LazyLock;

use kube::CustomResourceExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Error;
use crate::crd::{GROUP, Table, TableCluster, VERSION};

/// An object of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub enum Object {
    /// A TableCluster.
    TableCluster(Box<TableCluster>),
    /// A Table.
    Table(Box<Table>),
}

static TABLE_CLUSTER_SCHEMA: LazyLock<Value> = LazyLock::new(openapi::<TableCluster>);
static TABLE_SCHEMA: LazyLock<Value> = LazyLock::new(openapi::<Table>);

/// The objects of a file's YAML (or JSON) documents, in order; empty documents are passed over. `source` is the file's name.
pub fn parse(text: &str, source: &str) -> Result<Vec<Object>, Error> {
    let refuse = |reason: String| Error::Manifest {
        source_name: source.to_owned(),
        reason,
    };
    let mut objects = Vec::new();
    for (index, document) in serde_yaml::Deserializer::from_str(text).enumerate() {
        let number = index + 1;
        let yaml = serde_yaml::Value::deserialize(document)
            .map_err(|error| refuse(format!("document {number}: not YAML: {error}")))?;
        if yaml.is_null() {
            continue;
        }
        let value = serde_json::to_value(yaml).map_err(|error| {
            refuse(format!(
                "document {number}: not a Kubernetes object: {error}"
            ))
        })?;
        let object =
            object(value).map_err(|reason| refuse(format!("document {number}{reason}")))?;
        if objects.iter().any(|earlier| is_same(earlier, &object)) {
            return Err(refuse(format!(
                "document {number}{}: stands twice in the file",
                title(&object)
            )));
        }
        objects.push(object);
    }
    Ok(objects)
}

/// The object of a document; the error starts with what is known of the object.
fn object(value: Value) -> Result<Object, String> {
    let text = |field: &str| {
        value
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version.is_empty() || kind.is_empty() {
        return Err(": apiVersion and kind must be set".to_owned());
    }
    let ours = format!("{GROUP}/{VERSION}");
    match (api_version == ours, kind.as_str()) {
        (true, "Table") => Ok(Object::Table(Box::new(read(
            value,
            &kind,
            &TABLE_SCHEMA,
            Table::validate_cel,
        )?))),
        (true, "TableCluster") => {
            let read = read(
                value,
                &kind,
                &TABLE_CLUSTER_SCHEMA,
                TableCluster::validate_cel,
            )?;
            Ok(Object::TableCluster(Box::new(read)))
        }
        _ => Err(format!(
            ": {api_version} {kind} is not known here; {ours} has Table and TableCluster"
        )),
    }
}

fn read<K: DeserializeOwned>(
    value: Value,
    kind: &str,
    schema: &Value,
    check_rules: impl FnOnce(&K) -> Result<(), kube::core::cel::ValidationErrors>,
) -> Result<K, String> {
    let name = value
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let title = format!(" ({kind} \"{name}\")");
    let mut problems = schema::metadata_problems(&value);
    schema::check(schema, &value, "", &mut problems);
    if problems.is_empty() {
        let read: K = serde_json::from_value(value).map_err(|error| format!("{title}: {error}"))?;
        match check_rules(&read) {
            Ok(()) => return Ok(read),
            Err(errors) => problems.extend(errors.iter().map(rule_problem)),
        }
    }
    problems.dedup();
    Err(format!("{title}: {}", problems.join("; ")))
}

fn rule_problem(error: &kube::core::cel::ValidationError) -> String {
    match error.field_path.is_empty() {
        true => error.message.clone(),
        false => format!("{}: {}", error.field_path, error.message),
    }
}

fn title(object: &Object) -> String {
    let (kind, _, name) = identity(object);
    format!(" ({kind} \"{name}\")")
}

fn is_same(one: &Object, other: &Object) -> bool {
    identity(one) == identity(other)
}

fn identity(object: &Object) -> (&'static str, &str, &str) {
    let (kind, metadata) = match object {
        Object::TableCluster(cluster) => ("TableCluster", &cluster.metadata),
        Object::Table(table) => ("Table", &table.metadata),
    };
    (
        kind,
        metadata.namespace.as_deref().unwrap_or("default"),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// The schema of a kind's only version, with the fields that every object has.
fn openapi<K: CustomResourceExt>() -> Value {
    let schema = K::crd()
        .spec
        .versions
        .into_iter()
        .next()
        .and_then(|version| version.schema);
    let mut schema = serde_json::to_value(schema.and_then(|schema| schema.open_api_v3_schema))
        .unwrap_or_else(|error| unreachable!("a CRD is JSON: {error}"));
    for (field, kind) in [
        ("apiVersion", "string"),
        ("kind", "string"),
        ("metadata", "object"),
    ] {
        schema["properties"][field] = json!({ "type": kind });
    }
    schema
}

#[cfg(test)]
mod tests;
