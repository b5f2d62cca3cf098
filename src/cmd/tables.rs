//! `tablemount tables`: which tables there are and what their families keep; making and dropping them by hand.

use std::io::{IsTerminal as _, Write as _};

use anyhow::bail;
use tablemount_api::name::encode_whole;
use tablemount_api::time::rfc3339;
use tablemount_api::{
    CompressionScope, DropTable, FamilySchema, GcClause, GcRule, PutTable, RowKey, TableInfo,
    TableList, TableName,
};
use tablemount_client::Client;

use crate::column::row_key;
use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::output::{self, Output};

mod family;

use family::{AGGREGATES, BLOOM_FILTERS, COMPRESSIONS, family, word};

/// List tables, describe one, make or drop one
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tablemount tables
  tablemount tables blogtable
  tablemount tables create notes --family text:maxVersions=3 --family info
  tablemount tables drop notes --yes"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Describe this table.
    table: Option<TableName>,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a table that no manifest declares
    Create(Create),
    /// Drop a table that no manifest declares, with its data
    Drop(Drop),
}

#[derive(Debug, clap::Args)]
struct Create {
    /// The table.
    table: TableName,
    /// A family, with settings: NAME[:maxVersions=N,maxAgeSeconds=N,inMemory,compression=lz4|snappy|zstd,
    /// compressionScope=block|record,blockBytes=N,bloomFilter=none|row|rowColumn,blockCache=false,maxValueBytes=N].
    #[arg(long = "family", required = true, value_name = "FAMILY", value_parser = family)]
    families: Vec<FamilySchema>,
    /// A row key, in the path encoding, at which a tablet starts.
    #[arg(long = "split", value_name = "KEY", value_parser = row_key)]
    splits: Vec<RowKey>,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
struct Drop {
    /// The table.
    table: TableName,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    match args.action {
        Some(Action::Create(create)) => self::create(create).await,
        Some(Action::Drop(drop)) => self::drop(drop).await,
        None => show(args).await,
    }
}

async fn show(args: Args) -> anyhow::Result<()> {
    let client = args.client.client()?;
    match (args.table, args.output) {
        (Some(table), Output::Table) => describe(&client.table(&table).await?),
        (Some(table), output) => {
            output::print(&client.table(&table).await?, output == Output::Json)
        }
        (None, Output::Table) => list(&client.tables().await?),
        (None, output) => output::print(
            &TableList {
                tables: client.tables().await?,
            },
            output == Output::Json,
        ),
    }
}

fn list(tables: &[TableInfo]) -> anyhow::Result<()> {
    let mut rows = vec![
        ["NAME", "FAMILIES", "TABLETS", "OWNER", "CREATED"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(tables.iter().map(|table| {
        let families: Vec<_> = table
            .families
            .iter()
            .map(|family| family.schema.name.as_str())
            .collect();
        let tablets = (table.splits.len() + 1).to_string();
        let created = rfc3339(table.created).unwrap_or_default();
        vec![
            table.name.to_string(),
            families.join(","),
            tablets,
            owner(table),
            created,
        ]
    }));
    output::print_columns(&rows)
}

fn owner(table: &TableInfo) -> String {
    match &table.owner {
        Some(owner) => format!("{}/{}", owner.namespace, owner.name),
        None => "-".to_owned(),
    }
}

fn describe(table: &TableInfo) -> anyhow::Result<()> {
    let splits: Vec<_> = table
        .splits
        .iter()
        .map(|key| encode_whole(key.bytes()))
        .collect();
    let fields = [
        ("Name:", table.name.to_string()),
        ("Owner:", owner(table)),
        ("Created:", rfc3339(table.created).unwrap_or_default()),
        ("Version:", table.version.to_string()),
        (
            "Splits:",
            if splits.is_empty() {
                "-".to_owned()
            } else {
                splits.join(" ")
            },
        ),
    ];
    output::print_columns(&fields.map(|(name, value)| vec![name.to_owned(), value]))?;
    let heading = [
        "FAMILY",
        "KEEPS",
        "COMPRESSION",
        "BLOCK",
        "BLOOM FILTER",
        "BLOCK CACHE",
        "IN MEMORY",
        "MAX VALUE",
        "AGGREGATE",
    ];
    let families = table.families.iter().map(|family| columns(&family.schema));
    writeln!(std::io::stdout())?;
    output::print_columns(
        &std::iter::once(heading.map(str::to_owned).to_vec())
            .chain(families)
            .collect::<Vec<_>>(),
    )
}

/// A family's settings under the heading of [`describe`].
fn columns(schema: &FamilySchema) -> Vec<String> {
    let FamilySchema {
        name,
        gc_rule,
        compression,
        compression_scope,
        bloom_filter,
        block_cache,
        block_bytes,
        in_memory,
        max_value_bytes,
        aggregate,
    } = schema;
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let compression = word(*compression, &COMPRESSIONS);
    vec![
        name.to_string(),
        kept(gc_rule),
        match compression_scope {
            CompressionScope::Block => compression.to_owned(),
            CompressionScope::Record => format!("{compression} by record"),
        },
        block_bytes.to_string(),
        word(*bloom_filter, &BLOOM_FILTERS).to_owned(),
        yes_or_no(*block_cache),
        yes_or_no(*in_memory),
        max_value_bytes.to_string(),
        aggregate
            .map_or("-", |aggregate| word(aggregate, &AGGREGATES))
            .to_owned(),
    ]
}

/// A GC rule in words: what is kept until which clause holds.
fn kept(rule: &GcRule) -> String {
    let clause = |clause: &GcClause| {
        let versions = clause
            .max_versions
            .map(|n| format!("{n} version{}", if n == 1 { "" } else { "s" }));
        let age = clause
            .max_age_micros
            .map(|micros| format!("{} s", micros / 1_000_000));
        [versions, age]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" or ")
    };
    match rule.0.as_slice() {
        [] => "everything".to_owned(),
        [one] => clause(one),
        many => many
            .iter()
            .map(|one| format!("({})", clause(one)))
            .collect::<Vec<_>>()
            .join(" and "),
    }
}

async fn create(args: Create) -> anyhow::Result<()> {
    let body = PutTable {
        families: args.families,
        splits: args.splits,
        if_version: Some(0),
        ..PutTable::default()
    };
    body.validate()?;
    args.client.client()?.put_table(&args.table, &body).await?;
    Ok(())
}

async fn drop(args: Drop) -> anyhow::Result<()> {
    let client = args.client.client()?;
    let table = client.table(&args.table).await?;
    if let Some(owner) = &table.owner {
        bail!(
            "table \"{}\" is declared by the manifest of {}/{}; drop it there (deletionPolicy: Delete)",
            table.name,
            owner.namespace,
            owner.name
        );
    }
    if !args.yes {
        confirm(&client, &table)?;
    }
    client
        .drop_table(
            &args.table,
            &DropTable {
                if_uid: Some(table.uid),
            },
        )
        .await?;
    Ok(())
}

fn confirm(client: &Client, table: &TableInfo) -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(
            "dropping a table needs --yes where there is no terminal to ask on",
        ));
    }
    eprint!(
        "Drop table \"{}\" of {} and all its data? Type its name: ",
        table.name,
        client.url()
    );
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() != table.name.as_str() {
        bail!("not dropped");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_described() {
        let check = |text: &str, expected: [&str; 9]| {
            assert_eq!(columns(&family(text).expect("family")), expected, "{text}");
        };
        check(
            "info",
            [
                "info",
                "everything",
                "none",
                "4096",
                "row",
                "yes",
                "no",
                "104857600",
                "-",
            ],
        );
        check(
            "text:maxVersions=3,maxAgeSeconds=60,inMemory,compression=zstd,compressionScope=record,blockBytes=8192,\
             bloomFilter=rowColumn,blockCache=false,maxValueBytes=9,aggregate=min",
            [
                "text",
                "(3 versions) and (60 s)",
                "zstd by record",
                "8192",
                "rowColumn",
                "no",
                "yes",
                "9",
                "min",
            ],
        );
    }
}
