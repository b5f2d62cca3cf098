//! The table of routes: method, path, the access needed, the handler. Router, metrics and OpenAPI test go by it.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::app::App;
use super::edge::{self, Guarded};
use super::{cells, probes, tables, upkeep, value};
use crate::access::Access;

/// One way to ask for something.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    needs: Option<Access>,
    handler: MethodRouter<Arc<App>>,
}

/// All routes. Further edges (listing grants, backups) add theirs here.
pub(crate) fn routes() -> Vec<Route> {
    let (read, write) = (Some(Access::Read), Some(Access::ReadWrite));
    vec![
        route("GET", "/healthz", None, probes::healthz),
        route("GET", "/readyz", None, probes::readyz),
        route("GET", "/metrics", None, probes::metrics),
        route("GET", "/v1/openapi.json", read, tables::openapi),
        route("GET", "/v1/stats", read, tables::server_stats),
        route("GET", "/v1/hold", read, upkeep::hold),
        route("PUT", "/v1/hold", write, upkeep::set_hold),
        route("GET", "/v1/tables", read, tables::list),
        route("GET", "/v1/tables/{table}", read, tables::get),
        route("PUT", "/v1/tables/{table}", write, tables::put),
        route("DELETE", "/v1/tables/{table}", write, tables::drop),
        route("GET", "/v1/tables/{table}/stats", read, tables::stats),
        route("POST", "/v1/tables/{table}/compact", write, upkeep::compact),
        route("POST", "/v1/tables/{table}/mutate", write, cells::mutate),
        route(
            "POST",
            "/v1/tables/{table}/delete-rows",
            write,
            cells::delete_rows,
        ),
        route("GET", "/v1/tables/{table}/read", read, cells::read),
        route("POST", "/v1/tables/{table}/read", read, cells::post_read),
        route("GET", "/v1/tables/{table}/value", read, value::get),
        route("HEAD", "/v1/tables/{table}/value", read, value::head),
        route("POST", "/v1/tables/{table}/value", read, value::post),
        route("PUT", "/v1/tables/{table}/value", write, value::put),
    ]
}

fn route<H, T>(method: &'static str, path: &'static str, needs: Option<Access>, handler: H) -> Route
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    let filter = match method {
        "GET" => MethodFilter::GET,
        "HEAD" => MethodFilter::HEAD,
        "PUT" => MethodFilter::PUT,
        "DELETE" => MethodFilter::DELETE,
        _ => MethodFilter::POST,
    };
    Route {
        method,
        path,
        needs,
        handler: on(filter, handler),
    }
}

/// Everything that is served.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for Route {
        method,
        path,
        needs,
        handler,
    } in routes()
    {
        let guarded = Guarded {
            app: Arc::clone(app),
            method,
            path,
            needs,
        };
        router = router.route(
            path,
            handler.route_layer(from_fn_with_state(guarded, edge::serve)),
        );
    }
    router
        .fallback(edge::not_found)
        .method_not_allowed_fallback(edge::method_not_allowed)
        .with_state(Arc::clone(app))
}
