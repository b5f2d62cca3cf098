//! Clients of the TableClusters' servers, kept between reconciliations for their connections.
//!
//! **Invariant**: a client is used only with the token that the Secret holds now.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tablemount_client::{Client, Config, TokenSource};

use crate::render::endpoint;

/// The time limit of a call.
const CALL: Duration = Duration::from_secs(10);
/// Clients kept at most.
const MAX_CLIENTS: usize = 1000;

type Place = (String, String);

/// The clients by namespace and TableCluster, each with its token.
#[derive(Default)]
pub(super) struct Engines {
    clients: Mutex<HashMap<Place, (String, Client)>>,
}

impl Engines {
    /// A client of the server of TableCluster `cluster`.
    pub(super) fn client(
        &self,
        namespace: &str,
        cluster: &str,
        token: String,
    ) -> Result<Client, tablemount_client::Error> {
        let place = (namespace.to_owned(), cluster.to_owned());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = clients.get(&place).filter(|(known, _)| *known == token) {
            return Ok(client.clone());
        }
        let client = Client::new(Config {
            url: endpoint(namespace, cluster),
            token: TokenSource::Static(token.clone()),
            timeout: CALL,
        })?;
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        clients.insert(place, (token, client.clone()));
        Ok(client)
    }
}
