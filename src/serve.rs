//! An engine with its HTTP and gRPC edges, as `engine` and `up` run it.
//!
//! **Invariants**: addresses are taken before the data folder is touched; `/v1` serves only when the engine is open; at the end
//! the edges stop first, then the engine flushes and closes; without a word anonymous callers get in only where the address is
//! this machine's own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use tablemount_engine::access::{Anonymous, Authenticator, StaticAuthenticator};
use tablemount_engine::http::{EngineSlot, HttpServer};
use tablemount_engine::{Config, Engine, GrpcServer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The flags of `engine` and `up`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The folder that holds everything; made if absent. A file:// URL is taken too.
    #[arg(long, value_name = "DIR|URL", env = "TABLEMOUNT_DATA", value_parser = data_folder)]
    pub(crate) data: PathBuf,
    /// Where to serve HTTP.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = address)]
    pub(crate) http: String,
    /// Where to serve gRPC (health).
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9090", value_parser = address)]
    pub(crate) grpc: String,
    /// What requests without a token may do; absent: read-write if the HTTP address is a loopback address, else none.
    #[arg(long, value_enum)]
    pub(crate) anonymous: Option<AnonymousArg>,
    /// A file with tokens, one a line, whose bearers may do everything. It may come and change later.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) budgets: Budgets,
}

/// How much memory and disk may be used.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Budgets (bytes, or with KiB, MiB, GiB)")]
pub(crate) struct Budgets {
    /// Cells in memory that are not in files yet; above it writers wait.
    #[arg(long, env = "TABLEMOUNT_MEMTABLE_BUDGET", value_name = "SIZE", default_value = "128MiB", value_parser = size)]
    memtable_budget: u64,
    /// The commit log; above it the tablets with the oldest records are flushed.
    #[arg(long, env = "TABLEMOUNT_LOG_BUDGET", value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    log_budget: u64,
    /// Blocks of files that were read, and the files' indexes and filters.
    #[arg(
        long,
        env = "TABLEMOUNT_CACHE_BUDGET",
        value_name = "SIZE",
        default_value = "256MiB",
        value_parser = size
    )]
    cache_budget: u64,
    /// Files of in-memory families; those beyond it are read from disk.
    #[arg(long, env = "TABLEMOUNT_IN_MEMORY_BUDGET", value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    in_memory_budget: u64,
    /// What compactions read and write together in a second; 0: as much as they can. Not kept while writers wait for them.
    #[arg(long, env = "TABLEMOUNT_COMPACTION_RATE", value_name = "SIZE", default_value = "0", value_parser = rate)]
    compaction_rate: u64,
}

/// What requests without a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AnonymousArg {
    /// Nothing.
    None,
    /// Read.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

impl From<AnonymousArg> for Anonymous {
    fn from(argument: AnonymousArg) -> Self {
        match argument {
            AnonymousArg::None => Self::None,
            AnonymousArg::ReadOnly => Self::ReadOnly,
            AnonymousArg::ReadWrite => Self::ReadWrite,
        }
    }
}

/// An engine that serves.
pub(crate) struct Serving {
    engine: Engine,
    http_addr: SocketAddr,
    stop: CancellationToken,
    http: JoinHandle<()>,
    grpc: JoinHandle<tablemount_engine::Result<()>>,
}

/// Listens, opens the store and serves. `admin_token` is that of callers in this process.
pub(crate) async fn start(
    args: &ServeArgs,
    read_only: bool,
    admin_token: Option<String>,
) -> anyhow::Result<Serving> {
    let slot = EngineSlot::default();
    let mut access = StaticAuthenticator::new(anonymous(args));
    if let Some(file) = &args.token_file {
        access = access.token_file(file.clone());
    }
    if let Some(token) = admin_token {
        access = access.admin_token(token);
    }
    let access: Arc<dyn Authenticator> = Arc::new(access);
    let http = HttpServer::bind(&args.http, Arc::clone(&access), Arc::clone(&slot))
        .await
        .context("http")?;
    let grpc = GrpcServer::bind(&args.grpc, access, Arc::clone(&slot))
        .await
        .context("grpc")?;
    let (http_addr, stop) = (http.local_addr(), CancellationToken::new());
    // Dropped on an early return, it ends both servers.
    let guard = stop.clone().drop_guard();
    let http = tokio::spawn(http.serve(stop.clone()));
    let grpc = tokio::spawn(grpc.serve(stop.clone()));
    let engine = Engine::open(config(args, read_only)).await?;
    // The slot is this function's own: nobody else has filled it.
    let _ = slot.set(engine.clone());
    tracing::info!(data = %args.data.display(), read_only, "ready");
    guard.disarm();
    Ok(Serving {
        engine,
        http_addr,
        stop,
        http,
        grpc,
    })
}

impl Serving {
    /// Where a process of this machine reaches it.
    pub(crate) fn url(&self) -> String {
        let ip = match self.http_addr.ip() {
            ip if !ip.is_unspecified() => ip,
            std::net::IpAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            std::net::IpAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        format!("http://{}", SocketAddr::new(ip, self.http_addr.port()))
    }

    /// Waits until the store can no longer make writes durable; the process must end then.
    pub(crate) async fn failed(&self) -> anyhow::Error {
        anyhow!("{}", self.engine.failed().await)
    }

    /// Waits for requests in flight, then flushes and closes the store.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let (http, grpc) = (self.http.await, self.grpc.await);
        self.engine.close().await.context("close the store")?;
        http.context("http")?;
        Ok(grpc.context("grpc")??)
    }
}

/// The access of anonymous callers, with a word about a default that may surprise.
fn anonymous(args: &ServeArgs) -> Anonymous {
    let granted = args.anonymous.unwrap_or(match is_loopback(&args.http) {
        true => AnonymousArg::ReadWrite,
        false => AnonymousArg::None,
    });
    if args.anonymous.is_none() && granted == AnonymousArg::None {
        tracing::warn!(
            "{} is not a loopback address: requests without a token are refused; --anonymous read-write lets them in",
            args.http
        );
    }
    if granted == AnonymousArg::None && args.token_file.is_none() {
        tracing::warn!(
            "neither --anonymous nor --token-file is given: every request from outside is refused"
        );
    }
    granted.into()
}

fn is_loopback(address: &str) -> bool {
    match address.parse::<SocketAddr>() {
        Ok(address) => address.ip().is_loopback(),
        Err(_) => address.starts_with("localhost:"),
    }
}

fn config(args: &ServeArgs, read_only: bool) -> Config {
    Config {
        read_only,
        memtable_budget_bytes: args.budgets.memtable_budget,
        log_budget_bytes: args.budgets.log_budget,
        cache_bytes: args.budgets.cache_budget,
        in_memory_budget_bytes: args.budgets.in_memory_budget,
        compaction_bytes_per_second: args.budgets.compaction_rate,
        ..Config::new(&args.data)
    }
}

fn data_folder(text: &str) -> anyhow::Result<PathBuf> {
    match text.split_once("://") {
        None if text.is_empty() => bail!("it is empty; give a directory"),
        None => Ok(text.into()),
        Some(("file", path)) if path.starts_with('/') => Ok(path.into()),
        Some(("file", _)) => bail!("a file URL has an absolute path: file:///var/lib/tablemount"),
        Some((scheme, _)) => bail!(
            "object stores ({scheme}://) are not supported yet; give a directory or a file:// URL"
        ),
    }
}

fn address(text: &str) -> anyhow::Result<String> {
    let port = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty())
        .and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(_) => Ok(text.to_owned()),
        None => bail!("it is not HOST:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080"),
    }
}

/// A size a second, or 0.
fn rate(text: &str) -> anyhow::Result<u64> {
    match text {
        "0" => Ok(0),
        text => size(text),
    }
}

fn size(text: &str) -> anyhow::Result<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (digits, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?.trim_end(), *shift)))
        .unwrap_or((text, 0));
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes >= 1 << 20)
        .ok_or_else(|| anyhow!("it is not a size of 1 MiB or more, such as 64MiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_folders() {
        let check = |text: &str, expected: Result<&str, &str>| {
            let parsed = data_folder(text);
            assert_eq!(
                parsed.as_deref().map_err(ToString::to_string),
                expected.map(std::path::Path::new).map_err(str::to_owned)
            );
        };
        check("/data", Ok("/data"));
        check("data", Ok("data"));
        check("file:///data", Ok("/data"));
        check(
            "file://data",
            Err("a file URL has an absolute path: file:///var/lib/tablemount"),
        );
        check(
            "s3://bucket/x",
            Err("object stores (s3://) are not supported yet; give a directory or a file:// URL"),
        );
        check("", Err("it is empty; give a directory"));
    }

    #[test]
    fn sizes_and_addresses() {
        assert_eq!(size("64MiB").expect("size"), 64 << 20);
        assert_eq!(size("2 GiB").expect("size"), 2 << 30);
        assert_eq!(size("1048576").expect("size"), 1 << 20);
        assert_eq!(rate("0").expect("none"), 0);
        assert_eq!(rate("5MiB").expect("a rate"), 5 << 20);
        for bad in ["", "1", "64MB", "-1MiB", "99999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        for good in ["127.0.0.1:0", "[::1]:8080", "localhost:80"] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in ["", ":8080", "127.0.0.1", "1.2.3.4:99999"] {
            assert!(address(bad).is_err(), "{bad}");
        }
        assert!(is_loopback("127.0.0.1:1") && is_loopback("[::1]:1") && is_loopback("localhost:1"));
        assert!(!is_loopback("0.0.0.0:1") && !is_loopback("[::]:1"));
    }
}
