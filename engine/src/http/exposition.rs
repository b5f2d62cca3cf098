//! Statistics in Prometheus's text format, computed when they are asked for.
//!
//! Not through the recorder, which would go on telling of tables that were dropped.
//!
//! **Invariants**: labels are names of tables and families, which need no escaping, and words of our own; no row key or
//! tablet is among them.

use std::fmt::{Display, Write as _};

use tablemount_api::stats::{FamilyStats, LatencyStats, ServerStats, TableStats, TabletStats};

/// The whole text.
pub(crate) fn text(server: &ServerStats, tables: &[TableStats]) -> String {
    let mut text = Text::default();
    add_server(&mut text, server);
    for family in FAMILIES {
        text.metric(family.name, family.help);
        for (table, stats) in each_family(tables) {
            if let Some(value) = (family.value)(stats) {
                text.sample(family.name, &labels(table, Some(&stats.family)), value);
            }
        }
    }
    for of_table in TABLES {
        text.metric(of_table.name, of_table.help);
        for table in tables {
            let value = (of_table.value)(&table.tablets);
            text.sample(of_table.name, &labels(table, None), value);
        }
    }
    text.0
}

struct OfFamily {
    name: &'static str,
    help: &'static str,
    value: fn(&FamilyStats) -> Option<u64>,
}

const FAMILIES: [OfFamily; 12] = [
    OfFamily {
        name: "tablemount_family_disk_bytes",
        help: "Bytes of SSTs",
        value: |family| Some(family.disk_bytes),
    },
    OfFamily {
        name: "tablemount_family_raw_bytes",
        help: "Bytes of keys and values in SSTs before compression",
        value: |family| Some(family.raw_bytes),
    },
    OfFamily {
        name: "tablemount_family_files",
        help: "SSTs",
        value: |family| Some(family.files),
    },
    OfFamily {
        name: "tablemount_family_entries",
        help: "Entries in SSTs: cells, versions and tombstones not yet collected",
        value: |family| Some(family.entries),
    },
    OfFamily {
        name: "tablemount_family_estimated_rows",
        help: "Rows in SSTs and writes in memtables, added up",
        value: |family| Some(family.estimated_rows),
    },
    OfFamily {
        name: "tablemount_family_cache_bytes",
        help: "Bytes in the block cache, and of top indexes",
        value: |family| Some(family.cache_bytes),
    },
    OfFamily {
        name: "tablemount_family_memtable_bytes",
        help: "Bytes of memtables",
        value: |family| Some(family.memtable_bytes),
    },
    OfFamily {
        name: "tablemount_family_cells_written_total",
        help: "Cells written since the start",
        value: |family| Some(family.cells_written),
    },
    OfFamily {
        name: "tablemount_family_debt_bytes",
        help: "Bytes that compactions still have to write, estimated",
        value: |family| Some(family.estimated_debt_bytes),
    },
    OfFamily {
        name: "tablemount_family_read_files",
        help: "The most SSTs that a read may have to look into",
        value: |family| Some(family.read_files),
    },
    OfFamily {
        name: "tablemount_family_in_memory_wanted_bytes",
        help: "Bytes that an inMemory family would take in memory",
        value: |family| Some(family.in_memory?.wanted_bytes),
    },
    OfFamily {
        name: "tablemount_family_in_memory_held_bytes",
        help: "Bytes of an inMemory family that are in memory",
        value: |family| Some(family.in_memory?.held_bytes),
    },
];

struct OfTable {
    name: &'static str,
    help: &'static str,
    value: fn(&[TabletStats]) -> f64,
}

const TABLES: [OfTable; 6] = [
    OfTable {
        name: "tablemount_table_tablets",
        help: "Tablets",
        value: |tablets| tablets.len() as f64,
    },
    OfTable {
        name: "tablemount_table_reads_total",
        help: "Pages and values that looked into a tablet of the table since the start",
        value: |tablets| tablets.iter().map(|tablet| tablet.reads).sum::<u64>() as f64,
    },
    OfTable {
        name: "tablemount_table_writes_total",
        help: "Rows changed since the start",
        value: |tablets| tablets.iter().map(|tablet| tablet.writes).sum::<u64>() as f64,
    },
    OfTable {
        name: "tablemount_table_oldest_unflushed_seconds",
        help: "Since the oldest record that is in memtables only was logged; 0: there is none",
        value: |tablets| {
            let oldest = tablets
                .iter()
                .filter_map(|tablet| tablet.oldest_unflushed_seconds);
            oldest.fold(0.0, f64::max)
        },
    },
    OfTable {
        name: "tablemount_table_stalled_tablets",
        help: "Tablets whose writers are slowed down or wait",
        value: |tablets| {
            let stalled = tablets.iter().filter(|tablet| tablet.stall.is_some());
            stalled.count() as f64
        },
    },
    OfTable {
        name: "tablemount_table_log_held_bytes",
        help: "Bytes of commit log that stay until the table is flushed",
        value: |tablets| {
            let held = tablets.iter().map(|tablet| tablet.log_bytes_held);
            held.max().unwrap_or(0) as f64
        },
    },
];

fn add_server(text: &mut Text, server: &ServerStats) {
    let ServerStats {
        uptime_seconds,
        tables,
        tablets,
        memtable_bytes,
        memtable_budget_bytes,
        in_memory_bytes,
        in_memory_budget_bytes,
        cache_bytes,
        cache_budget_bytes,
        cache_hits,
        cache_misses,
        read_bytes,
        read_budget_bytes,
        log_bytes,
        log_budget_bytes,
        log_syncs,
        replay,
        ..
    } = server;
    let (read_only, held) = (u64::from(server.read_only), u64::from(server.held));
    for (name, help, value) in [
        (
            "tablemount_uptime_seconds",
            "Since the server's start",
            uptime_seconds,
        ),
        (
            "tablemount_read_only",
            "1: the store is open read-only",
            &read_only,
        ),
        ("tablemount_held", "1: the store is held", &held),
        ("tablemount_tables", "Tables", tables),
        ("tablemount_tablets", "Tablets", tablets),
        (
            "tablemount_cache_hits_total",
            "Blocks that reads found in the block cache",
            cache_hits,
        ),
        (
            "tablemount_cache_misses_total",
            "Blocks that they did not find there",
            cache_misses,
        ),
        (
            "tablemount_log_syncs_total",
            "Fsyncs of the commit log since the start",
            log_syncs,
        ),
        (
            "tablemount_replay_bytes",
            "Commit log that a start would read now",
            &replay.bytes,
        ),
    ] {
        text.metric(name, help);
        text.sample(name, "", value);
    }
    let budgets = [
        ("memtables", memtable_bytes, memtable_budget_bytes),
        ("inMemory", in_memory_bytes, in_memory_budget_bytes),
        ("cache", cache_bytes, cache_budget_bytes),
        ("reads", read_bytes, read_budget_bytes),
        ("log", log_bytes, log_budget_bytes),
    ];
    let label = |budget: &str| format!("{{budget=\"{budget}\"}}");
    text.metric("tablemount_used_bytes", "What is used of each budget");
    for (budget, used, _) in budgets {
        text.sample("tablemount_used_bytes", &label(budget), used);
    }
    text.metric("tablemount_budget_bytes", "The server's budgets");
    for (budget, _, limit) in budgets {
        text.sample("tablemount_budget_bytes", &label(budget), limit);
    }
    add_latency(text, &server.log_sync);
}

fn add_latency(text: &mut Text, sync: &LatencyStats) {
    let name = "tablemount_log_sync_recent_seconds";
    text.metric(
        name,
        "Fsyncs of the commit log in this and the last minute, by quantile",
    );
    for (quantile, micros) in [
        ("0.5", sync.p50_micros),
        ("0.99", sync.p99_micros),
        ("1", sync.max_micros),
    ] {
        text.sample(
            name,
            &format!("{{quantile=\"{quantile}\"}}"),
            micros as f64 / 1e6,
        );
    }
}

fn each_family(tables: &[TableStats]) -> impl Iterator<Item = (&TableStats, &FamilyStats)> {
    tables
        .iter()
        .flat_map(|table| table.families.iter().map(move |family| (table, family)))
}

fn labels(table: &TableStats, family: Option<&tablemount_api::FamilyName>) -> String {
    let table = &table.table;
    match family {
        Some(family) => format!("{{table=\"{table}\",family=\"{family}\"}}"),
        None => format!("{{table=\"{table}\"}}"),
    }
}

/// Lines of the text format. Writing to memory does not fail.
#[derive(Default)]
struct Text(String);

impl Text {
    fn metric(&mut self, name: &str, help: &str) {
        let kind = match name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        };
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }
}
