//! `tablemount sst`: looks into files of a store.

use std::path::PathBuf;

use tablemount_engine::dump;

use crate::output;

/// Look into an SST, a file that holds cells
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print all that a file holds, in the order of its keys, and what is damaged in it
    #[command(after_help = "\
Example:
  tablemount sst dump /var/lib/tablemount/tablets/00000001/sst/1/3-00000007 --values

Keys and values are in the path encoding. What is damaged is a line that begins with \"damaged \"; the rest is shown all the same,
and the exit code is 1.")]
    Dump(Dump),
}

#[derive(Debug, clap::Args)]
struct Dump {
    /// The file.
    file: PathBuf,
    /// Print values too, not only their lengths.
    #[arg(long)]
    values: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Action::Dump(Dump { file, values }) = &args.action;
    output::dump(|out| dump::sst(file, *values, out))
}
