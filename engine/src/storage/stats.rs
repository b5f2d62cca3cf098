//! Computes statistics: sums over what tables, tablets and the log hold at the moment, and over what they noted.
//!
//! Owns the counters ([`activity`], [`rate`], [`latency`]); what holds bytes counts them itself.
//!
//! **Invariants**: nothing here waits for a flush or a compaction; what a family holds is summed over one state of each of
//! its tablets, so a flush or compaction under way is seen before or after, never half.

mod activity;
mod latency;
mod rate;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tablemount_api::FamilyInfo;
use tablemount_api::stats::{
    FamilyStats, InMemoryStats, ReplayStats, ServerStats, StallReason, TableStats, TabletStats,
};

pub(crate) use activity::{ServerActivity, TabletActivity};
pub(crate) use latency::Latency;

use super::memtable::Memtable;
use super::pressure;
use super::sst::Sst;
use super::store::Store;
use super::table::{Schema, Table};
use super::tablet::{Tablet, TabletState};
use crate::read::READ_BYTES;

/// Of a log: what a start would read of it, and what each tablet holds back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HeldLog {
    /// Bytes written of the segments held.
    pub(crate) written_bytes: u64,
    /// By tablet with records not flushed: bytes of the segments from the oldest with one, to the newest.
    pub(crate) by_tablet: HashMap<u64, u64>,
}

impl Store {
    /// Statistics of a table.
    pub(crate) fn table_stats(&self, table: &Table) -> TableStats {
        self.stats_of(table, &self.held_log())
    }

    /// Statistics of all tables, by name.
    pub(crate) fn all_table_stats(&self) -> Vec<TableStats> {
        let (tables, held) = (self.tables.load(), self.held_log());
        tables
            .values()
            .map(|table| self.stats_of(table, &held))
            .collect()
    }

    /// Statistics of the server.
    pub(crate) fn stats(&self) -> ServerStats {
        let tables = self.tables.load();
        let tablets = || tables.values().flat_map(|table| &table.tablets);
        let (log, debt) = (self.log.as_deref(), self.debt());
        let (cache_hits, cache_misses) = self.shared.hits_and_misses();
        ServerStats {
            store_id: self.store_id.to_string(),
            epoch: self.epoch,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.started,
            uptime_seconds: self.activity.elapsed().as_secs(),
            read_only: log.is_none(),
            tables: tables.len() as u64,
            tablets: tablets().count() as u64,
            disk_bytes: tablets().map(|tablet| disk_bytes(&tablet.state())).sum(),
            memtable_bytes: self.memtable_bytes.load(Ordering::Relaxed),
            memtable_budget_bytes: self.options.memtable_budget_bytes,
            in_memory_bytes: self.in_memory_bytes.load(Ordering::Relaxed),
            in_memory_budget_bytes: self.options.in_memory_budget_bytes,
            cache_bytes: self.shared.used(),
            cache_budget_bytes: self.shared.budget(),
            cache_hits,
            cache_misses,
            read_bytes: READ_BYTES.saturating_sub(self.read_bytes.available_permits()) as u64,
            read_budget_bytes: READ_BYTES as u64,
            log_bytes: log.map_or(0, |log| log.bytes()),
            log_budget_bytes: self.options.log_budget_bytes,
            durable_sequence: self.durable_sequence(),
            log_syncs: log.map_or(0, |log| log.syncs()),
            log_sync: log.map(|log| log.sync_times.stats()).unwrap_or_default(),
            replay: replay_stats(self.held_log().written_bytes, self.activity.replay_rate()),
            estimated_debt_bytes: debt.debt_bytes,
            write_amplification: debt.write_amplification(),
            held: self.held(),
        }
    }

    fn stats_of(&self, table: &Table, held: &HeldLog) -> TableStats {
        let schema = table.schema();
        let states: Vec<_> = table.tablets.iter().map(|tablet| tablet.state()).collect();
        let tablets: Vec<_> = table
            .tablets
            .iter()
            .zip(&states)
            .map(|(tablet, state)| self.tablet_stats(tablet, state, &schema, held))
            .collect();
        let families = schema.record.families.iter();
        let families: Vec<_> = families
            .map(|family| self.family_stats(family, table, &states))
            .collect();
        TableStats {
            table: table.name.clone(),
            disk_bytes: families.iter().map(|family| family.disk_bytes).sum(),
            raw_bytes: families.iter().map(|family| family.raw_bytes).sum(),
            files: families.iter().map(|family| family.files).sum(),
            memtable_bytes: tablets.iter().map(|tablet| tablet.memtable_bytes).sum(),
            estimated_debt_bytes: families
                .iter()
                .map(|family| family.estimated_debt_bytes)
                .sum(),
            estimated_rows: families
                .iter()
                .map(|family| family.estimated_rows)
                .max()
                .unwrap_or(0),
            families,
            tablets,
        }
    }

    fn tablet_stats(
        &self,
        tablet: &Tablet,
        state: &TabletState,
        schema: &Schema,
        held: &HeldLog,
    ) -> TabletStats {
        let activity = &tablet.activity;
        let elapsed = activity.elapsed();
        TabletStats {
            id: tablet.id,
            start: tablet.start.clone(),
            stop: tablet.stop.clone(),
            disk_bytes: disk_bytes(state),
            files: state.files.values().flatten().count() as u64,
            memtable_bytes: state.memtable_bytes(),
            flushed_sequence: tablet.flushed_sequence(),
            reads: activity.reads.total(),
            writes: activity.writes.total(),
            reads_per_second: activity.reads.per_second(elapsed),
            writes_per_second: activity.writes.per_second(elapsed),
            oldest_unflushed_seconds: activity
                .oldest_unflushed()
                .map(|oldest| oldest.as_secs_f64()),
            log_bytes_held: held.by_tablet.get(&tablet.id).copied().unwrap_or(0),
            estimated_debt_bytes: tablet
                .debt(&schema.record.families, self.clock.now())
                .debt_bytes,
            stall: self.stall(tablet),
        }
    }

    fn family_stats(
        &self,
        family: &FamilyInfo,
        table: &Table,
        states: &[Arc<TabletState>],
    ) -> FamilyStats {
        let files: Vec<_> = states
            .iter()
            .filter_map(|state| state.files.get(&family.id))
            .flatten()
            .collect();
        let memtables: Vec<_> = states
            .iter()
            .flat_map(|state| state.memtables())
            .filter_map(|set| set.family(family.id))
            .collect();
        let in_files = |of: fn(&Sst) -> u64| files.iter().map(|file| of(file)).sum::<u64>();
        let in_memtables =
            |of: fn(&Memtable) -> u64| memtables.iter().map(|memtable| of(memtable)).sum::<u64>();
        let debt = table.family_debt(family, self.clock.now());
        FamilyStats {
            family: family.schema.name.clone(),
            disk_bytes: in_files(|file| file.meta.bytes),
            raw_bytes: in_files(|file| file.meta.properties.raw_bytes),
            files: files.len() as u64,
            entries: in_files(|file| file.meta.properties.entries),
            estimated_rows: in_files(|file| file.meta.properties.rows)
                + in_memtables(Memtable::writes),
            memtable_bytes: in_memtables(Memtable::bytes),
            cache_bytes: in_files(Sst::cached_bytes),
            cells_written: table
                .tablets
                .iter()
                .map(|tablet| tablet.activity.cells_written(family.id))
                .sum(),
            estimated_debt_bytes: debt.debt_bytes,
            read_files: debt.read_files,
            write_amplification: debt.write_amplification(),
            estimated_space_amplification: debt.space_amplification_estimate(),
            in_memory: family.schema.in_memory.then(|| in_memory_stats(&files)),
        }
    }

    /// Why the tablet's writers are slowed down, wait or are refused.
    fn stall(&self, tablet: &Tablet) -> Option<StallReason> {
        let log = self.log.as_ref()?;
        if log.disk_full().is_some() {
            return Some(StallReason::DiskFull);
        }
        match self.stall_reason(tablet) {
            pressure::StallReason::None => None,
            pressure::StallReason::MemtablesFull => Some(StallReason::MemtablesFull),
            pressure::StallReason::CompactionDebt => Some(StallReason::CompactionDebt),
        }
    }

    fn held_log(&self) -> HeldLog {
        self.log.as_ref().map(|log| log.held()).unwrap_or_default()
    }
}

fn disk_bytes(state: &TabletState) -> u64 {
    let files = state.files.values().flatten();
    files.map(|file| file.meta.bytes).sum()
}

fn in_memory_stats(files: &[&Arc<Sst>]) -> InMemoryStats {
    let wanted = files.iter().map(|file| match file.is_in_memory() {
        true => file.in_memory_bytes(),
        false => file.meta.bytes,
    });
    InMemoryStats {
        wanted_bytes: wanted.sum(),
        held_bytes: files.iter().map(|file| file.in_memory_bytes()).sum(),
        fits: files.iter().all(|file| file.is_in_memory()),
    }
}

fn replay_stats(bytes: u64, bytes_per_second: Option<u64>) -> ReplayStats {
    let millis = |rate: u64| u128::from(bytes) * 1000 / u128::from(rate.max(1));
    ReplayStats {
        bytes,
        bytes_per_second,
        estimated_millis: bytes_per_second
            .map(|rate| u64::try_from(millis(rate)).unwrap_or(u64::MAX)),
    }
}
