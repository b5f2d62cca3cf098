//! `tablemount crds`: the custom resource definitions, generated from the code.

use std::io::Write as _;

use crate::output;

/// Print the custom resource definitions as YAML
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tablemount crds | kubectl apply --server-side -f -")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> anyhow::Result<()> {
    let mut out = output::stdout();
    out.write_all(tablemount_operator::crds_yaml().as_bytes())?;
    Ok(out.flush()?)
}
