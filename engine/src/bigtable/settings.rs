//! Settings of tables that are stored and given back, and change nothing in how a table is kept: row key schemas, policies of change
//! streams, backups and storage tiers, value types of families without an aggregate.
//!
//! **Invariants**: they go with their table, whose uid they are stored under; what is not in a table's message of settings is not
//! set.

use prost::Message;
use tablemount_api::{Base64, TableInfo};

use super::proto::admin::r#type::{self, Kind, Struct};
use super::proto::admin::{self, Table, table};
use crate::storage::store::Store;
use crate::{Error, Result};

fn key(uid: &str) -> String {
    format!("tables/{uid}/settings")
}

/// The settings of a table, in a message that has nothing else.
pub(crate) fn of(store: &Store, info: &TableInfo) -> Result<Table> {
    let Some(content) = store.resource(&key(&info.uid)) else {
        return Ok(Table::default());
    };
    Table::decode(content).map_err(|error| {
        Error::Corrupt(format!(
            "stored settings of table \"{}\": {error}",
            info.name
        ))
    })
}

/// Stores a table's settings.
pub(crate) fn set(store: &Store, uid: &str, settings: &Table) -> Result<()> {
    let (key, content) = (key(uid), settings.encode_to_vec());
    store.change_resources(|all| {
        match content.is_empty() {
            true => drop(all.remove(&key)),
            false => drop(all.insert(key, Base64(content.into()))),
        }
        Ok(())
    })
}

/// The settings that a request to make a table brings.
pub(crate) fn brought(asked: &Table) -> Result<Table> {
    let mut settings = Table {
        change_stream_config: asked.change_stream_config,
        automated_backup_config: asked.automated_backup_config.clone(),
        tiered_storage_config: asked.tiered_storage_config,
        row_key_schema: asked.row_key_schema.clone(),
        ..Table::default()
    };
    if let Some(schema) = &asked.row_key_schema {
        check_row_key_schema(schema, asked.column_families.keys())?;
    }
    for (name, family) in &asked.column_families {
        set_value_type(&mut settings, name, family.value_type.as_ref());
    }
    Ok(settings)
}

/// Notes the value type of a family, unless the engine itself knows it.
pub(crate) fn set_value_type(settings: &mut Table, family: &str, value_type: Option<&admin::Type>) {
    let plain = value_type.filter(|value| !matches!(value.kind, Some(Kind::AggregateType(_))));
    match plain {
        None => drop(settings.column_families.remove(family)),
        Some(value_type) => {
            let described = admin::ColumnFamily {
                value_type: Some(value_type.clone()),
                ..admin::ColumnFamily::default()
            };
            settings
                .column_families
                .insert(family.to_owned(), described);
        }
    }
}

/// Changes the settings that `path` of an update names to those of `wanted`. Returns false if it names none.
pub(crate) fn update(
    settings: &mut Table,
    wanted: &Table,
    path: &str,
    info: &TableInfo,
) -> Result<bool> {
    let (field, part) = path.split_once('.').unwrap_or((path, ""));
    match (field, part) {
        ("change_stream_config", "" | "retention_period") => {
            settings.change_stream_config = wanted.change_stream_config;
        }
        ("automated_backup_policy", "") => {
            settings
                .automated_backup_config
                .clone_from(&wanted.automated_backup_config);
        }
        ("automated_backup_policy", part) => {
            return Ok(update_backup_policy(settings, wanted, part));
        }
        ("tiered_storage_config", "") => {
            settings.tiered_storage_config = wanted.tiered_storage_config;
        }
        ("row_key_schema", "") => {
            if let Some(schema) = &wanted.row_key_schema {
                if settings.row_key_schema.is_some() {
                    return Err(Error::Precondition(
                        "the table has a row_key_schema; remove it before another is set"
                            .to_owned(),
                    ));
                }
                let names = info
                    .families
                    .iter()
                    .map(|family| family.schema.name.as_str());
                check_row_key_schema(schema, names)?;
            }
            settings.row_key_schema.clone_from(&wanted.row_key_schema);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn update_backup_policy(settings: &mut Table, wanted: &Table, part: &str) -> bool {
    use table::AutomatedBackupConfig::AutomatedBackupPolicy as Policy;
    let Some(Policy(wanted)) = &wanted.automated_backup_config else {
        return false;
    };
    let mut policy = match settings.automated_backup_config.take() {
        Some(Policy(policy)) => policy,
        None => table::AutomatedBackupPolicy::default(),
    };
    let known = match part {
        "retention_period" => {
            policy.retention_period = wanted.retention_period;
            true
        }
        "frequency" => {
            policy.frequency = wanted.frequency;
            true
        }
        "locations" => {
            policy.locations.clone_from(&wanted.locations);
            true
        }
        _ => false,
    };
    settings.automated_backup_config = Some(Policy(policy));
    known
}

/// What a row key's parts are called and how they are written.
fn check_row_key_schema(
    schema: &Struct,
    families: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<()> {
    use r#type::r#struct::encoding::Encoding;
    let invalid = |what: String| Err(Error::Invalid(format!("row_key_schema: {what}")));
    if schema.fields.is_empty() {
        return invalid("it has no fields".to_owned());
    }
    let named = |name: &str| schema.fields.iter().any(|field| field.field_name == name);
    if let Some(family) = families.into_iter().find(|family| named(family.as_ref())) {
        let family = family.as_ref();
        return invalid(format!(
            "field \"{family}\" has the name of a column family"
        ));
    }
    let encoding = schema.encoding.as_ref();
    match encoding.and_then(|encoding| encoding.encoding.as_ref()) {
        None => invalid("it has no encoding".to_owned()),
        Some(Encoding::Singleton(_)) if schema.fields.len() > 1 => {
            invalid(format!("{} fields; a singleton has 1", schema.fields.len()))
        }
        Some(Encoding::DelimitedBytes(bytes)) if bytes.delimiter.is_empty() => {
            invalid("the delimiter is empty".to_owned())
        }
        Some(_) => Ok(()),
    }
}

/// Puts a table's settings into its description.
pub(crate) fn describe(table: &mut Table, settings: Table) {
    table.change_stream_config = settings.change_stream_config;
    table.automated_backup_config = settings.automated_backup_config;
    table.tiered_storage_config = settings.tiered_storage_config;
    table.row_key_schema = settings.row_key_schema;
    for (name, family) in settings.column_families {
        if let Some(described) = table.column_families.get_mut(&name)
            && described.value_type.is_none()
        {
            described.value_type = family.value_type;
        }
    }
}
