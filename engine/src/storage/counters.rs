//! What flushes, compactions and slow-downs tell the metrics recorder. Of the whole server; figures by table come from
//! statistics.

use std::sync::OnceLock;
use std::time::Duration;

use super::debt::Debt;
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const FLUSHES: &str = "tablemount_flushes_total";
const FLUSH_BYTES: &str = "tablemount_flush_bytes_total";
const COMPACTIONS: &str = "tablemount_compactions_total";
const BYTES_READ: &str = "tablemount_compaction_bytes_read_total";
const BYTES_WRITTEN: &str = "tablemount_compaction_bytes_written_total";
const FAILURES: &str = "tablemount_compaction_failures_total";
const RUNNING: &str = "tablemount_compactions_running";
const WAITING: &str = "tablemount_compactions_waiting_for_disk";
const DEBT: &str = "tablemount_compaction_debt_bytes";
const READ_FILES: &str = "tablemount_read_files";
const WRITE_AMPLIFICATION: &str = "tablemount_write_amplification";
const SPACE_AMPLIFICATION: &str = "tablemount_space_amplification_estimate";
const STALL: &str = "tablemount_write_stall_seconds";

fn described() {
    static DESCRIBED: OnceLock<()> = OnceLock::new();
    DESCRIBED.get_or_init(|| {
        describe_counter!(FLUSHES, "Flushes of a tablet's memtables");
        describe_counter!(FLUSH_BYTES, "Bytes of SSTs that flushes wrote");
        describe_counter!(
            COMPACTIONS,
            "Compactions of files of one family of a tablet"
        );
        describe_counter!(BYTES_READ, "Bytes of SSTs that compactions merged");
        describe_counter!(BYTES_WRITTEN, "Bytes of SSTs that compactions wrote");
        describe_counter!(FAILURES, "Compactions that failed and are tried again");
        describe_gauge!(RUNNING, "Compactions that run");
        describe_gauge!(WAITING, "1 while compactions wait for room on the disk");
        describe_gauge!(
            DEBT,
            "Bytes that compactions still have to write, estimated"
        );
        describe_gauge!(
            READ_FILES,
            "The most files of one family of one tablet: what a read may look into"
        );
        describe_gauge!(
            WRITE_AMPLIFICATION,
            "Bytes of SSTs written for each byte flushed, since the start"
        );
        describe_gauge!(
            SPACE_AMPLIFICATION,
            "Bytes of SSTs for each byte of the largest of each family and tablet"
        );
        describe_histogram!(STALL, "Time that a write was held back, by reason");
    });
}

/// A flush is published.
pub(super) fn flushed(bytes: u64) {
    described();
    counter!(FLUSHES).increment(1);
    counter!(FLUSH_BYTES).increment(bytes);
}

/// A compaction is published.
pub(super) fn compacted(bytes_read: u64, bytes_written: u64) {
    described();
    counter!(COMPACTIONS).increment(1);
    counter!(BYTES_READ).increment(bytes_read);
    counter!(BYTES_WRITTEN).increment(bytes_written);
}

pub(super) fn compaction_failed() {
    described();
    counter!(FAILURES).increment(1);
}

/// Compactions that run now, more or fewer by this.
pub(super) fn compactions_running(change: f64) {
    described();
    gauge!(RUNNING).increment(change);
}

/// Whether compactions wait for room on the disk.
pub(super) fn compactions_waiting_for_room(wait: bool) {
    described();
    gauge!(WAITING).set(f64::from(u8::from(wait)));
}

/// What compactions owe and cost now, in the whole store.
pub(super) fn debt(debt: &Debt) {
    described();
    gauge!(DEBT).set(debt.debt_bytes as f64);
    gauge!(READ_FILES).set(debt.read_files as f64);
    gauge!(WRITE_AMPLIFICATION).set(debt.write_amplification());
    gauge!(SPACE_AMPLIFICATION).set(debt.space_amplification_estimate());
}

/// A write was held back.
pub(crate) fn stalled(reason: &'static str, time: Duration) {
    described();
    histogram!(STALL, "reason" => reason).record(time);
}
