//! Statistics as clients and Prometheus see them.

use std::collections::{BTreeMap, BTreeSet};

use tablemount_api::{ReadRequest, Timestamp};

use crate::support::*;

/// Samples by name and labels; every one must follow its TYPE line.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let mut declared = BTreeSet::new();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let name = rest.split(' ').next().expect("a name");
            assert!(declared.insert(name), "{name} is declared twice");
        } else if !line.starts_with('#') && !line.is_empty() {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            let base = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .filter(|base| declared.contains(base))
                .unwrap_or(name);
            assert!(declared.contains(base), "{name} is not declared");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            let before = samples.insert(series.to_owned(), value);
            assert_eq!(before, None, "{series} comes twice");
        }
    }
    samples
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_and_metrics_tell_the_same() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("t"), &families(&["f", "g"]))
        .await
        .expect("table");
    let rows = (0..10).map(|i| {
        (
            row(format!("r{i}")),
            vec![put("f", "q", 1, "value"), put("f", "r", 1, "value")],
        )
    });
    client
        .mutate(&table("t"), &mutate(rows))
        .await
        .expect("written");
    assert_eq!(all(&client, ReadRequest::default()).await.len(), 10);

    let stats = client.table_stats(&table("t")).await.expect("stats");
    let tablet = &stats.tablets[0];
    assert_eq!(
        (
            stats.families[0].cells_written,
            stats.families[1].cells_written
        ),
        (20, 0)
    );
    assert_eq!((tablet.reads, tablet.writes), (1, 10));
    assert!(
        tablet
            .oldest_unflushed_seconds
            .is_some_and(|seconds| seconds < 60.0)
    );
    assert!(tablet.log_bytes_held > 0 && stats.memtable_bytes > 0);
    let of_server = client.server_stats().await.expect("stats");
    assert!(of_server.log_sync.count > 0 && of_server.log_sync.max_micros > 0);
    assert_eq!(of_server.memtable_bytes, stats.memtable_bytes);
    assert!(of_server.replay.bytes > 0 && of_server.started > Timestamp(0));

    let text = server.send("GET /metrics HTTP/1.1", b"").await.text();
    let samples = samples(&text);
    let sample = |series: &str| {
        *samples
            .get(series)
            .unwrap_or_else(|| panic!("{series} in {text}"))
    };
    let family = "{table=\"t\",family=\"f\"}";
    assert_eq!(
        sample(&format!("tablemount_family_cells_written_total{family}")),
        20.0
    );
    assert_eq!(
        sample(&format!("tablemount_family_memtable_bytes{family}")),
        stats.memtable_bytes as f64
    );
    assert_eq!(sample("tablemount_table_writes_total{table=\"t\"}"), 10.0);
    assert_eq!(sample("tablemount_tables"), 1.0);
    assert_eq!(
        sample("tablemount_used_bytes{budget=\"memtables\"}"),
        stats.memtable_bytes as f64
    );
    assert_eq!(
        sample("tablemount_budget_bytes{budget=\"log\"}"),
        of_server.log_budget_bytes as f64
    );

    let engine = server.slot.get().expect("open");
    engine.compact(&table("t"), None).await.expect("compacted");
    let flushed = client.table_stats(&table("t")).await.expect("stats");
    assert_eq!((flushed.families[0].entries, flushed.files), (20, 1));
    assert!(flushed.raw_bytes > 0 && flushed.disk_bytes > 0);
    assert_eq!(
        (
            flushed.memtable_bytes,
            flushed.tablets[0].oldest_unflushed_seconds
        ),
        (0, None)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_forget_a_table_that_was_dropped() {
    let server = Server::start().await;
    let client = server.client();
    client
        .put_table(&table("gone"), &families(&["f"]))
        .await
        .expect("table");
    let names = async || {
        let text = server.send("GET /metrics HTTP/1.1", b"").await.text();
        samples(&text)
            .into_keys()
            .filter(|series| series.contains("table=\"gone\""))
            .count()
    };
    assert!(names().await > 5);
    client
        .drop_table(&table("gone"), &Default::default())
        .await
        .expect("dropped");
    assert_eq!(names().await, 0);
}
