//! in work
/// In work
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) async fn run(_: Args) -> anyhow::Result<()> { Ok(()) }
