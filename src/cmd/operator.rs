//! `tablemount operator`: the controllers, in Kubernetes.

use std::net::SocketAddr;

use anyhow::Context as _;
use tablemount_operator::OperatorConfig;

use crate::logging::{self, LogArgs};
use crate::signals;

/// Run the operator: keeps TableClusters and Tables of a Kubernetes cluster what their manifests say
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount operator --image registry.example.com/tablemount:0.1.0
  KUBECONFIG=~/.kube/config tablemount operator --image tablemount:dev --listen 127.0.0.1:8081

Connects by KUBECONFIG, or as a pod by its service account. The custom resources must be there: tablemount crds.")]
pub(crate) struct Args {
    /// The image of engines whose TableCluster names none; usually the operator's own.
    #[arg(long, env = "TABLEMOUNT_IMAGE", value_name = "IMAGE")]
    image: String,
    /// Where to serve /healthz, /readyz and /metrics.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:8081")]
    listen: SocketAddr,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    logging::init(&args.log)?;
    let stop = signals::stop_token()?;
    let config = OperatorConfig {
        image: args.image,
        listen: args.listen,
    };
    tablemount_operator::run(config, stop.cancelled_owned())
        .await
        .context("operator")
}
