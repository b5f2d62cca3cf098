//! The description of `/v1` in OpenAPI, made from the handlers and the types of `tablemount_api`.

use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{HttpMethod, ObjectBuilder, OpenApi as Document, RefOr, Required};
use utoipa::{Modify, OpenApi};

use super::query::is_bytes;
use super::{cells, probes, tables, upkeep, value};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tablemount",
        description = "Tables of cells: row key, column family, qualifier, timestamp, value. In JSON, bytes are standard \
                       base64 with padding; timestamps are microseconds since 1970, 0 or more. Every error is an ErrorBody."
    ),
    paths(
        tables::list,
        tables::get,
        tables::put,
        tables::drop,
        tables::stats,
        tables::server_stats,
        tables::openapi,
        upkeep::compact,
        upkeep::hold,
        upkeep::set_hold,
        cells::mutate,
        cells::delete_rows,
        cells::read,
        cells::post_read,
        value::get,
        value::head,
        value::post,
        value::put,
        probes::healthz,
        probes::readyz,
        probes::metrics
    ),
    security(("bearer" = []), ()),
    modifiers(&Additions)
)]
struct Description;

/// The whole description.
pub(crate) fn document() -> Document {
    Description::openapi()
}

/// What attributes cannot say.
struct Additions;

impl Modify for Additions {
    fn modify(&self, document: &mut Document) {
        if let Some(components) = &mut document.components {
            let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
            components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        }
        let read = query_parameters(document, "ReadRequest");
        let value = query_parameters(document, "ValueRequest");
        let mut add = |path: &str, method: HttpMethod, parameters: &[Parameter]| {
            let operation = document
                .paths
                .paths
                .get_mut(path)
                .and_then(|item| match method {
                    HttpMethod::Head => item.head.as_mut(),
                    _ => item.get.as_mut(),
                });
            if let Some(operation) = operation {
                operation
                    .parameters
                    .get_or_insert_default()
                    .extend_from_slice(parameters);
            }
        };
        add("/v1/tables/{table}/read", HttpMethod::Get, &read);
        add("/v1/tables/{table}/value", HttpMethod::Get, &value);
        add("/v1/tables/{table}/value", HttpMethod::Head, &value);
    }
}

/// A body's fields as they stand in a query.
fn query_parameters(document: &Document, body: &str) -> Vec<Parameter> {
    let schema = document
        .components
        .as_ref()
        .and_then(|components| components.schemas.get(body));
    let Some(RefOr::T(Schema::Object(object))) = schema else {
        return Vec::new();
    };
    let parameter = |(name, schema): (&String, &RefOr<Schema>)| {
        let text = || {
            RefOr::T(Schema::Object(
                ObjectBuilder::new().schema_type(Type::String).build(),
            ))
        };
        let described = serde_json::to_value(schema).unwrap_or_default();
        let description = described
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let (schema, note) = match is_bytes(name) {
            true => (text(), " Percent-encoded bytes."),
            false if name == "after" => (text(), " As JSON."),
            false => (schema.clone(), ""),
        };
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .required(if object.required.contains(name) {
                Required::True
            } else {
                Required::False
            })
            .description(Some(format!("{description}{note}")))
            .schema(Some(schema))
            .style((name == "families").then_some(ParameterStyle::Form))
            .explode((name == "families").then_some(false))
            .build()
    };
    object.properties.iter().map(parameter).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::routes::routes;

    fn json() -> Value {
        serde_json::to_value(document()).expect("serializable")
    }

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let described: BTreeSet<_> = json()["paths"]
            .as_object()
            .expect("paths")
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods");
                methods
                    .keys()
                    .map(|method| format!("{} {path}", method.to_uppercase()))
                    .collect::<Vec<_>>()
            })
            .collect();
        let served: BTreeSet<_> = routes()
            .iter()
            .map(|route| format!("{} {}", route.method, route.path))
            .collect();
        assert_eq!(described, served);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = json();
        let text = document.to_string();
        let references: BTreeSet<_> = text.split("\"#/components/schemas/").skip(1).collect();
        assert!(references.len() > 10);
        for reference in references {
            let name = reference.split('"').next().expect("a name");
            assert!(
                document["components"]["schemas"][name].is_object(),
                "{name}"
            );
        }
        assert_eq!(
            document["components"]["securitySchemes"]["bearer"]["scheme"],
            "bearer"
        );
    }

    #[test]
    fn queries_have_the_fields_of_the_bodies() {
        let document = json();
        let fields = |path: &str| -> BTreeSet<String> {
            let parameters = document["paths"][path]["get"]["parameters"]
                .as_array()
                .expect("parameters");
            let query = parameters
                .iter()
                .filter(|parameter| parameter["in"] == "query");
            query
                .map(|parameter| parameter["name"].as_str().expect("a name").to_owned())
                .collect()
        };
        let properties = |body: &str| -> BTreeSet<String> {
            let properties = document["components"]["schemas"][body]["properties"]
                .as_object()
                .expect("properties");
            properties.keys().cloned().collect()
        };
        assert_eq!(fields("/v1/tables/{table}/read"), properties("ReadRequest"));
        assert_eq!(
            fields("/v1/tables/{table}/value"),
            properties("ValueRequest")
        );
    }
}
