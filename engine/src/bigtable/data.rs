//! `google.bigtable.v2.Bigtable`: reads and writes of rows.

use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::{Cell as ApiCell, FamilyInfo, RowMutation};
use tokio::sync::Semaphore;
use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use super::chunks::ReadRowsMessage;
use super::filter::{self, Cell, Emit, Machine, Pushdown};
use super::proto::v2::bigtable_server::Bigtable;
use super::proto::{rpc, v2};
use super::read_rows;
use super::row_set::row_key;
use super::row_visit::RowVisit;
use super::status::code;
use super::{Served, mutations, names, samples};
use crate::storage::table::Table;
use crate::write;
use crate::{Error, Result};

/// The most mutations of a MutateRows, over all its rows.
const MAX_MUTATIONS: usize = 100_000;

/// The service.
pub(crate) struct Data {
    served: Served,
    inline: Semaphore,
}

impl Data {
    pub(crate) fn new(served: Served) -> Self {
        Self {
            served,
            inline: read_rows::inline_reads(),
        }
    }

    fn table(&self, name: &str, others: [&str; 2]) -> Result<Arc<Table>> {
        let engine = self.served.engine()?;
        for (kind, other) in ["authorized view", "materialized view"].iter().zip(others) {
            if !other.is_empty() {
                return Err(Error::NotFound(format!("{kind} \"{other}\" not found")));
            }
        }
        engine.store().table(&names::table(name)?.1)
    }
}

fn one<T: Send + 'static>(message: T) -> Response<BoxStream<T>> {
    Response::new(Box::pin(futures::stream::iter([Ok(message)])))
}

#[tonic::async_trait]
impl Bigtable for Data {
    async fn read_rows(
        &self,
        request: Request<v2::ReadRowsRequest>,
    ) -> std::result::Result<Response<BoxStream<ReadRowsMessage>>, Status> {
        let request = request.into_inner();
        let table = self.table(
            &request.table_name,
            [
                &request.authorized_view_name,
                &request.materialized_view_name,
            ],
        )?;
        let engine = self.served.engine()?;
        let rows = read_rows::read_rows(engine.store(), table, request, &self.inline).await?;
        Ok(Response::new(rows))
    }

    async fn sample_row_keys(
        &self,
        request: Request<v2::SampleRowKeysRequest>,
    ) -> std::result::Result<Response<BoxStream<v2::SampleRowKeysResponse>>, Status> {
        let request = request.into_inner();
        let table = self.table(
            &request.table_name,
            [
                &request.authorized_view_name,
                &request.materialized_view_name,
            ],
        )?;
        let samples = samples::samples(&table).into_iter().map(Ok);
        Ok(Response::new(Box::pin(futures::stream::iter(samples))))
    }

    async fn mutate_row(
        &self,
        request: Request<v2::MutateRowRequest>,
    ) -> std::result::Result<Response<v2::MutateRowResponse>, Status> {
        let request = request.into_inner();
        let table = self.table(&request.table_name, [&request.authorized_view_name, ""])?;
        let row = row(&request.row_key, request.mutations)?;
        let engine = self.served.engine()?;
        let outcomes = write::mutate_each(engine.store(), table, vec![Ok(row)]).await?;
        outcomes.into_iter().collect::<Result<()>>()?;
        Ok(Response::new(v2::MutateRowResponse {}))
    }

    async fn mutate_rows(
        &self,
        request: Request<v2::MutateRowsRequest>,
    ) -> std::result::Result<Response<BoxStream<v2::MutateRowsResponse>>, Status> {
        let request = request.into_inner();
        let table = self.table(&request.table_name, [&request.authorized_view_name, ""])?;
        let count: usize = request
            .entries
            .iter()
            .map(|entry| entry.mutations.len())
            .sum();
        if request.entries.is_empty() || count > MAX_MUTATIONS {
            return Err(Error::Invalid(format!(
                "{} entries with {count} mutations; a request has at least one entry and at most {MAX_MUTATIONS} mutations",
                request.entries.len()
            ))
            .into());
        }
        let rows = request.entries.into_iter();
        let rows = rows
            .map(|entry| row(&entry.row_key, entry.mutations))
            .collect();
        let engine = self.served.engine()?;
        let outcomes = write::mutate_each(engine.store(), table, rows).await?;
        let entry = |(index, outcome): (usize, Result<()>)| v2::mutate_rows_response::Entry {
            index: index as i64,
            status: Some(match outcome {
                Ok(()) => rpc::Status::default(),
                Err(error) => rpc::Status {
                    code: code(&error) as i32,
                    message: error.to_string(),
                    details: Vec::new(),
                },
            }),
        };
        Ok(one(v2::MutateRowsResponse {
            entries: outcomes.into_iter().enumerate().map(entry).collect(),
            rate_limit_info: None,
        }))
    }

    async fn check_and_mutate_row(
        &self,
        request: Request<v2::CheckAndMutateRowRequest>,
    ) -> std::result::Result<Response<v2::CheckAndMutateRowResponse>, Status> {
        let request = request.into_inner();
        let table = self.table(&request.table_name, [&request.authorized_view_name, ""])?;
        let key = row_key(&request.row_key)?;
        if request.true_mutations.is_empty() && request.false_mutations.is_empty() {
            return Err(Error::Invalid(
                "neither true_mutations nor false_mutations; one of them must be there".to_owned(),
            )
            .into());
        }
        let (when, otherwise) = (
            mutations::mutations(request.true_mutations)?,
            mutations::mutations(request.false_mutations)?,
        );
        let schema = table.schema();
        let families = &schema.record.families;
        for mutation in when.iter().chain(&otherwise) {
            write::check_mutation(&table, &schema, mutation)?;
        }
        let root = filter::compile(request.predicate_filter.as_ref(), families)?;
        let pushdown = Pushdown::of(&root, families.len());
        let machine = Machine::new(root);
        let read = tablemount_api::ReadRequest::default();
        let (ids, infos) = (family_ids(families), families.clone());
        let bytes = request.row_key;
        let choose = move |update: &crate::row_update::RowUpdate<'_>| {
            let mut found = Found(false);
            if !pushdown.is_nothing() {
                let mut read = read;
                pushdown.apply(&mut read, &infos);
                let mut visit = RowVisit::new(machine, ids, &bytes, pushdown.values, &mut found);
                update.visit(&read, &mut visit)?;
            }
            Ok(match found.0 {
                true => (true, when),
                false => (false, otherwise),
            })
        };
        let engine = self.served.engine()?;
        let (predicate_matched, _) = write::update_row(engine.store(), table, key, choose).await?;
        Ok(Response::new(v2::CheckAndMutateRowResponse {
            predicate_matched,
        }))
    }

    async fn ping_and_warm(
        &self,
        request: Request<v2::PingAndWarmRequest>,
    ) -> std::result::Result<Response<v2::PingAndWarmResponse>, Status> {
        names::InstanceName::parse(&request.get_ref().name)?;
        self.served.engine()?;
        Ok(Response::new(v2::PingAndWarmResponse {}))
    }

    async fn read_modify_write_row(
        &self,
        request: Request<v2::ReadModifyWriteRowRequest>,
    ) -> std::result::Result<Response<v2::ReadModifyWriteRowResponse>, Status> {
        let request = request.into_inner();
        let table = self.table(&request.table_name, [&request.authorized_view_name, ""])?;
        let key = row_key(&request.row_key)?;
        let rules = mutations::rules(request.rules)?;
        let schema = table.schema();
        for rule in &rules {
            write::check_mutation(&table, &schema, rule)?;
        }
        let engine = self.served.engine()?;
        let choose = |_: &crate::row_update::RowUpdate<'_>| Ok((true, rules));
        let (_, cells) = write::update_row(engine.store(), table, key, choose).await?;
        Ok(Response::new(v2::ReadModifyWriteRowResponse {
            row: Some(changed(request.row_key, cells, &schema.record.families)),
        }))
    }
}

fn row(key: &Bytes, all: Vec<v2::Mutation>) -> Result<RowMutation> {
    Ok(RowMutation {
        row: row_key(key)?,
        check: None,
        mutations: mutations::mutations(all)?,
    })
}

pub(crate) fn family_ids(families: &[FamilyInfo]) -> Vec<u64> {
    families.iter().map(|family| family.id).collect()
}

/// Notes that a cell came.
struct Found(bool);

impl Emit for Found {
    fn emit(&mut self, _: Cell<'_>) {
        self.0 = true;
    }
}

/// The cells that rules wrote, the last of each column, in the order of reads.
fn changed(key: Bytes, cells: Vec<ApiCell>, families: &[FamilyInfo]) -> v2::Row {
    let mut row = v2::Row {
        key,
        families: Vec::new(),
    };
    for family in families {
        let name = &family.schema.name;
        let mut columns = std::collections::BTreeMap::new();
        for cell in cells.iter().filter(|cell| cell.family == *name) {
            columns.insert(cell.qualifier.bytes().clone(), cell);
        }
        let column = |(qualifier, cell): (Bytes, &ApiCell)| v2::Column {
            qualifier,
            cells: vec![v2::Cell {
                timestamp_micros: cell.timestamp.0,
                value: cell.value.clone().unwrap_or_default().0,
                labels: Vec::new(),
            }],
        };
        if !columns.is_empty() {
            row.families.push(v2::Family {
                name: name.to_string(),
                columns: columns.into_iter().map(column).collect(),
            });
        }
    }
    row
}
