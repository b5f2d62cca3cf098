//! Probes, metrics, addresses and gRPC health of a server that starts and stops.

use std::sync::Arc;

use crate::support::*;
use tablemount_engine::access::StaticAuthenticator;
use tablemount_engine::http::HttpServer;

#[tokio::test(flavor = "multi_thread")]
async fn probes_answer_before_the_store_is_open() {
    let server = Start {
        open: false,
        ..Start::default()
    }
    .run()
    .await;
    assert_eq!(server.send("GET /healthz HTTP/1.1", b"").await.status, 200);
    let opening = (
        503,
        "Unavailable".to_owned(),
        "the store is still opening".to_owned(),
    );
    assert_eq!(server.refusal("GET /readyz HTTP/1.1", b"").await, opening);
    assert_eq!(
        server.refusal("GET /v1/tables HTTP/1.1", b"").await,
        opening
    );
    server.open().await;
    assert_eq!(server.send("GET /readyz HTTP/1.1", b"").await.status, 200);
    server.client().tables().await.expect("served");

    let metrics = server.send("GET /metrics HTTP/1.1", b"").await;
    assert_eq!(
        metrics.header("content-type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    let text = metrics.text();
    for line in [
        "tablemount_http_requests_total{route=\"/v1/tables\",method=\"GET\",status=\"200\"}",
        "tablemount_http_request_duration_seconds_bucket{route=\"/v1/tables\",method=\"GET\",le=\"0.001\"}",
        "tablemount_http_requests_in_flight ",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named() {
    let server = Server::start().await;
    let address = server.address.to_string();
    let authenticator = Arc::new(StaticAuthenticator::default());
    let error = HttpServer::bind(&address, authenticator.clone(), server.slot.clone())
        .await
        .err()
        .expect("in use");
    assert_eq!(
        error.to_string(),
        format!("listen on {address}: the port is in use by another process")
    );
    let error = tablemount_engine::GrpcServer::bind(&address, authenticator, server.slot.clone())
        .await
        .err()
        .expect("in use");
    assert_eq!(
        error.to_string(),
        format!("listen on {address}: the port is in use by another process")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_health_follows_the_engine() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;

    let server = Start {
        open: false,
        ..Start::default()
    }
    .run()
    .await;
    let authenticator = Arc::new(StaticAuthenticator::default());
    let grpc =
        tablemount_engine::GrpcServer::bind("127.0.0.1:0", authenticator, server.slot.clone())
            .await
            .expect("bound");
    let (address, stop) = (
        grpc.local_addr(),
        tokio_util::sync::CancellationToken::new(),
    );
    let task = tokio::spawn(grpc.serve(stop.clone()));
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}"));
    let channel = endpoint.expect("valid").connect().await;
    let mut client = HealthClient::new(channel.expect("connected"));
    let mut status = async || {
        let request = HealthCheckRequest {
            service: String::new(),
        };
        client
            .check(request)
            .await
            .expect("answered")
            .into_inner()
            .status()
    };
    assert_eq!(status().await, ServingStatus::NotServing);
    server.open().await;
    until("the engine to serve", async || {
        (status().await == ServingStatus::Serving).then_some(())
    })
    .await;
    stop.cancel();
    tokio::time::timeout(PATIENCE, task)
        .await
        .expect("ends")
        .expect("no panic")
        .expect("no error");
}
