//! `tablemount healthcheck`: whether a URL answers, for probes in an image that has no shell.

use std::time::Duration;

use anyhow::{Context as _, ensure};

/// Ask a URL, and succeed if it answers 2xx
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tablemount healthcheck --url http://main.default.svc:8080/readyz")]
pub(crate) struct Args {
    /// What to ask.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080/readyz"
    )]
    url: String,
    /// Time limit, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let timeout = Duration::from_secs(args.timeout);
    let client = reqwest::Client::builder()
        .timeout(timeout)
        .build()
        .context("set up the HTTP client")?;
    let status = match client.get(&args.url).send().await {
        Ok(response) => response.status(),
        Err(error) if error.is_timeout() => {
            anyhow::bail!("{}: no answer within {} s", args.url, args.timeout)
        }
        Err(error) => {
            let error = anyhow::Error::from(error.without_url());
            anyhow::bail!("{}: {}", args.url, error.root_cause());
        }
    };
    ensure!(status.is_success(), "{}: answered {status}", args.url);
    Ok(())
}
