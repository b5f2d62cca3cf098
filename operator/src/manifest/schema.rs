//! Checks a JSON value against the structural schema of a CRD, as the API server does with strict field validation. CEL
//! rules are not checked here.

use serde_json::{Map, Value};

/// What the API server takes in `metadata`, which a CRD's schema does not describe.
const METADATA_FIELDS: [&str; 14] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];
const MAX_NAME_CHARS: usize = 253;

/// What is wrong with the object's `metadata`.
pub(super) fn metadata_problems(object: &Value) -> Vec<String> {
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else {
        return vec!["metadata.name must be set".to_owned()];
    };
    let mut problems = Vec::new();
    unknown_fields(metadata.keys(), &METADATA_FIELDS, "metadata", &mut problems);
    match metadata.get("name").and_then(Value::as_str) {
        None => problems.push("metadata.name must be set".to_owned()),
        Some(name) if !is_dns_subdomain(name) => problems.push(format!(
            "metadata.name {name:?} is not at most {MAX_NAME_CHARS} of a-z, 0-9, '-' and '.', starting and ending with a letter or digit"
        )),
        Some(_) => {}
    }
    problems
}

fn is_dns_subdomain(name: &str) -> bool {
    let label = |label: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c != '-');
        label
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && edge(label.chars().next())
            && edge(label.chars().next_back())
    };
    name.len() <= MAX_NAME_CHARS && name.split('.').all(label)
}

/// Adds to `problems` what is wrong with `value`, which stands at `path`.
pub(super) fn check(schema: &Value, value: &Value, path: &str, problems: &mut Vec<String>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if !has_type(schema, value) {
        return problems.push(wrong_type(schema, value, path));
    }
    check_enum(schema, value, path, problems);
    match value {
        Value::Object(fields) => check_object(schema, fields, path, problems),
        Value::Array(items) => check_array(schema, items, path, problems),
        Value::String(text) => {
            let bounds = Bounds::new(schema, "minLength", "maxLength");
            bounds.check(
                text.chars().count() as f64,
                || format!("{path} has {} characters", text.chars().count()),
                problems,
            );
        }
        Value::Number(number) => {
            let bounds = Bounds::new(schema, "minimum", "maximum");
            bounds.check(
                number.as_f64().unwrap_or(f64::NAN),
                || format!("{path} is {number}"),
                problems,
            );
        }
        Value::Bool(_) | Value::Null => {}
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_string() || value.is_i64();
    }
    match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64(),
        Some("number") => value.is_number(),
        _ => true,
    }
}

fn wrong_type(schema: &Value, value: &Value, path: &str) -> String {
    let wanted = schema["type"].as_str().unwrap_or("integer or string");
    let article = if wanted.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    let quote = if wanted == "string" && !value.is_object() && !value.is_array() {
        "; put it in quotes"
    } else {
        ""
    };
    let shown: String = value.to_string().chars().take(100).collect();
    format!("{path} is {shown}; it must be {article} {wanted}{quote}")
}

fn check_enum(schema: &Value, value: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(allowed) = schema["enum"].as_array() else {
        return;
    };
    if !allowed.contains(value) {
        let choices: Vec<_> = allowed.iter().filter_map(Value::as_str).collect();
        problems.push(format!(
            "{path} is {value}; it must be one of {}",
            choices.join(", ")
        ));
    }
}

fn check_object(
    schema: &Value,
    fields: &Map<String, Value>,
    path: &str,
    problems: &mut Vec<String>,
) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    let allowed: Vec<_> = properties.keys().map(String::as_str).collect();
    unknown_fields(fields.keys(), &allowed, path, problems);
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    problems.extend(
        required
            .filter(|field| !fields.contains_key(*field))
            .map(|field| format!("{} must be set", join(path, field))),
    );
    for (name, value) in fields {
        if let Some(schema) = properties.get(name) {
            check(schema, value, &join(path, name), problems);
        }
    }
}

fn unknown_fields<'a>(
    fields: impl Iterator<Item = &'a String>,
    allowed: &[&str],
    path: &str,
    problems: &mut Vec<String>,
) {
    let unknown = fields.filter(|field| !allowed.contains(&field.as_str()));
    problems.extend(unknown.map(|field| {
        format!(
            "unknown field {} (known: {})",
            join(path, field),
            allowed.join(", ")
        )
    }));
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() {
        field.to_owned()
    } else {
        format!("{path}.{field}")
    }
}

fn check_array(schema: &Value, items: &[Value], path: &str, problems: &mut Vec<String>) {
    let bounds = Bounds::new(schema, "minItems", "maxItems");
    bounds.check(
        items.len() as f64,
        || format!("{path} has {} items", items.len()),
        problems,
    );
    for (index, item) in items.iter().enumerate() {
        check(
            &schema["items"],
            item,
            &format!("{path}[{index}]"),
            problems,
        );
    }
    if let Some(twice) = repeated(schema, items) {
        problems.push(format!("{path}: {twice} stands twice"));
    }
}

/// The first item of a set, or key of a map, that an earlier one has too.
fn repeated(schema: &Value, items: &[Value]) -> Option<String> {
    let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let identity = |item: &Value| match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(item.to_string()),
        Some("map") => Some(
            keys.iter()
                .map(|key| format!("{key} {}", item[key]))
                .collect::<Vec<_>>()
                .join(", "),
        ),
        _ => None,
    };
    let mut seen = std::collections::BTreeSet::new();
    items
        .iter()
        .filter_map(identity)
        .find(|item| !seen.insert(item.clone()))
}

/// Bounds of a number, a length or a count.
struct Bounds {
    min: Option<f64>,
    max: Option<f64>,
}

impl Bounds {
    fn new(schema: &Value, min: &str, max: &str) -> Self {
        Self {
            min: schema[min].as_f64(),
            max: schema[max].as_f64(),
        }
    }

    fn check(&self, value: f64, what: impl FnOnce() -> String, problems: &mut Vec<String>) {
        let (below, above) = (
            self.min.is_some_and(|min| value < min),
            self.max.is_some_and(|max| value > max),
        );
        if below || above {
            let limit = match (self.min, self.max) {
                (Some(min), Some(max)) => format!("{min} to {max}"),
                (Some(min), None) => format!("at least {min}"),
                (_, max) => format!("at most {}", max.unwrap_or_default()),
            };
            problems.push(format!("{}; it must be {limit}", what()));
        }
    }
}
