//! `tablemount healthcheck`: whether a URL answers, for probes in an image that has no shell.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// Between two requests, while waiting.
const PAUSE: Duration = Duration::from_millis(500);

/// Ask a URL, and succeed if it answers 2xx
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  tablemount healthcheck --url http://main.default.svc:8080/readyz --wait 60")]
pub(crate) struct Args {
    /// What to ask.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:8080/readyz"
    )]
    url: String,
    /// Time limit of a request, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
    /// Ask again until it answers 2xx, for so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = clap::value_parser!(u64).range(0..=3600))]
    wait: u64,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let client = reqwest::Client::builder()
        .timeout(Duration::from_secs(args.timeout))
        .build()
        .context("set up the HTTP client")?;
    let end = Instant::now() + Duration::from_secs(args.wait);
    loop {
        match ask(&client, &args).await {
            Err(error) if args.wait > 0 && end <= Instant::now() + PAUSE => {
                return Err(error.context(format!("waited {} s", args.wait)));
            }
            Err(_) if args.wait > 0 => tokio::time::sleep(PAUSE).await,
            answer => return answer,
        }
    }
}

async fn ask(client: &reqwest::Client, args: &Args) -> anyhow::Result<()> {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// A server that answers 503 so many times, then 200; its URL.
    async fn server(unavailable: usize) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bind");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move {
            for request in 0.. {
                let (mut stream, _) = listener.accept().await.expect("accept");
                let mut head = [0; 1024];
                assert!(stream.read(&mut head).await.expect("a request") > 0);
                let status = match request < unavailable {
                    true => "503 Service Unavailable",
                    false => "200 OK",
                };
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.expect("answer");
            }
        });
        format!("http://{address}/readyz")
    }

    async fn check(unavailable: usize, wait: u64) -> Result<(), String> {
        let url = server(unavailable).await;
        let args = Args {
            url: url.clone(),
            timeout: 5,
            wait,
        };
        let answer = run(args).await;
        answer.map_err(|error| format!("{error:#}").replace(&url, "URL"))
    }

    #[tokio::test]
    async fn it_waits_until_the_answer_is_good() {
        assert_eq!(check(2, 60).await, Ok(()));
        assert_eq!(check(0, 0).await, Ok(()));
    }

    #[tokio::test]
    async fn waiting_ends() {
        let unavailable = "URL: answered 503 Service Unavailable";
        assert_eq!(check(1, 0).await, Err(unavailable.to_owned()));
        assert_eq!(
            check(usize::MAX, 1).await,
            Err(format!("waited 1 s: {unavailable}"))
        );
    }
}
