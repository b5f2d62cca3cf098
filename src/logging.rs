//! Logs of the long-running subcommands: to stderr, filtered by `TABLEMOUNT_LOG`.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

const FILTER: &str = "TABLEMOUNT_LOG";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The flag of every subcommand that logs.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArgs {
    /// How log lines look. What is logged is set by TABLEMOUNT_LOG (`info`, `debug`, `tablemount_engine=trace,info`).
    #[arg(long, value_enum, env = "TABLEMOUNT_LOG_FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// Starts logging; once a process.
pub(crate) fn init(args: &LogArgs) -> anyhow::Result<()> {
    let filter = match std::env::var(FILTER) {
        Ok(text) => EnvFilter::try_new(&text)
            .map_err(|error| anyhow::anyhow!("{FILTER}={text}: {error}"))?,
        Err(_) => EnvFilter::new("info"),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        // The terminal may be gone: that must not end what goes on without it.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match args.log_format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
