//! What is measured of requests, and the recorder behind `/metrics`.
//!
//! Everything recorded in the process through the `metrics` crate appears there. Labels come from the table of routes, never
//! from requests, so their number is bounded.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// How often recorded durations are sorted into their buckets, whether or not somebody asks.
pub(crate) const UPKEEP: Duration = Duration::from_secs(5);

const REQUESTS: &str = "tablemount_http_requests_total";
const DURATION: &str = "tablemount_http_request_duration_seconds";
const IN_FLIGHT: &str = "tablemount_http_requests_in_flight";

const SECONDS: [f64; 14] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0,
];
const BYTES: [f64; 8] = [
    64.0,
    1024.0,
    16_384.0,
    131_072.0,
    1_048_576.0,
    8_388_608.0,
    67_108_864.0,
    536_870_912.0,
];

/// The process's recorder, installed at the first call.
pub(crate) fn recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let recorder = builder().build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!("another metrics recorder is installed: /metrics stays empty");
        }
        describe_counter!(REQUESTS, "Requests answered, by route, method and status");
        describe_histogram!(
            DURATION,
            "Time from a request's arrival to the end of its answer, by route and method"
        );
        describe_gauge!(IN_FLIGHT, "Requests being served");
        handle
    })
}

fn builder() -> PrometheusBuilder {
    // Refused only without buckets.
    let with = |builder: PrometheusBuilder, suffix: &str, buckets: &[f64]| {
        builder
            .set_buckets_for_metric(Matcher::Suffix(suffix.to_owned()), buckets)
            .unwrap_or_default()
    };
    with(
        with(PrometheusBuilder::new(), "_seconds", &SECONDS),
        "_bytes",
        &BYTES,
    )
}

/// Measures a request from its start to when it is dropped.
pub(crate) struct Measured {
    started: Instant,
    method: &'static str,
    route: &'static str,
    status: StatusCode,
}

impl Measured {
    pub(crate) fn start(method: &'static str, route: &'static str) -> Self {
        gauge!(IN_FLIGHT).increment(1.0);
        // What a request counts as that is dropped before it has a status: nginx's "client closed request".
        let status = StatusCode::from_u16(499).unwrap_or_default();
        Self {
            started: Instant::now(),
            method,
            route,
            status,
        }
    }

    pub(crate) fn status(&mut self, status: StatusCode) {
        self.status = status;
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        let (method, route, elapsed) = (self.method, self.route, self.started.elapsed());
        tracing::debug!(
            method,
            route,
            status = self.status.as_u16(),
            ?elapsed,
            "request"
        );
        gauge!(IN_FLIGHT).decrement(1.0);
        counter!(REQUESTS, "route" => route, "method" => method, "status" => self.status.as_str().to_owned())
            .increment(1);
        histogram!(DURATION, "route" => route, "method" => method).record(elapsed);
    }
}
