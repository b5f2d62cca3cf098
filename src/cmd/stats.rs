//! `tablemount stats`: what the server, or a table with its families and tablets, holds and does.

use std::io::Write as _;

use indicatif::{BinaryBytes, HumanCount};
use tablemount_api::TableName;
use tablemount_api::name::encode_whole;
use tablemount_api::stats::{
    FamilyStats, InMemoryStats, ServerStats, StallReason, TableStats, TabletStats,
};
use tablemount_api::time::rfc3339;
use tablemount_client::Client;

use crate::connect::ClientArgs;
use crate::output::{self, Output};

/// Print what the server, or a table, holds and does
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount stats                         the server and its budgets, a line for each table
  tablemount stats blogtable               its families and tablets
  tablemount stats blogtable -o json       all figures, with their units in their names

Rates are over the last ten whole seconds; what is counted, is since the server's start.")]
pub(crate) struct Args {
    /// The table; absent: the server.
    table: Option<TableName>,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let client = args.client.client()?;
    match (&args.table, args.output) {
        (Some(table), Output::Table) => print_table(&client.table_stats(table).await?),
        (Some(table), output) => {
            output::print(&client.table_stats(table).await?, output == Output::Json)
        }
        (None, Output::Table) => print_server(&client).await,
        (None, output) => output::print(&client.server_stats().await?, output == Output::Json),
    }
}

async fn print_server(client: &Client) -> anyhow::Result<()> {
    let server = client.server_stats().await?;
    let mut tables = Vec::new();
    for table in client.tables().await? {
        match client.table_stats(&table.name).await {
            Ok(stats) => tables.push(stats),
            // Dropped meanwhile.
            Err(error) if error.code() == Some(tablemount_api::ErrorCode::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    print_fields(server_fields(&server))?;
    print_rows(&TABLE_HEADING, tables.iter().map(table_row))
}

fn print_table(stats: &TableStats) -> anyhow::Result<()> {
    print_fields(table_fields(stats))?;
    print_rows(&FAMILY_HEADING, stats.families.iter().map(family_row))?;
    print_rows(&TABLET_HEADING, stats.tablets.iter().map(tablet_row))
}

fn print_fields(fields: Vec<(&str, String)>) -> anyhow::Result<()> {
    let rows: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| vec![format!("{name}:"), value])
        .collect();
    output::print_columns(&rows)
}

/// After an empty line; nothing at all if there are no rows.
fn print_rows(heading: &[&str], rows: impl Iterator<Item = Vec<String>>) -> anyhow::Result<()> {
    let heading = heading.iter().map(|name| (*name).to_owned()).collect();
    let rows: Vec<_> = std::iter::once(heading).chain(rows).collect();
    if rows.len() == 1 {
        return Ok(());
    }
    writeln!(std::io::stdout())?;
    output::print_columns(&rows)
}

fn server_fields(server: &ServerStats) -> Vec<(&'static str, String)> {
    let of = |used: u64, budget: u64| format!("{} of {}", bytes(used), bytes(budget));
    let started = rfc3339(server.started).unwrap_or_default();
    let sync = &server.log_sync;
    let mut fields = vec![
        (
            "Store",
            format!(
                "{}, epoch {}, version {}",
                server.store_id, server.epoch, server.version
            ),
        ),
        (
            "Up",
            format!("{} (since {started})", duration(server.uptime_seconds)),
        ),
        (
            "Tables",
            format!(
                "{} in {} tablets",
                HumanCount(server.tables),
                HumanCount(server.tablets)
            ),
        ),
        ("On disk", bytes(server.disk_bytes)),
        (
            "Memtables",
            of(server.memtable_bytes, server.memtable_budget_bytes),
        ),
        (
            "Block cache",
            format!(
                "{}, {}",
                of(server.cache_bytes, server.cache_budget_bytes),
                hits(server)
            ),
        ),
        (
            "In memory",
            of(server.in_memory_bytes, server.in_memory_budget_bytes),
        ),
        ("Reads", of(server.read_bytes, server.read_budget_bytes)),
    ];
    if server.read_only {
        fields.push(("Mode", "read-only".to_owned()));
        return fields;
    }
    let estimate = match server.replay.estimated_millis {
        Some(millis) => format!(", about {}", milliseconds(millis * 1000)),
        None => String::new(),
    };
    if server.held {
        fields.push((
            "Mode",
            "held: no file goes and nothing is collected".to_owned(),
        ));
    }
    fields.extend([
        ("Commit log", of(server.log_bytes, server.log_budget_bytes)),
        (
            "Log syncs",
            format!(
                "{}; lately {}: half within {}, 99 of 100 within {}, all within {}",
                HumanCount(server.log_syncs),
                HumanCount(sync.count),
                milliseconds(sync.p50_micros),
                milliseconds(sync.p99_micros),
                milliseconds(sync.max_micros)
            ),
        ),
        (
            "Replay",
            format!("{}{estimate} after a crash", bytes(server.replay.bytes)),
        ),
        (
            "Compactions",
            format!(
                "{} to write; {:.1} bytes written for each byte flushed",
                bytes(server.estimated_debt_bytes),
                server.write_amplification
            ),
        ),
    ]);
    fields
}

const TABLE_HEADING: [&str; 11] = [
    "TABLE",
    "ROWS",
    "DISK",
    "RAW",
    "FILES",
    "MEMTABLES",
    "DEBT",
    "READS/S",
    "WRITES/S",
    "UNFLUSHED",
    "STALL",
];

fn table_row(table: &TableStats) -> Vec<String> {
    let rate = |of: fn(&TabletStats) -> f64| table.tablets.iter().map(of).sum();
    vec![
        table.table.to_string(),
        about(table.estimated_rows),
        bytes(table.disk_bytes),
        bytes(table.raw_bytes),
        HumanCount(table.files).to_string(),
        bytes(table.memtable_bytes),
        bytes(table.estimated_debt_bytes),
        per_second(rate(|tablet| tablet.reads_per_second)),
        per_second(rate(|tablet| tablet.writes_per_second)),
        unflushed(oldest(table)),
        stall(table.tablets.iter().find_map(|tablet| tablet.stall)),
    ]
}

fn oldest(table: &TableStats) -> Option<f64> {
    let tablets = table.tablets.iter();
    tablets
        .filter_map(|tablet| tablet.oldest_unflushed_seconds)
        .reduce(f64::max)
}

fn table_fields(table: &TableStats) -> Vec<(&'static str, String)> {
    vec![
        ("Table", table.table.to_string()),
        (
            "On disk",
            format!(
                "{} in {} files, {} before compression",
                bytes(table.disk_bytes),
                HumanCount(table.files),
                bytes(table.raw_bytes)
            ),
        ),
        ("Memtables", bytes(table.memtable_bytes)),
    ]
}

const FAMILY_HEADING: [&str; 11] = [
    "FAMILY",
    "ROWS",
    "DISK",
    "RAW",
    "FILES",
    "ENTRIES",
    "MEMTABLES",
    "CACHED",
    "DEBT",
    "WRITTEN",
    "IN MEMORY",
];

fn family_row(family: &FamilyStats) -> Vec<String> {
    vec![
        family.family.to_string(),
        about(family.estimated_rows),
        bytes(family.disk_bytes),
        bytes(family.raw_bytes),
        HumanCount(family.files).to_string(),
        HumanCount(family.entries).to_string(),
        bytes(family.memtable_bytes),
        bytes(family.cache_bytes),
        bytes(family.estimated_debt_bytes),
        HumanCount(family.cells_written).to_string(),
        in_memory(family.in_memory),
    ]
}

fn in_memory(stats: Option<InMemoryStats>) -> String {
    match stats {
        None => "-".to_owned(),
        Some(InMemoryStats { fits: true, .. }) => "all".to_owned(),
        Some(InMemoryStats {
            wanted_bytes,
            held_bytes,
            ..
        }) => {
            format!("{} of {}", bytes(held_bytes), bytes(wanted_bytes))
        }
    }
}

const TABLET_HEADING: [&str; 11] = [
    "TABLET",
    "START",
    "DISK",
    "FILES",
    "MEMTABLES",
    "DEBT",
    "READS/S",
    "WRITES/S",
    "UNFLUSHED",
    "LOG HELD",
    "STALL",
];

fn tablet_row(tablet: &TabletStats) -> Vec<String> {
    let start = tablet.start.as_ref();
    vec![
        tablet.id.to_string(),
        start.map_or_else(|| "-".to_owned(), |key| encode_whole(key.bytes())),
        bytes(tablet.disk_bytes),
        HumanCount(tablet.files).to_string(),
        bytes(tablet.memtable_bytes),
        bytes(tablet.estimated_debt_bytes),
        per_second(tablet.reads_per_second),
        per_second(tablet.writes_per_second),
        unflushed(tablet.oldest_unflushed_seconds),
        bytes(tablet.log_bytes_held),
        stall(tablet.stall),
    ]
}

/// The share of blocks that reads found in the cache.
fn hits(server: &ServerStats) -> String {
    let all = server.cache_hits + server.cache_misses;
    match all {
        0 => "not asked yet".to_owned(),
        all => format!(
            "{:.1} % hits",
            server.cache_hits as f64 * 100.0 / all as f64
        ),
    }
}

/// An estimate.
fn about(number: u64) -> String {
    format!("~{}", HumanCount(number))
}

fn bytes(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}

fn per_second(rate: f64) -> String {
    match rate {
        rate if rate <= 0.0 => "0".to_owned(),
        rate if rate < 10.0 => format!("{rate:.1}"),
        rate => HumanCount(rate.round() as u64).to_string(),
    }
}

fn stall(reason: Option<StallReason>) -> String {
    reason.map_or("-", StallReason::name).to_owned()
}

fn unflushed(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| duration(seconds as u64))
}

/// The two largest units of a duration.
fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

fn milliseconds(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..100_000 => format!("{:.1} ms", micros as f64 / 1e3),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let found = [0, 59, 60, 3599, 3600, 86_399, 86_400, 100 * 86_400].map(duration);
        let expected = [
            "0s", "59s", "1m0s", "59m59s", "1h0m", "23h59m", "1d0h", "100d0h",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            [999, 1_000, 99_949, 100_000, 2_500_000].map(milliseconds),
            ["999 µs", "1.0 ms", "99.9 ms", "0.1 s", "2.5 s"]
        );
    }

    #[test]
    fn rates_and_memory_are_short() {
        assert_eq!(
            [0.0, 0.5, 9.96, 10.4, 12_345.0].map(per_second),
            ["0", "0.5", "10.0", "10", "12,345"]
        );
        assert_eq!(in_memory(None), "-");
        let memory = |wanted_bytes, held_bytes| InMemoryStats {
            wanted_bytes,
            held_bytes,
            fits: held_bytes >= wanted_bytes,
        };
        assert_eq!(in_memory(Some(memory(5, 5))), "all");
        assert_eq!(
            in_memory(Some(memory(2 << 20, 1 << 20))),
            "1.00 MiB of 2.00 MiB"
        );
    }
}
