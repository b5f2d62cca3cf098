//! `google.bigtable.admin.v2.BigtableTableAdmin`: tables, families, row ranges.
//!
//! **Invariants**: a table that a custom resource declares keeps its schema: its manifest is where it changes.

use std::collections::HashMap;

use tablemount_api::{
    Base64, DeleteRows, DropTable, FamilyName, FamilySchema, PutTable, TableInfo, TableName,
};
use tonic::{Request, Response, Status};

use super::proto::admin::bigtable_table_admin_server::BigtableTableAdmin;
use super::proto::admin::{self, table};
use super::proto::google::iam::v1 as iam;
use super::proto::longrunning::Operation;
use super::row_set::row_key;
use super::{Served, gc_rule, names, operations, policies, settings, value_type};
use crate::{Error, Result};

/// A change that meets another one begins anew so often.
const TRIES: usize = 5;
/// Tables of one page of a list, unless fewer are asked for.
const PAGE: usize = 1000;

/// The service.
pub(crate) struct TableAdmin {
    served: Served,
}

type Answer<T> = std::result::Result<Response<T>, Status>;

impl TableAdmin {
    pub(crate) fn new(served: Served) -> Self {
        Self { served }
    }

    /// A table by its name, and what it is called in the answer.
    fn table(&self, name: &str) -> Result<(TableName, TableInfo)> {
        let (_, table) = names::table(name)?;
        let info = self.served.engine()?.table(&table)?;
        Ok((table, info))
    }

    /// A table as it is answered.
    fn described(&self, name: &str, info: &TableInfo, view: table::View) -> Result<admin::Table> {
        let mut table = described(name, info, view);
        if matches!(view, table::View::SchemaView | table::View::Full) {
            settings::describe(
                &mut table,
                settings::of(self.served.engine()?.store(), info)?,
            );
        }
        // An empty message is left out of a map's entry, and some clients cannot read an entry without its value.
        for family in table.column_families.values_mut() {
            if *family == admin::ColumnFamily::default() {
                family.value_type = Some(admin::Type::default());
            }
        }
        Ok(table)
    }

    /// Changes a table's stored settings, on a thread that may wait for the disk.
    async fn set_settings(&self, info: &TableInfo, settings: admin::Table) -> Result<()> {
        let store = self.served.engine()?.store().clone();
        let uid = info.uid.clone();
        let set = move || settings::set(&store, &uid, &settings);
        let set = tokio::task::spawn_blocking(set).await;
        set.map_err(|error| Error::Io(format!("a change ended: {error}")))?
    }

    /// Stores the value types that modifications of families bring.
    async fn set_value_types(
        &self,
        info: &TableInfo,
        modifications: &[admin::modify_column_families_request::Modification],
    ) -> Result<()> {
        use admin::modify_column_families_request::modification::Mod;
        let before = settings::of(self.served.engine()?.store(), info)?;
        let mut settings = before.clone();
        for modification in modifications {
            let mask = modification.update_mask.as_ref();
            let masked =
                mask.is_some_and(|mask| mask.paths.iter().any(|path| path == "value_type"));
            let value_type = match &modification.r#mod {
                Some(Mod::Create(family)) => family.value_type.as_ref(),
                Some(Mod::Update(family)) if masked => family.value_type.as_ref(),
                Some(Mod::Update(_)) => continue,
                Some(Mod::Drop(_)) | None => None,
            };
            settings::set_value_type(&mut settings, &modification.id, value_type);
        }
        match settings == before {
            true => Ok(()),
            false => self.set_settings(info, settings).await,
        }
    }

    /// A table whose schema may be changed here.
    fn changeable(&self, name: &str) -> Result<(TableName, TableInfo)> {
        let (table, info) = self.table(name)?;
        match &info.owner {
            Some(owner) => Err(Error::Precondition(format!(
                "table \"{table}\" is declared by the custom resource {}/{}: change its manifest",
                owner.namespace, owner.name
            ))),
            None => Ok((table, info)),
        }
    }

    /// Changes a table's families, however often others change them meanwhile.
    async fn change(
        &self,
        name: &str,
        change: impl Fn(&mut PutTable) -> Result<()>,
    ) -> Result<TableInfo> {
        let mut tries = 0;
        loop {
            tries += 1;
            let (table, info) = self.changeable(name)?;
            let mut body = PutTable {
                families: info
                    .families
                    .into_iter()
                    .map(|family| family.schema)
                    .collect(),
                if_version: Some(info.version),
                ..PutTable::default()
            };
            change(&mut body)?;
            match self.served.engine()?.put_table(&table, body).await {
                Err(Error::Conflict(_)) if tries < TRIES => {}
                Err(Error::Conflict(message)) => return Err(Error::Unavailable(message)),
                changed => return changed,
            }
        }
    }
}

#[tonic::async_trait]
impl BigtableTableAdmin for TableAdmin {
    async fn create_table(
        &self,
        request: Request<admin::CreateTableRequest>,
    ) -> Answer<admin::Table> {
        let request = request.into_inner();
        let instance = names::InstanceName::parse(&request.parent)?;
        let name = TableName::new(&request.table_id).map_err(Error::from)?;
        let asked = request.table.unwrap_or_default();
        if !asked.name.is_empty() {
            return Err(Error::Invalid(format!(
                "table.name is \"{}\"; it must be left out, since table_id says it",
                asked.name
            ))
            .into());
        }
        let settings = settings::brought(&asked)?;
        let mut families = asked.column_families.into_iter().collect::<Vec<_>>();
        families.sort_by(|a, b| a.0.cmp(&b.0));
        let families = families.iter().map(|(name, family)| schema(name, family));
        let splits = request
            .initial_splits
            .iter()
            .map(|split| row_key(&split.key));
        let body = PutTable {
            families: families.collect::<Result<_>>()?,
            splits: splits.collect::<Result<_>>()?,
            deletion_protection: Some(asked.deletion_protection),
            if_version: Some(0),
            ..PutTable::default()
        };
        let info = match self.served.engine()?.put_table(&name, body).await {
            Err(Error::Conflict(message)) => return Err(Status::already_exists(message)),
            made => made?,
        };
        self.set_settings(&info, settings).await?;
        let name = instance.table(&name);
        Ok(Response::new(self.described(
            &name,
            &info,
            table::View::SchemaView,
        )?))
    }

    async fn list_tables(
        &self,
        request: Request<admin::ListTablesRequest>,
    ) -> Answer<admin::ListTablesResponse> {
        let request = request.into_inner();
        let instance = names::InstanceName::parse(&request.parent)?;
        let view = match request.view() {
            table::View::Unspecified => table::View::NameOnly,
            view => view,
        };
        let size = match usize::try_from(request.page_size) {
            Ok(0) | Err(_) => PAGE,
            Ok(size) => size.min(PAGE),
        };
        let tables = self.served.engine()?.tables();
        let mut rest = tables
            .iter()
            .filter(|info| info.name.as_str() > request.page_token.as_str())
            .peekable();
        let page = rest.by_ref().take(size);
        let tables: Vec<_> = page
            .map(|info| described(&instance.table(&info.name), info, view))
            .collect();
        let last = tables.last().filter(|_| rest.peek().is_some());
        let next_page_token = last.and_then(|table| table.name.rsplit('/').next());
        Ok(Response::new(admin::ListTablesResponse {
            next_page_token: next_page_token.unwrap_or_default().to_owned(),
            tables,
        }))
    }

    async fn get_table(&self, request: Request<admin::GetTableRequest>) -> Answer<admin::Table> {
        let request = request.into_inner();
        let (_, info) = self.table(&request.name)?;
        let view = match request.view() {
            table::View::Unspecified => table::View::SchemaView,
            view => view,
        };
        Ok(Response::new(self.described(&request.name, &info, view)?))
    }

    async fn delete_table(&self, request: Request<admin::DeleteTableRequest>) -> Answer<()> {
        let (table, info) = self.changeable(&request.get_ref().name)?;
        let settings = settings::of(self.served.engine()?.store(), &info)?;
        if settings.change_stream_config.is_some() {
            return Err(Error::Precondition(format!(
                "table \"{table}\" has a change stream; disable it before the table is deleted"
            ))
            .into());
        }
        let only_this = DropTable {
            if_uid: Some(info.uid.clone()),
        };
        self.served.engine()?.drop_table(&table, only_this).await?;
        self.set_settings(&info, admin::Table::default()).await?;
        Ok(Response::new(()))
    }

    async fn update_table(&self, request: Request<admin::UpdateTableRequest>) -> Answer<Operation> {
        let request = request.into_inner();
        let asked = request.table.unwrap_or_default();
        let paths = request.update_mask.unwrap_or_default().paths;
        if paths.is_empty() {
            return Err(Error::Invalid("update_mask names nothing".to_owned()).into());
        }
        let (_, info) = self.table(&asked.name)?;
        let before = settings::of(self.served.engine()?.store(), &info)?;
        let (mut settings, mut protect) = (before.clone(), false);
        for path in &paths {
            if path == "deletion_protection" {
                protect = true;
            } else if !settings::update(&mut settings, &asked, path, &info)? {
                return Err(Status::unimplemented(format!(
                    "UpdateTable of {path} is not served by Tablemount"
                )));
            }
        }
        let info = match protect {
            true => {
                let protect = |body: &mut PutTable| {
                    body.deletion_protection = Some(asked.deletion_protection);
                    Ok(())
                };
                self.change(&asked.name, protect).await?
            }
            false => info,
        };
        if settings != before {
            self.set_settings(&info, settings).await?;
        }
        let name = asked.name;
        let metadata = admin::UpdateTableMetadata {
            name: name.clone(),
            ..admin::UpdateTableMetadata::default()
        };
        let table = self.described(&name, &info, table::View::SchemaView)?;
        Ok(Response::new(operations::done(
            format!("operations/{name}"),
            ("google.bigtable.admin.v2.UpdateTableMetadata", &metadata),
            ("google.bigtable.admin.v2.Table", &table),
        )))
    }

    async fn modify_column_families(
        &self,
        request: Request<admin::ModifyColumnFamiliesRequest>,
    ) -> Answer<admin::Table> {
        let request = request.into_inner();
        if request.modifications.is_empty() {
            return Err(Error::Invalid("no modifications".to_owned()).into());
        }
        let modify = |body: &mut PutTable| {
            let mut all = request.modifications.iter();
            all.try_for_each(|modification| modify(body, modification))
        };
        let info = self
            .change(&request.name, modify)
            .await
            .map_err(|error| match error {
                Error::Conflict(message) => Status::already_exists(message),
                error => error.into(),
            })?;
        self.set_value_types(&info, &request.modifications).await?;
        Ok(Response::new(self.described(
            &request.name,
            &info,
            table::View::SchemaView,
        )?))
    }

    async fn drop_row_range(&self, request: Request<admin::DropRowRangeRequest>) -> Answer<()> {
        use admin::drop_row_range_request::Target;
        let request = request.into_inner();
        let (table, _) = self.table(&request.name)?;
        let rows = match request.target {
            Some(Target::RowKeyPrefix(prefix)) => {
                row_key(&prefix)?;
                DeleteRows {
                    prefix: Some(Base64(prefix)),
                    ..DeleteRows::default()
                }
            }
            Some(Target::DeleteAllDataFromTable(true)) => DeleteRows {
                all: true,
                ..DeleteRows::default()
            },
            Some(Target::DeleteAllDataFromTable(false)) | None => {
                return Err(Error::Invalid(
                    "neither row_key_prefix nor delete_all_data_from_table".to_owned(),
                )
                .into());
            }
        };
        self.served.engine()?.delete_rows(&table, rows).await?;
        Ok(Response::new(()))
    }

    async fn get_iam_policy(
        &self,
        request: Request<iam::GetIamPolicyRequest>,
    ) -> Answer<iam::Policy> {
        let resource = request.into_inner().resource;
        self.table(&resource)?;
        Ok(Response::new(policies::get(
            self.served.engine()?.store(),
            &resource,
        )?))
    }

    async fn set_iam_policy(
        &self,
        request: Request<iam::SetIamPolicyRequest>,
    ) -> Answer<iam::Policy> {
        let request = request.into_inner();
        self.table(&request.resource)?;
        let store = self.served.engine()?.store().clone();
        let set = tokio::task::spawn_blocking(move || policies::set(&store, request)).await;
        let policy = set.map_err(|error| Error::Io(format!("a change ended: {error}")))??;
        Ok(Response::new(policy))
    }

    async fn test_iam_permissions(
        &self,
        request: Request<iam::TestIamPermissionsRequest>,
    ) -> Answer<iam::TestIamPermissionsResponse> {
        let request = request.into_inner();
        self.table(&request.resource)?;
        Ok(Response::new(iam::TestIamPermissionsResponse {
            permissions: request.permissions,
        }))
    }

    async fn generate_consistency_token(
        &self,
        request: Request<admin::GenerateConsistencyTokenRequest>,
    ) -> Answer<admin::GenerateConsistencyTokenResponse> {
        let (_, info) = self.table(&request.get_ref().name)?;
        Ok(Response::new(admin::GenerateConsistencyTokenResponse {
            consistency_token: info.uid,
        }))
    }

    async fn check_consistency(
        &self,
        request: Request<admin::CheckConsistencyRequest>,
    ) -> Answer<admin::CheckConsistencyResponse> {
        let request = request.into_inner();
        let (table, info) = self.table(&request.name)?;
        if request.consistency_token != info.uid {
            return Err(Error::Invalid(format!(
                "consistency token \"{}\" is not one of table \"{table}\"",
                request.consistency_token
            ))
            .into());
        }
        // All that was acknowledged is read by whoever asks later.
        Ok(Response::new(admin::CheckConsistencyResponse {
            consistent: true,
        }))
    }
}

/// A family as it is to be made.
fn schema(name: &str, family: &admin::ColumnFamily) -> Result<FamilySchema> {
    let mut schema = FamilySchema::new(FamilyName::new(name)?);
    schema.aggregate = value_type::aggregate(family.value_type.as_ref())
        .map_err(|error| error.context(format!("column family \"{name}\"")))?;
    schema.gc_rule = gc_rule::from_proto(family.gc_rule.as_ref())
        .map_err(|error| error.context(format!("column family \"{name}\"")))?;
    Ok(schema)
}

fn modify(
    body: &mut PutTable,
    modification: &admin::modify_column_families_request::Modification,
) -> Result<()> {
    use admin::modify_column_families_request::modification::Mod;
    let id = &modification.id;
    let at = body
        .families
        .iter()
        .position(|family| family.name.as_str() == id);
    let not_found = || Error::NotFound(format!("column family \"{id}\" not found"));
    match &modification.r#mod {
        Some(Mod::Create(family)) => match at {
            Some(_) => Err(Error::Conflict(format!("column family \"{id}\" exists"))),
            None => {
                body.families.push(schema(id, family)?);
                Ok(())
            }
        },
        Some(Mod::Update(family)) => {
            let at = at.ok_or_else(not_found)?;
            let wanted = schema(id, family)?;
            let mask = modification.update_mask.as_ref();
            let paths = mask.map_or(&[][..], |mask| &mask.paths);
            // Without a mask it is the rule.
            if paths.is_empty() || paths.iter().any(|path| path == "gc_rule") {
                body.families[at].gc_rule = wanted.gc_rule;
            }
            let typed = paths.iter().any(|path| path == "value_type");
            if typed && wanted.aggregate != body.families[at].aggregate {
                // Word for word what clients look for.
                return Err(Error::Invalid(format!(
                    "column family \"{id}\": Immutable fields 'value_type.aggregate_type.*' cannot be updated"
                )));
            }
            Ok(())
        }
        Some(Mod::Drop(true)) => {
            let dropped = body.families.remove(at.ok_or_else(not_found)?);
            body.drop_families.push(dropped.name);
            Ok(())
        }
        Some(Mod::Drop(false)) | None => Err(Error::Invalid(format!(
            "column family \"{id}\": the modification says nothing to do"
        ))),
    }
}

/// A table as it is answered.
fn described(name: &str, info: &TableInfo, view: table::View) -> admin::Table {
    let mut table = admin::Table {
        name: name.to_owned(),
        deletion_protection: view != table::View::NameOnly && info.deletion_protection,
        ..admin::Table::default()
    };
    if matches!(view, table::View::SchemaView | table::View::Full) {
        table.granularity = table::TimestampGranularity::Millis.into();
        let families = info.families.iter().map(|family| {
            let schema = &family.schema;
            let described = admin::ColumnFamily {
                gc_rule: gc_rule::to_proto(&schema.gc_rule),
                value_type: schema.aggregate.map(value_type::of),
            };
            (schema.name.to_string(), described)
        });
        table.column_families = families.collect::<HashMap<_, _>>();
    }
    let replicated = table::View::ReplicationView;
    if view == replicated || matches!(view, table::View::EncryptionView | table::View::Full) {
        let ready = table::ClusterState {
            replication_state: table::cluster_state::ReplicationState::Ready.into(),
            ..table::ClusterState::default()
        };
        table.cluster_states.insert("tablemount".to_owned(), ready);
    }
    table
}
