//! Against a double of the engine's four table routes: compare-and-set on the version, drops by uid, statistics, and nothing
//! more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Json;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::routing::get;
use tablemount_api::{ApiError, ErrorBody, FamilyInfo, Timestamp as Micros};
use tablemount_client::Config;

use super::*;
use crate::crd::{BloomFilter, ChangeClass, CompressionScope};

/// Tables by name, the bodies that were put, and what to do before the next put.
#[derive(Default)]
struct Engine {
    tables: BTreeMap<String, TableInfo>,
    puts: Vec<PutTable>,
    rival: Option<PutTable>,
    loses_next_family: bool,
    /// How often statistics were asked for; the size that they tell.
    asked_for_stats: u64,
}

type Shared = Arc<Mutex<Engine>>;
type Answer<T> = Result<T, (StatusCode, Json<ErrorBody>)>;

fn error<T>(code: ErrorCode, message: &str) -> Answer<T> {
    let status = StatusCode::from_u16(code.http_status()).expect("a status");
    Err((
        status,
        Json(ErrorBody {
            error: ApiError {
                code,
                message: message.to_owned(),
            },
        }),
    ))
}

impl Engine {
    fn put(&mut self, name: &str, body: &PutTable) -> Answer<Json<TableInfo>> {
        let existing = self.tables.get(name);
        let version = existing.map_or(0, |table| table.version);
        if body.if_version.is_some_and(|wanted| wanted != version) {
            return error(ErrorCode::Conflict, "the version is another");
        }
        let families = body
            .families
            .iter()
            .zip(1..)
            .map(|(schema, id)| FamilyInfo {
                id,
                schema: schema.clone(),
            })
            .collect();
        let info = TableInfo {
            name: TableName::new(name).expect("valid"),
            uid: existing.map_or_else(|| format!("uid-of-{name}"), |table| table.uid.clone()),
            version: version + 1,
            created: Micros(0),
            families,
            splits: existing.map_or_else(|| body.splits.clone(), |table| table.splits.clone()),
            deletion_protection: false,
            owner: body
                .owner
                .clone()
                .or_else(|| existing.and_then(|table| table.owner.clone())),
        };
        self.tables.insert(name.to_owned(), info.clone());
        Ok(Json(info))
    }
}

async fn get_table(
    State(engine): State<Shared>,
    Path(name): Path<String>,
) -> Answer<Json<TableInfo>> {
    match engine.lock().expect("not poisoned").tables.get(&name) {
        Some(table) => Ok(Json(table.clone())),
        None => error(ErrorCode::NotFound, "table not found"),
    }
}

async fn put_table(
    State(engine): State<Shared>,
    Path(name): Path<String>,
    Json(body): Json<PutTable>,
) -> Answer<Json<TableInfo>> {
    let mut engine = engine.lock().expect("not poisoned");
    engine.puts.push(body.clone());
    if let Some(rival) = engine.rival.take() {
        let _ = engine.put(&name, &rival)?;
    }
    let answer = engine.put(&name, &body);
    if std::mem::take(&mut engine.loses_next_family) {
        engine.tables.get_mut(&name).expect("put").families.pop();
    }
    answer
}

async fn drop_it(
    State(engine): State<Shared>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Answer<()> {
    let mut engine = engine.lock().expect("not poisoned");
    let wanted = engine
        .tables
        .get(&name)
        .map(|table| format!("ifUid={}", table.uid));
    if wanted != query {
        return error(ErrorCode::Conflict, "the uid is another");
    }
    engine.tables.remove(&name);
    Ok(())
}

async fn get_stats(
    State(engine): State<Shared>,
    Path(name): Path<String>,
) -> Answer<Json<TableStats>> {
    let mut engine = engine.lock().expect("not poisoned");
    engine.asked_for_stats += 1;
    Ok(Json(TableStats {
        table: TableName::new(name).expect("valid"),
        disk_bytes: engine.asked_for_stats,
        raw_bytes: 0,
        files: 1,
        memtable_bytes: 0,
        estimated_debt_bytes: 0,
        estimated_rows: 0,
        families: Vec::new(),
        tablets: Vec::new(),
    }))
}

async fn serve() -> (Shared, Client) {
    let engine = Shared::default();
    let routes = get(get_table).put(put_table).delete(drop_it);
    let app = axum::Router::new()
        .route("/v1/tables/{table}", routes)
        .route("/v1/tables/{table}/stats", get(get_stats))
        .with_state(Arc::clone(&engine));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (engine, Client::new(Config::new(url)).expect("a client"))
}

async fn apply(client: &Client, spec: &str) -> TableOutcome {
    let object = crate::test_objects::table("t", spec);
    table(client, &object, &owner("k8s", &object)).await
}

fn said(outcome: &TableOutcome) -> (bool, Reason, &str) {
    (outcome.ready, outcome.reason, &outcome.message)
}

#[tokio::test]
async fn a_table_is_made_changed_and_left_alone() {
    let (engine, client) = serve().await;
    let spec = "{families: [{name: a, maxVersions: 3}], splits: [k, m]}";
    assert_eq!(
        said(&apply(&client, spec).await),
        (true, Reason::Applied, "1 column family, schema version 1")
    );
    assert_eq!(
        said(&apply(&client, spec).await),
        (true, Reason::Applied, "1 column family, schema version 1")
    );
    let more = "{families: [{name: a, maxVersions: 3}, {name: b}], splits: [k, m]}";
    assert_eq!(
        said(&apply(&client, more).await),
        (true, Reason::Applied, "2 column families, schema version 2")
    );

    let engine = engine.lock().expect("not poisoned");
    let versions: Vec<_> = engine
        .puts
        .iter()
        .map(|put| (put.if_version, put.splits.len()))
        .collect();
    assert_eq!(versions, [(Some(0), 2), (Some(1), 0)]);
    assert_eq!(
        engine.tables["t"]
            .owner
            .as_ref()
            .map(|owner| owner.uid.as_str()),
        Some("uid-t")
    );
}

#[tokio::test]
async fn drift_is_set_back() {
    let (engine, client) = serve().await;
    apply(&client, "families: [{name: a}]").await;
    engine
        .lock()
        .expect("not poisoned")
        .tables
        .get_mut("t")
        .expect("made")
        .families[0]
        .schema
        .in_memory = true;
    let outcome = apply(&client, "families: [{name: a}]").await;
    assert_eq!(
        outcome.applied[0].description,
        "column family \"a\": inMemory true becomes false"
    );
    assert!(outcome.ready);
}

#[tokio::test]
async fn without_consent_the_old_schema_serves() {
    let (engine, client) = serve().await;
    apply(&client, "families: [{name: a}, {name: b}]").await;
    let outcome = apply(&client, "families: [{name: a, maxVersions: 1}, {name: c}]").await;
    assert_eq!(
        said(&outcome),
        (
            false,
            Reason::ConsentRequired,
            "nothing was changed, for this deletes data: column family \"a\" collects versions beyond the newest; until now it keeps every version (add {tightenGC: a} to spec.allow); drop column family \"b\" and its data (add {dropFamily: b} to spec.allow)"
        )
    );
    let classes: Vec<_> = outcome.pending.iter().map(|change| change.class).collect();
    assert_eq!(
        classes,
        [
            ChangeClass::Destructive,
            ChangeClass::Online,
            ChangeClass::Destructive
        ]
    );
    assert_eq!(
        engine.lock().expect("not poisoned").puts.len(),
        1,
        "nothing half-done"
    );

    let consenting = "{families: [{name: a, maxVersions: 1}, {name: c}], allow: [{tightenGC: a}, {dropFamily: b}]}";
    let outcome = apply(&client, consenting).await;
    assert_eq!(
        said(&outcome),
        (true, Reason::Applied, "2 column families, schema version 2")
    );
    assert_eq!(
        engine.lock().expect("not poisoned").puts[1].drop_families,
        [tablemount_api::FamilyName::new("b").expect("valid")]
    );
    assert_eq!(
        said(&apply(&client, consenting).await).2,
        "2 column families, schema version 2; spec.allow matches nothing pending: {dropFamily: b}, {tightenGC: a}"
    );
}

#[tokio::test]
async fn lost_races_are_run_again() {
    let (engine, client) = serve().await;
    apply(&client, "families: [{name: a}]").await;
    let rival = Desired::new(&crate::test_objects::table(
        "t",
        "families: [{name: a, inMemory: true}]",
    ))
    .expect("valid")
    .put_table();
    engine.lock().expect("not poisoned").rival = Some(rival);
    let outcome = apply(&client, "families: [{name: a}, {name: b}]").await;
    assert_eq!(
        said(&outcome),
        (true, Reason::Applied, "2 column families, schema version 3")
    );
}

#[tokio::test]
async fn ready_only_after_reading_back() {
    let (engine, client) = serve().await;
    engine.lock().expect("not poisoned").loses_next_family = true;
    let object = crate::test_objects::table("t", "families: [{name: a}, {name: b}]");
    let owner = owner("k8s", &object);
    let outcome = attempt(&client, &Desired::new(&object).expect("valid"), &owner).await;
    assert_eq!(
        (outcome.ready, outcome.reason),
        (false, Reason::ChangedMeanwhile)
    );
}

#[tokio::test]
async fn what_does_not_answer_and_what_refuses_differ() {
    let (_, client) = serve().await;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", closed.local_addr().expect("an address"));
    drop(closed);
    let outcome = apply(
        &Client::new(Config::new(&url)).expect("a client"),
        "families: [{name: a}]",
    )
    .await;
    assert_eq!(outcome.reason, Reason::EngineUnreachable);
    assert!(outcome.message.contains(&url), "{}", outcome.message);

    let outcome = apply(&client, "families: [{name: a, maxVersions: 0}]").await;
    assert_eq!(
        said(&outcome),
        (
            false,
            Reason::InvalidSpec,
            "column family \"a\": maxVersions is 0; it must be 1 or more"
        )
    );
}

#[tokio::test]
async fn drops_only_its_own() {
    let (engine, client) = serve().await;
    let object = crate::test_objects::table("t", "families: [{name: a}]");
    let (ours, name) = (owner("k8s", &object), object.table_name().expect("valid"));
    assert_eq!(
        drop_table(&client, &name, &ours, false).await,
        DropOutcome::Absent
    );

    table(&client, &object, &ours).await;
    let other = Owner {
        uid: "another".to_owned(),
        ..ours.clone()
    };
    assert_eq!(
        drop_table(&client, &name, &other, false).await,
        DropOutcome::NotOurs
    );
    engine
        .lock()
        .expect("not poisoned")
        .tables
        .get_mut("t")
        .expect("made")
        .owner = None;
    assert_eq!(
        drop_table(&client, &name, &ours, false).await,
        DropOutcome::NotOurs
    );

    engine
        .lock()
        .expect("not poisoned")
        .tables
        .get_mut("t")
        .expect("made")
        .owner = Some(ours.clone());
    assert_eq!(
        drop_table(&client, &name, &other, true).await,
        DropOutcome::NotOurs
    );
    assert_eq!(
        drop_table(&client, &name, &ours, true).await,
        DropOutcome::DeclaredByOther
    );
    assert_eq!(
        drop_table(&client, &name, &ours, false).await,
        DropOutcome::Dropped
    );
    assert!(engine.lock().expect("not poisoned").tables.is_empty());
}

/// By `status.tableUid` a Table is known as the one that has the table.
#[tokio::test]
async fn only_the_owners_status_has_the_tables_uid() {
    let (_, client) = serve().await;
    let first = crate::test_objects::table("t", "families: [{name: a}]");
    table(&client, &first, &owner("k8s", &first)).await;

    let refused = crate::test_objects::table("u", "tableName: t\nfamilies: [{name: a}]");
    let without_consent = crate::test_objects::table(
        "v",
        "tableName: t\nadoptExisting: true\nfamilies: [{name: b}]",
    );
    let adopts = crate::test_objects::table(
        "w",
        "tableName: t\nadoptExisting: true\nfamilies: [{name: a}]",
    );
    let at = Timestamp::UNIX_EPOCH;
    for (object, reason, uid) in [
        (&refused, Reason::OwnedByOther, None),
        (&without_consent, Reason::ConsentRequired, None),
        (&adopts, Reason::Applied, Some("uid-of-t")),
        (&first, Reason::OwnedByOther, None),
    ] {
        let mut object = object.clone();
        object.status = Some(TableStatus {
            table_uid: Some("from before".to_owned()),
            ..TableStatus::default()
        });
        let outcome = table(&client, &object, &owner("k8s", &object)).await;
        assert_eq!(outcome.reason, reason, "{}", outcome.message);
        assert_eq!(outcome.status(&object, at).table_uid.as_deref(), uid);
    }
}

#[tokio::test]
async fn status_tells_what_was_read_back_and_keeps_what_was_not() {
    let (_, client) = serve().await;
    let mut object = crate::test_objects::table(
        "t",
        "families: [{name: a, maxVersions: 3, compression: {type: Lz4, scope: Record}, bloomFilter: None, blockCache: false}]",
    );
    let at = Timestamp::UNIX_EPOCH;
    let status = table(&client, &object, &owner("k8s", &object))
        .await
        .status(&object, at);
    assert_eq!(status.conditions[0].status, "True");
    assert_eq!(
        (status.observed_generation, status.observed_schema_version),
        (Some(1), Some(1))
    );
    assert_eq!(status.table_uid.as_deref(), Some("uid-of-t"));
    let family = &status.families[0];
    assert_eq!(
        (family.gc_rule.as_str(), family.block_size_bytes),
        ("collects versions beyond the newest 3", 4096)
    );
    assert_eq!(
        (
            family.compression_scope,
            family.bloom_filter,
            family.block_cache
        ),
        (CompressionScope::Record, BloomFilter::None, false)
    );

    object.metadata.generation = Some(2);
    object.status = Some(status.clone());
    let failed =
        TableOutcome::failed(Reason::EngineUnreachable, "gone".to_owned()).status(&object, at);
    assert_eq!(
        (failed.families, failed.observed_schema_version),
        (status.families, Some(1))
    );
    assert_eq!(
        (
            failed.observed_generation,
            failed.conditions[0].status.as_str()
        ),
        (Some(2), "False")
    );
}

#[test]
fn objects_without_a_uid_are_known_by_their_place() {
    let mut object = crate::test_objects::table("t", "families: [{name: a}]");
    object.metadata.uid = None;
    object.metadata.namespace = None;
    assert_eq!(owner("up", &object).uid, "default/t");
}

#[tokio::test]
async fn statistics_are_taken_once_a_minute_of_tables_that_are_ones_own() {
    let (engine, client) = serve().await;
    let mut object = crate::test_objects::table("t", "families: [{name: a}]");
    let marker = owner("k8s", &object);
    for (second, disk_bytes) in [(1000, 1), (1030, 1), (1060, 2), (1061, 2)] {
        let at = Timestamp::from_second(second).expect("in range");
        let outcome = table_with_stats(&client, &object, &marker, at).await;
        object.status = Some(outcome.status(&object, at));
        let stats = object
            .status
            .as_ref()
            .and_then(|status| status.stats.as_ref());
        assert_eq!(
            stats.map(|stats| stats.disk_bytes),
            Some(disk_bytes),
            "{second}"
        );
    }
    let other = crate::test_objects::table("u", "tableName: t\nfamilies: [{name: a}]");
    let outcome = table_with_stats(
        &client,
        &other,
        &owner("k8s", &other),
        Timestamp::UNIX_EPOCH,
    )
    .await;
    assert_eq!(
        (outcome.reason, outcome.stats),
        (Reason::OwnedByOther, None)
    );
    assert_eq!(engine.lock().expect("not poisoned").asked_for_stats, 2);
}
