//! Resource names: `projects/P/instances/I/tables/T` and their like.
//!
//! Any project and instance is taken: one server holds one set of tables, whatever instance a client believes to talk to.

use tablemount_api::TableName;

use crate::{Error, Result};

/// An instance's name, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstanceName {
    pub(crate) project: String,
    pub(crate) instance: String,
}

impl InstanceName {
    /// Parses `projects/P/instances/I`.
    pub(crate) fn parse(name: &str) -> Result<Self> {
        let refused = || {
            Error::Invalid(format!(
                "instance name \"{name}\" is not projects/PROJECT/instances/INSTANCE"
            ))
        };
        let parts: Vec<&str> = name.split('/').collect();
        match parts.as_slice() {
            ["projects", project, "instances", instance]
                if !project.is_empty() && !instance.is_empty() =>
            {
                Ok(Self {
                    project: (*project).to_owned(),
                    instance: (*instance).to_owned(),
                })
            }
            _ => Err(refused()),
        }
    }

    /// The name of a table in it.
    pub(crate) fn table(&self, table: &TableName) -> String {
        format!("{self}/tables/{table}")
    }
}

impl std::fmt::Display for InstanceName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "projects/{}/instances/{}", self.project, self.instance)
    }
}

/// Parses a table's name into its instance and id.
pub(crate) fn table(name: &str) -> Result<(InstanceName, TableName)> {
    let (instance, table) = name.split_once("/tables/").ok_or_else(|| {
        Error::Invalid(format!(
            "table name \"{name}\" is not projects/PROJECT/instances/INSTANCE/tables/TABLE"
        ))
    })?;
    Ok((InstanceName::parse(instance)?, TableName::new(table)?))
}
