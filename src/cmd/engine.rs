//! `tablemount engine`: one tablet server on one data folder.

use crate::logging::{self, LogArgs};
use crate::serve::{self, ServeArgs};
use crate::signals;

/// Run the engine: tables on a data folder, served over HTTP
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount engine --data /var/lib/tablemount
  tablemount engine --data /data --http 0.0.0.0:8080 --grpc 0.0.0.0:9090 --token-file /run/secrets/token
  tablemount engine --data /data --read-only        looks into a store, even one whose log is corrupted

SIGTERM and SIGINT end it in order; a second one ends it at once, and nothing acknowledged is lost by that.
It has no tables at first: `tablemount tables create`, or `tablemount up` with manifests.")]
pub(crate) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    /// Open without writing anything.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    logging::init(&args.log)?;
    let stop = signals::stop_token()?;
    let serving = tokio::select! {
        serving = serve::start(&args.serve, args.read_only, None) => serving?,
        () = stop.cancelled() => return Ok(()),
    };
    let failure = tokio::select! {
        () = stop.cancelled() => None,
        failure = serving.failed() => Some(failure),
    };
    let closed = serving.close().await;
    if let Some(failure) = failure {
        return Err(failure);
    }
    closed?;
    tracing::info!("closed");
    Ok(())
}
