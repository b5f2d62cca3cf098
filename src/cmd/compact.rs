//! `tablemount compact`: merge a table's files now.

use indicatif::BinaryBytes;
use tablemount_api::{CompactRequest, FamilyName, TableName};

use crate::connect::ClientArgs;
use crate::output::say;

/// Flush a table and merge the files of each family into one a tablet, now
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount compact blogtable                              after many deletes, to have their room back
  tablemount compact blogtable --family text --timeout 300

Servers compact by themselves; this is for when you want it done. It reads and writes all of the table's data. What is not done
when --timeout is over (the server waits for at most 300 s) goes on, and the command says so and ends with code 0.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    /// Only this family.
    #[arg(long)]
    family: Option<FamilyName>,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let request = CompactRequest {
        family: args.family,
    };
    let done = args.client.client()?.compact(&args.table, &request).await?;
    match done {
        Some(done) => say(&format!(
            "read {}, wrote {}",
            BinaryBytes(done.bytes_read),
            BinaryBytes(done.bytes_written)
        )),
        None => say(&format!(
            "not done yet; the server goes on: tablemount stats {}",
            args.table
        )),
    }
    Ok(())
}
