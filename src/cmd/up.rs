//! `tablemount up`: engine, reconciler and mount in one process, from the manifests that `kubectl apply` takes.

use std::path::PathBuf;

use anyhow::bail;
use tablemount_client::{Client, Config, TokenSource};
use tablemount_fusefs::{Mount, MountConfig};
use tokio::signal::unix::Signal;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::exit;
use crate::logging::{self, LogArgs};
use crate::reconciler::{Manifests, Reconciler};
use crate::serve::{self, ServeArgs, Serving};
use crate::signals;
use crate::up_hints;

/// Run everything on this machine: tables from manifests, an engine, and a mount
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount up -f crds/examples --data ./data --mount ./tables
  tablemount up -f blog.yaml -f map.yaml --data /var/lib/tablemount --http 0.0.0.0:8080 --anonymous read-only

It takes the manifests that `kubectl apply` takes, and is its own cluster: Tables are served whatever their clusterRef,
TableClusters are checked and otherwise passed over. SIGHUP, or the next start, applies changed manifests. A Table that is gone
from the files on SIGHUP is dropped if its deletionPolicy is Delete, else its table stays. SIGTERM and SIGINT unmount and close.")]
pub(crate) struct Args {
    /// Manifests: files, directories of them (*.yaml, *.yml, *.json), or `-` for stdin.
    #[arg(short = 'f', long = "filename", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Mount the tables on this empty directory.
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    logging::init(&args.log)?;
    let stop = signals::stop_token()?;
    // From here on, so that a reload sent early does not end the process.
    let mut hangups = signals::hangups()?;
    let manifests = Manifests::read(args.files.clone())?;
    let token = Uuid::new_v4().to_string();
    let serving = tokio::select! {
        serving = serve::start(&args.serve, false, Some(token.clone())) => serving?,
        () = stop.cancelled() => return Ok(()),
    };
    let up = up(&args, manifests, &serving, token, &stop, &mut hangups).await;
    let closed = serving.close().await;
    up.and(closed)
}

/// Reconciles, mounts and waits; what it started besides the engine has ended when it returns.
async fn up(
    args: &Args,
    manifests: Manifests,
    serving: &Serving,
    token: String,
    stop: &CancellationToken,
    hangups: &mut Signal,
) -> anyhow::Result<()> {
    let client = Client::new(Config {
        token: TokenSource::Static(token),
        ..Config::new(serving.url())
    })?;
    let mut reconciler = Reconciler::new(client.clone(), manifests);
    reconciler.start().await?;
    let mount = match &args.mount {
        Some(mountpoint) => {
            let mount = tablemount_fusefs::mount(MountConfig::new(client, mountpoint)).await?;
            signals::detach_at_second(mountpoint);
            Some(mount)
        }
        None => None,
    };
    up_hints::print(
        &serving.url(),
        args.mount.as_deref(),
        reconciler.table_names(),
    );
    let waited = wait(&mut reconciler, mount.as_ref(), serving, stop, hangups).await;
    if let Some(mount) = mount {
        mount.unmount().await?;
    }
    waited
}

async fn wait(
    reconciler: &mut Reconciler,
    mount: Option<&Mount>,
    serving: &Serving,
    stop: &CancellationToken,
    hangups: &mut Signal,
) -> anyhow::Result<()> {
    loop {
        let unmounted = async {
            match mount {
                Some(mount) => mount.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            failure = serving.failed() => return Err(failure),
            () = unmounted => bail!("the mount was taken away from outside; stopping"),
            _ = hangups.recv() => {
                if let Err(error) = reconciler.read_again().await {
                    exit::report(&format!("{error:#}"));
                }
            }
        }
    }
}
