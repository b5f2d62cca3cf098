//! `tablemount log`: looks into commit logs of a store.

use std::path::PathBuf;

use tablemount_engine::dump;

use crate::output;

/// Look into a segment of a commit log, a file that holds what was written last
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print the groups, records and entries of a segment, and what is damaged in it
    #[command(after_help = "\
Example:
  tablemount log dump /var/lib/tablemount/logs/0b1f6c1e-7d0c-4a41-9d5e-2f6a3a3f1c55/000000000001

Rows and qualifiers are in the path encoding. What is damaged is a line that begins with \"damaged \"; the rest is shown all the
same, and the exit code is 1. What was being written when the power went is a line \"torn \", and no damage.")]
    Dump(Dump),
}

#[derive(Debug, clap::Args)]
struct Dump {
    /// The segment.
    file: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Action::Dump(Dump { file }) = &args.action;
    output::dump(|out| dump::log(file, out))
}
