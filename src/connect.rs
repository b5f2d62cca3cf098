//! Which engine a subcommand talks to: the flags, and the client made of them.

use std::path::PathBuf;
use std::time::Duration;

use tablemount_client::{Client, Config, TokenSource};

/// The flags of every subcommand that talks to an engine.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ClientArgs {
    /// The engine's HTTP address.
    #[arg(
        long,
        env = "TABLEMOUNT_SERVER",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    pub(crate) server: String,
    /// A file with the bearer token; it is read again when it changes.
    #[arg(long, env = "TABLEMOUNT_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Time limit of one request, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) timeout: u64,
}

impl ClientArgs {
    /// A client; nothing is sent yet.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let token = self
            .token_file
            .clone()
            .map_or(TokenSource::None, TokenSource::File);
        Ok(Client::new(Config {
            url: self.url(),
            token,
            timeout: Duration::from_secs(self.timeout),
        })?)
    }

    /// The server with its scheme: `host:port` alone means http.
    pub(crate) fn url(&self) -> String {
        match self.server.contains("://") {
            true => self.server.clone(),
            false => format!("http://{}", self.server),
        }
    }
}
