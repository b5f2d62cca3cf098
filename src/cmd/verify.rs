//! `tablemount verify`: checks the store in a data folder.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::bail;
use serde::Serialize;
use tablemount_engine::verify::{Finding, Summary, verify};

use crate::output::{self, Output};

/// Check all of a store: every checksum, reference, order and bound; changes nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount verify /var/lib/tablemount
  tablemount verify /var/lib/tablemount -o json | jq .findings

A server may serve the store meanwhile. Each finding is a line: file, offset, what is wrong. Lines that begin with \"note: \" are for
information. The exit code is 0 if the store is sound, 1 if it is damaged.")]
pub(crate) struct Args {
    /// The data folder.
    data_dir: PathBuf,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

#[derive(Serialize)]
struct Report {
    findings: Vec<Finding>,
    summary: Summary,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let summary = match args.output {
        Output::Table => lines(args)?,
        form => {
            let mut findings = Vec::new();
            let summary = verify(&args.data_dir, &mut |finding| findings.push(finding))?;
            output::print(&Report { findings, summary }, form == Output::Json)?;
            summary
        }
    };
    match summary.findings {
        0 => Ok(()),
        1 => bail!("{} is damaged: 1 finding", args.data_dir.display()),
        many => bail!("{} is damaged: {many} findings", args.data_dir.display()),
    }
}

/// A line as each is found, and the counts.
fn lines(args: &Args) -> anyhow::Result<Summary> {
    let mut out = output::stdout();
    let mut written = Ok(());
    let summary = verify(&args.data_dir, &mut |finding| {
        if written.is_ok() {
            written = writeln!(out, "{finding}").and_then(|()| out.flush());
        }
    })?;
    written?;
    let Summary {
        tables,
        tablets,
        files,
        blocks,
        entries,
        log_groups,
        log_records,
        findings,
        notes,
    } = summary;
    writeln!(
        out,
        "{tables} tables, {tablets} tablets, {files} files, {blocks} blocks, {entries} entries; log: {log_groups} groups, \
         {log_records} records; {findings} findings, {notes} notes"
    )?;
    out.flush()?;
    Ok(summary)
}
