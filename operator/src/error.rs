//! The crate's errors.

use std::net::SocketAddr;

use thiserror::Error;

/// An error of this crate.
#[derive(Debug, Error)]
pub enum Error {
    /// A manifest that the API server would refuse.
    #[error("{source_name}: {reason}")]
    Manifest {
        /// The file.
        source_name: String,
        /// The document, the object, the field and what is wrong with it.
        reason: String,
    },
    /// There is no way to the API server.
    #[error(
        "connect to the Kubernetes API server: {0}; set KUBECONFIG, or run in a pod with a service account"
    )]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The API server did not do what was asked.
    #[error("{doing}: {source}")]
    Kubernetes {
        /// The call, as a bare verb and its object.
        doing: String,
        /// Its answer.
        #[source]
        source: Box<kube::Error>,
    },
    /// An object that is needed under this name is another's.
    #[error(
        "{kind} \"{name}\" exists and does not belong to this TableCluster; delete it, or give the TableCluster another name"
    )]
    NameTaken {
        /// The object's kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A reconciliation took too long.
    #[error("no end within {seconds} s")]
    Deadline {
        /// The limit.
        seconds: u64,
    },
    /// The address for probes and metrics cannot be used.
    #[error("listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// Wraps an error of the API server with what was being done.
    pub(crate) fn kubernetes(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Kubernetes {
            doing,
            source: Box::new(source),
        }
    }
}
