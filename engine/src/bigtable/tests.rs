//! The services, called as a client's requests call them.

use bytes::Bytes;
use futures::StreamExt as _;
use tablemount_api::{FamilyName, FamilySchema, Owner, PutTable, TableName};
use tempfile::TempDir;
use tonic::{Code, Request, Status};

use super::admin::TableAdmin;
use super::chunks::tests::rows_of;
use super::data::Data;
use super::instances::InstanceAdmin;
use super::proto::admin::bigtable_instance_admin_server::BigtableInstanceAdmin as _;
use super::proto::admin::bigtable_table_admin_server::BigtableTableAdmin as _;
use super::proto::v2::bigtable_server::Bigtable as _;
use super::proto::v2::mutation::{self, SetCell};
use super::proto::v2::row_filter::Filter;
use super::proto::{admin, v2};
use super::{EngineSlot, Served, value_type};
use crate::{Config, Engine};

const INSTANCE: &str = "projects/p/instances/i";
const TABLE: &str = "projects/p/instances/i/tables/t";

struct Subject {
    data: Data,
    tables: TableAdmin,
    instances: InstanceAdmin,
    engine: Engine,
    _folder: TempDir,
}

impl Subject {
    /// An engine with table `t` of families `f`, `g` and the sum `s`.
    async fn new() -> Self {
        let folder = TempDir::new().expect("tempdir");
        let engine = Engine::open(Config::new(folder.path()))
            .await
            .expect("open");
        let slot = EngineSlot::default();
        assert!(slot.set(engine.clone()).is_ok());
        let served = Served { slot };
        let subject = Self {
            data: Data::new(served.clone()),
            tables: TableAdmin::new(served.clone()),
            instances: InstanceAdmin::new(served),
            engine,
            _folder: folder,
        };
        let sum = value_type::of(tablemount_api::Aggregate::Sum);
        let family = |value_type| admin::ColumnFamily {
            value_type,
            ..admin::ColumnFamily::default()
        };
        let families = [("f", None), ("g", None), ("s", Some(sum))];
        let families = families.map(|(name, value)| (name.to_owned(), family(value)));
        let made = subject
            .create("t", families.into_iter().collect(), &[])
            .await;
        assert_eq!(made.expect("made").name, TABLE);
        subject
    }

    async fn create(
        &self,
        id: &str,
        column_families: std::collections::HashMap<String, admin::ColumnFamily>,
        splits: &[&'static str],
    ) -> Result<admin::Table, Status> {
        let split = |key: &&'static str| admin::create_table_request::Split {
            key: Bytes::from_static(key.as_bytes()),
        };
        let request = admin::CreateTableRequest {
            parent: INSTANCE.to_owned(),
            table_id: id.to_owned(),
            table: Some(admin::Table {
                column_families,
                ..admin::Table::default()
            }),
            initial_splits: splits.iter().map(split).collect(),
        };
        let made = self.tables.create_table(Request::new(request)).await?;
        Ok(made.into_inner())
    }

    async fn mutate(&self, row: &'static str, mutations: Vec<v2::Mutation>) -> Result<(), Status> {
        let request = v2::MutateRowRequest {
            table_name: TABLE.to_owned(),
            row_key: row.into(),
            mutations,
            ..v2::MutateRowRequest::default()
        };
        self.data.mutate_row(Request::new(request)).await.map(drop)
    }

    /// The rows that a request reads, a line each: `row f:q@1=v`, labels after the value.
    async fn read(&self, request: v2::ReadRowsRequest) -> Result<Vec<String>, Status> {
        let request = v2::ReadRowsRequest {
            table_name: TABLE.to_owned(),
            ..request
        };
        let stream = self
            .data
            .read_rows(Request::new(request))
            .await?
            .into_inner();
        let messages: Vec<_> = stream.collect().await;
        Ok(rows_of(messages.into_iter().collect::<Result<_, _>>()?))
    }

    async fn all(&self) -> Vec<String> {
        self.read(v2::ReadRowsRequest::default())
            .await
            .expect("read")
    }
}

fn set(family: &str, qualifier: &'static str, millis: i64, value: &'static str) -> v2::Mutation {
    let timestamp_micros = if millis < 0 { millis } else { millis * 1000 };
    mutation(mutation::Mutation::SetCell(SetCell {
        family_name: family.to_owned(),
        column_qualifier: qualifier.into(),
        timestamp_micros,
        value: value.into(),
    }))
}

fn mutation(mutation: mutation::Mutation) -> v2::Mutation {
    v2::Mutation {
        mutation: Some(mutation),
    }
}

fn filter(filter: Filter) -> Option<v2::RowFilter> {
    Some(v2::RowFilter {
        filter: Some(filter),
    })
}

fn keys(keys: &[&'static str]) -> Option<v2::RowSet> {
    Some(v2::RowSet {
        row_keys: keys
            .iter()
            .map(|key| Bytes::from_static(key.as_bytes()))
            .collect(),
        row_ranges: Vec::new(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_written_and_read() {
    let subject = Subject::new().await;
    for row in ["a", "b", "c"] {
        let cells = vec![
            set("f", "q", 1, "old"),
            set("f", "q", 2, "new"),
            set("g", "", 1, row),
        ];
        subject.mutate(row, cells).await.expect("written");
    }
    let row = |row: &str| format!("{row} f:q@2000=new f:q@1000=old g:@1000={row}");
    assert_eq!(subject.all().await, ["a", "b", "c"].map(row));
    let read = async |request| subject.read(request).await.expect("read");
    let request = v2::ReadRowsRequest {
        rows: keys(&["c", "nope", "a", "a"]),
        ..v2::ReadRowsRequest::default()
    };
    assert_eq!(read(request).await, ["a", "c"].map(row));
    let request = v2::ReadRowsRequest {
        reversed: true,
        rows_limit: 2,
        ..v2::ReadRowsRequest::default()
    };
    assert_eq!(read(request).await, ["c", "b"].map(row));
    let newest = v2::ReadRowsRequest {
        filter: filter(Filter::CellsPerColumnLimitFilter(1)),
        rows: keys(&["b"]),
        ..v2::ReadRowsRequest::default()
    };
    assert_eq!(read(newest).await, ["b f:q@2000=new g:@1000=b"]);
    let nothing = v2::ReadRowsRequest {
        filter: filter(Filter::BlockAllFilter(true)),
        ..v2::ReadRowsRequest::default()
    };
    assert_eq!(read(nothing).await, Vec::<String>::new());

    let delete = mutation(mutation::Mutation::DeleteFromRow(
        mutation::DeleteFromRow {},
    ));
    subject
        .mutate("b", vec![delete, set("g", "q", 5, "again")])
        .await
        .expect("written");
    let request = v2::ReadRowsRequest {
        rows: keys(&["b"]),
        ..v2::ReadRowsRequest::default()
    };
    assert_eq!(read(request).await, ["b g:q@5000=again"]);
    let range = mutation(mutation::Mutation::DeleteFromColumn(
        mutation::DeleteFromColumn {
            family_name: "f".to_owned(),
            column_qualifier: "q".into(),
            time_range: Some(v2::TimestampRange {
                start_timestamp_micros: 1000,
                end_timestamp_micros: 2000,
            }),
        },
    ));
    subject.mutate("a", vec![range]).await.expect("written");
    let request = v2::ReadRowsRequest {
        rows: keys(&["a"]),
        ..v2::ReadRowsRequest::default()
    };
    assert_eq!(read(request).await, ["a f:q@2000=new g:@1000=a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_scans_come_in_pages_and_rows_stay_whole() {
    let subject = Subject::new().await;
    let value = "x".repeat(100_000);
    let value: &'static str = value.leak();
    let rows: Vec<&'static str> = (0..100).map(|i| &*format!("r{i:03}").leak()).collect();
    for row in &rows {
        subject
            .mutate(row, vec![set("f", "a", 1, value), set("g", "b", 1, "v")])
            .await
            .expect("written");
    }
    let expected: Vec<_> = rows
        .iter()
        .map(|row| format!("{row} f:a@1000={value} g:b@1000=v"))
        .collect();
    assert!(subject.all().await == expected);
    let request = v2::ReadRowsRequest {
        reversed: true,
        ..v2::ReadRowsRequest::default()
    };
    let down: Vec<_> = expected.iter().rev().cloned().collect();
    assert!(subject.read(request).await.expect("read") == down);
    let cells = (0..50)
        .map(|i| set("f", format!("{i:02}").leak(), 1, value))
        .collect();
    subject.mutate("s", cells).await.expect("written");
    let all = subject.all().await;
    assert_eq!(all[100].matches(" f:").count(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_row_longer_than_any_message_is_read_whole() {
    let subject = Subject::new().await;
    let value: &'static str = "x".repeat(1_000_000).leak();
    for i in 0..8 {
        let cell = set("f", format!("{i}").leak(), 1, value);
        subject.mutate("r", vec![cell]).await.expect("written");
    }
    subject
        .mutate("s", vec![set("f", "q", 1, "v")])
        .await
        .expect("written");
    let request = v2::ReadRowsRequest {
        rows: keys(&["r", "s"]),
        ..v2::ReadRowsRequest::default()
    };
    let rows = subject.read(request).await.expect("read");
    let cells: String = (0..8).map(|i| format!(" f:{i}@1000={value}")).collect();
    assert!(rows == [format!("r{cells}"), "s f:q@1000=v".to_owned()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_sees_the_row_and_changes_it_by_what_it_saw() {
    let subject = Subject::new().await;
    let check = async |predicate_filter| {
        let request = v2::CheckAndMutateRowRequest {
            table_name: TABLE.to_owned(),
            row_key: "r".into(),
            predicate_filter,
            true_mutations: vec![set("f", "was", 1, "there")],
            false_mutations: vec![set("f", "q", 1, "v")],
            ..v2::CheckAndMutateRowRequest::default()
        };
        let answer = subject
            .data
            .check_and_mutate_row(Request::new(request))
            .await;
        answer.expect("checked").into_inner().predicate_matched
    };
    assert!(!check(None).await, "the row has no cell");
    assert_eq!(subject.all().await, ["r f:q@1000=v"]);
    let value = |regex: &'static str| filter(Filter::ValueRegexFilter(regex.into()));
    assert!(!check(value("w")).await);
    assert!(check(value("v")).await);
    assert_eq!(subject.all().await, ["r f:q@1000=v f:was@1000=there"]);
    assert!(check(None).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_apply_in_their_order_and_answer_with_what_they_wrote() {
    use v2::read_modify_write_rule::Rule;
    let subject = Subject::new().await;
    let rule = |family: &str, qualifier: &'static str, rule| v2::ReadModifyWriteRule {
        family_name: family.to_owned(),
        column_qualifier: qualifier.into(),
        rule: Some(rule),
    };
    let request = v2::ReadModifyWriteRowRequest {
        table_name: TABLE.to_owned(),
        row_key: "r".into(),
        rules: vec![
            rule("g", "n", Rule::IncrementAmount(2)),
            rule("f", "b", Rule::AppendValue("x".into())),
            rule("f", "a", Rule::AppendValue("y".into())),
            rule("g", "n", Rule::IncrementAmount(3)),
            rule("f", "b", Rule::AppendValue("z".into())),
        ],
        ..v2::ReadModifyWriteRowRequest::default()
    };
    let answer = subject
        .data
        .read_modify_write_row(Request::new(request))
        .await;
    let row = answer.expect("changed").into_inner().row.expect("a row");
    let mut shown = Vec::new();
    for family in &row.families {
        for column in &family.columns {
            assert_eq!(column.cells.len(), 1);
            shown.push((
                family.name.as_str(),
                &column.qualifier[..],
                &column.cells[0].value[..],
            ));
        }
    }
    let five = 5_i64.to_be_bytes();
    let expected: [(&str, &[u8], &[u8]); 3] =
        [("f", b"a", b"y"), ("f", b"b", b"xz"), ("g", b"n", &five)];
    assert_eq!(shown, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn aggregates_merge_their_inputs() {
    let subject = Subject::new().await;
    let kind = |kind| {
        Some(v2::Value {
            kind: Some(kind),
            ..v2::Value::default()
        })
    };
    let add = |by| {
        mutation(mutation::Mutation::AddToCell(mutation::AddToCell {
            family_name: "s".to_owned(),
            column_qualifier: kind(v2::value::Kind::RawValue("q".into())),
            timestamp: kind(v2::value::Kind::RawTimestampMicros(1000)),
            input: kind(v2::value::Kind::IntValue(by)),
        }))
    };
    subject
        .mutate("r", vec![add(5), add(-7)])
        .await
        .expect("added");
    subject.mutate("r", vec![add(100)]).await.expect("added");
    let sum = i64::from_be_bytes(*b"\0\0\0\0\0\0\0b");
    assert_eq!(sum, 98);
    assert_eq!(subject.all().await, ["r s:q@1000=\0\0\0\0\0\0\0b"]);
    let plain = subject
        .mutate("r", vec![set("s", "q", 1, "v")])
        .await
        .expect_err("refused");
    assert!(
        plain.message().contains("\"s\" is an aggregate family"),
        "{plain:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_entry_of_a_batch_has_its_own_status() {
    let subject = Subject::new().await;
    let entry = |row: &'static str, mutations| v2::mutate_rows_request::Entry {
        row_key: row.into(),
        mutations,
        ..v2::mutate_rows_request::Entry::default()
    };
    let request = v2::MutateRowsRequest {
        table_name: TABLE.to_owned(),
        entries: vec![
            entry("a", vec![set("f", "q", 1, "v")]),
            entry("b", vec![set("nope", "q", 1, "v")]),
            entry("", vec![set("f", "q", 1, "v")]),
            entry("c", vec![]),
            entry("d", vec![set("f", "q", 1, "w")]),
        ],
        ..v2::MutateRowsRequest::default()
    };
    let answer = subject
        .data
        .mutate_rows(Request::new(request))
        .await
        .expect("answered");
    let messages: Vec<_> = answer.into_inner().collect().await;
    let entries = &messages[0].as_ref().expect("a message").entries;
    let codes: Vec<_> = entries
        .iter()
        .map(|entry| (entry.index, entry.status.as_ref().map(|status| status.code)))
        .collect();
    assert_eq!(
        codes,
        [
            (0, Some(0)),
            (1, Some(5)),
            (2, Some(3)),
            (3, Some(3)),
            (4, Some(0))
        ]
    );
    assert_eq!(subject.all().await, ["a f:q@1000=v", "d f:q@1000=w"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_writes_are_refused_by_code_and_name() {
    let subject = Subject::new().await;
    let check = async |row: &'static str, mutations, code: Code, message: &str| {
        let refused = subject.mutate(row, mutations).await.expect_err("refused");
        assert_eq!(
            (refused.code(), refused.message().contains(message)),
            (code, true),
            "{refused:?}"
        );
    };
    let good = || vec![set("f", "q", 1, "v")];
    check(
        "",
        good(),
        Code::InvalidArgument,
        "row key is empty; a row key has 1 to 4096 bytes",
    )
    .await;
    let long = "x".repeat(4097).leak();
    check(
        long,
        good(),
        Code::InvalidArgument,
        "row key is 4097 bytes; limit is 4096",
    )
    .await;
    check("r", vec![], Code::InvalidArgument, "has 0 mutations").await;
    check(
        "r",
        vec![set("nope", "q", 1, "v")],
        Code::NotFound,
        "column family \"nope\" not found",
    )
    .await;
    check(
        "r",
        vec![set("no:pe", "q", 1, "v")],
        Code::InvalidArgument,
        "column family name \"no:pe\"",
    )
    .await;
    let micros = mutation(mutation::Mutation::SetCell(SetCell {
        timestamp_micros: 1001,
        family_name: "f".to_owned(),
        ..SetCell::default()
    }));
    check(
        "r",
        vec![micros],
        Code::InvalidArgument,
        "mutation 0: timestamp is 1001; it must be whole milliseconds",
    )
    .await;
    check(
        "r",
        vec![set("f", "q", -2, "v")],
        Code::InvalidArgument,
        "timestamp is -2",
    )
    .await;
    let qualifier: &'static str = "q".repeat(16_385).leak();
    check(
        "r",
        vec![set("f", qualifier, 1, "v")],
        Code::InvalidArgument,
        "qualifier is 16385 bytes; limit is 16384",
    )
    .await;
    let many = (0..100_001).map(|_| set("f", "q", 1, "")).collect();
    check(
        "r",
        many,
        Code::InvalidArgument,
        "100001 mutations; limit is 100000",
    )
    .await;
    let nothing = v2::Mutation { mutation: None };
    check(
        "r",
        vec![nothing],
        Code::InvalidArgument,
        "mutation 0: it says nothing to do",
    )
    .await;
    subject
        .mutate("r", vec![set("f", "n", 1, "short")])
        .await
        .expect("written");
    let request = v2::ReadModifyWriteRowRequest {
        table_name: TABLE.to_owned(),
        row_key: "r".into(),
        rules: vec![v2::ReadModifyWriteRule {
            family_name: "f".to_owned(),
            column_qualifier: "n".into(),
            rule: Some(v2::read_modify_write_rule::Rule::IncrementAmount(1)),
        }],
        ..v2::ReadModifyWriteRowRequest::default()
    };
    let refused = subject
        .data
        .read_modify_write_row(Request::new(request))
        .await
        .expect_err("refused");
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    assert!(
        refused
            .message()
            .contains("increment of a value of 5 bytes; it takes 8"),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_reads_are_refused_by_code_and_name() {
    let subject = Subject::new().await;
    let check = async |request: v2::ReadRowsRequest, code: Code, message: &str| {
        let refused = subject.read(request).await.expect_err("refused");
        assert_eq!(
            (refused.code(), refused.message().contains(message)),
            (code, true),
            "{refused:?}"
        );
    };
    let read = v2::ReadRowsRequest::default;
    let inverted = v2::RowSet {
        row_keys: Vec::new(),
        row_ranges: vec![v2::RowRange {
            start_key: Some(v2::row_range::StartKey::StartKeyClosed("b".into())),
            end_key: Some(v2::row_range::EndKey::EndKeyOpen("a".into())),
        }],
    };
    let request = v2::ReadRowsRequest {
        rows: Some(inverted),
        ..read()
    };
    check(
        request,
        Code::InvalidArgument,
        "row range ends at \"a\", before its start \"b\"",
    )
    .await;
    let request = v2::ReadRowsRequest {
        rows_limit: -1,
        ..read()
    };
    check(request, Code::InvalidArgument, "rows_limit is -1").await;
    let request = v2::ReadRowsRequest {
        filter: filter(Filter::ValueRegexFilter("(".into())),
        ..read()
    };
    check(
        request,
        Code::InvalidArgument,
        "value_regex_filter \"(\": missing closing )",
    )
    .await;
    let table = |name: &str| v2::ReadRowsRequest {
        table_name: name.to_owned(),
        ..read()
    };
    for (name, code, message) in [
        (
            "projects/p/instances/i/tables/nope",
            Code::NotFound,
            "table \"nope\" not found",
        ),
        (
            "t",
            Code::InvalidArgument,
            "is not projects/PROJECT/instances/INSTANCE/tables/TABLE",
        ),
        (
            "projects/p/instances/i/tables/a b",
            Code::InvalidArgument,
            "table name \"a b\"",
        ),
    ] {
        let refused = subject
            .data
            .read_rows(Request::new(table(name)))
            .await
            .err()
            .expect("refused");
        assert_eq!(
            (refused.code(), refused.message().contains(message)),
            (code, true),
            "{refused:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_made_changed_protected_and_deleted() {
    use admin::modify_column_families_request::Modification;
    use admin::modify_column_families_request::modification::Mod;
    let subject = Subject::new().await;
    let twice = subject
        .create("t", Default::default(), &[])
        .await
        .expect_err("refused");
    assert_eq!(twice.code(), Code::AlreadyExists);
    let bad = subject
        .create("a/b", Default::default(), &[])
        .await
        .expect_err("refused");
    assert_eq!(bad.code(), Code::InvalidArgument);
    subject
        .create("u", Default::default(), &["m"])
        .await
        .expect("made");
    let name = format!("{INSTANCE}/tables/u");
    let modify = async |id: &str, change: Mod| {
        let request = admin::ModifyColumnFamiliesRequest {
            name: name.clone(),
            modifications: vec![Modification {
                id: id.to_owned(),
                r#mod: Some(change),
                ..Modification::default()
            }],
            ..admin::ModifyColumnFamiliesRequest::default()
        };
        subject
            .tables
            .modify_column_families(Request::new(request))
            .await
    };
    let versions = |count| admin::ColumnFamily {
        gc_rule: Some(admin::GcRule {
            rule: Some(admin::gc_rule::Rule::MaxNumVersions(count)),
        }),
        ..admin::ColumnFamily::default()
    };
    modify("f", Mod::Create(versions(1))).await.expect("made");
    let twice = modify("f", Mod::Create(versions(1)))
        .await
        .expect_err("refused");
    assert_eq!(twice.code(), Code::AlreadyExists);
    let changed = modify("f", Mod::Update(versions(3)))
        .await
        .expect("changed")
        .into_inner();
    assert_eq!(changed.column_families["f"], versions(3));
    for change in [Mod::Update(versions(1)), Mod::Drop(true)] {
        let absent = modify("nope", change).await.expect_err("refused");
        assert_eq!(absent.code(), Code::NotFound, "{absent:?}");
    }
    let protect = async |deletion_protection| {
        let request = admin::UpdateTableRequest {
            table: Some(admin::Table {
                name: name.clone(),
                deletion_protection,
                ..admin::Table::default()
            }),
            update_mask: Some(prost_types::FieldMask {
                paths: vec!["deletion_protection".to_owned()],
            }),
            ..admin::UpdateTableRequest::default()
        };
        let operation = subject.tables.update_table(Request::new(request)).await;
        assert!(operation.expect("changed").into_inner().done);
    };
    let delete = async || {
        let request = admin::DeleteTableRequest { name: name.clone() };
        subject.tables.delete_table(Request::new(request)).await
    };
    protect(true).await;
    assert_eq!(
        delete().await.expect_err("protected").code(),
        Code::FailedPrecondition
    );
    let drop_family = modify("f", Mod::Drop(true)).await.expect_err("protected");
    assert_eq!(drop_family.code(), Code::FailedPrecondition);
    protect(false).await;
    modify("f", Mod::Drop(true)).await.expect("dropped");
    delete().await.expect("deleted");
    assert_eq!(delete().await.expect_err("gone").code(), Code::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_a_custom_resource_declares_keeps_its_schema() {
    let subject = Subject::new().await;
    let owner = Owner {
        cluster: "c".to_owned(),
        namespace: "ns".to_owned(),
        name: "declared".to_owned(),
        uid: "u".to_owned(),
    };
    let body = PutTable {
        families: vec![FamilySchema::new(FamilyName::new("f").expect("valid"))],
        owner: Some(owner),
        ..PutTable::default()
    };
    let table = TableName::new("declared").expect("valid");
    subject.engine.put_table(&table, body).await.expect("made");
    let name = format!("{INSTANCE}/tables/declared");
    let delete = Request::new(admin::DeleteTableRequest { name });
    let refused = subject
        .tables
        .delete_table(delete)
        .await
        .expect_err("refused");
    assert_eq!(refused.code(), Code::FailedPrecondition);
    let expected =
        "table \"declared\" is declared by the custom resource ns/declared: change its manifest";
    assert_eq!(refused.message(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_are_there_until_they_are_deleted() {
    let subject = Subject::new().await;
    let name = || INSTANCE.to_owned();
    let get = async || {
        let request = Request::new(admin::GetInstanceRequest { name: name() });
        subject.instances.get_instance(request).await
    };
    assert_eq!(get().await.expect("there").into_inner().name, INSTANCE);
    let create = async || {
        let request = admin::CreateInstanceRequest {
            parent: "projects/p".to_owned(),
            instance_id: "i".to_owned(),
            instance: Some(admin::Instance {
                display_name: "shown".to_owned(),
                ..admin::Instance::default()
            }),
            clusters: [("c1".to_owned(), admin::Cluster::default())].into(),
        };
        subject
            .instances
            .create_instance(Request::new(request))
            .await
    };
    assert!(create().await.expect("made").into_inner().done);
    assert_eq!(
        create().await.expect_err("there").code(),
        Code::AlreadyExists
    );
    assert_eq!(
        get().await.expect("there").into_inner().display_name,
        "shown"
    );
    let clusters = Request::new(admin::ListClustersRequest {
        parent: name(),
        ..admin::ListClustersRequest::default()
    });
    let clusters = subject
        .instances
        .list_clusters(clusters)
        .await
        .expect("listed")
        .into_inner()
        .clusters;
    assert_eq!(clusters.len(), 1);
    assert_eq!(clusters[0].name, format!("{INSTANCE}/clusters/c1"));
    let delete = Request::new(admin::DeleteInstanceRequest { name: name() });
    subject
        .instances
        .delete_instance(delete)
        .await
        .expect("deleted");
    assert_eq!(get().await.expect_err("gone").code(), Code::NotFound);
    create().await.expect("made again");
    get().await.expect("there");
}
