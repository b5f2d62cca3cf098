//! The Bigtable API: what clients of Cloud Bigtable speak, over gRPC.
//!
//! ```text
//! data: ReadRows → row_set, filter → read_rows → chunks     MutateRow… → mutations → write
//! admin: tables → engine     instances: what clients ask for, of one server
//! ```
//! **Invariants**: nothing here touches bytes on disk; a request is checked whole before anything of it is done; an RPC that is
//! not served answers UNIMPLEMENTED with its name.

mod access;
mod admin;
pub(crate) mod chunks;
mod data;
mod filter;
mod gc_rule;
mod instances;
mod mutations;
mod names;
mod operations;
mod policies;
pub(crate) mod proto;
mod read_rows;
mod row_set;
mod row_visit;
mod samples;
mod settings;
mod status;
#[cfg(test)]
mod tests;
mod value_type;

use std::sync::Arc;

use tonic::service::RoutesBuilder;

use crate::access::Authenticator;
use crate::http::EngineSlot;
use crate::{Engine, Error, Result};

pub(crate) use self::access::AccessLayer;
use self::proto::admin::bigtable_instance_admin_server::BigtableInstanceAdminServer;
use self::proto::admin::bigtable_table_admin_server::BigtableTableAdminServer;
use self::proto::longrunning::operations_server::OperationsServer;
use self::proto::v2::bigtable_server::BigtableServer;

/// The largest request: what Bigtable's own clients may send.
const MAX_REQUEST_BYTES: usize = 256 << 20;

/// What the services serve.
#[derive(Clone)]
pub(crate) struct Served {
    slot: EngineSlot,
}

impl Served {
    fn engine(&self) -> Result<&Engine> {
        self.slot
            .get()
            .ok_or_else(|| Error::Unavailable("the server is starting".to_owned()))
    }
}

/// Adds the API's services.
pub(crate) fn add(routes: &mut RoutesBuilder, slot: EngineSlot) {
    let served = Served { slot };
    let data = BigtableServer::new(data::Data::new(served.clone()));
    routes
        .add_service(data.max_decoding_message_size(MAX_REQUEST_BYTES))
        .add_service(BigtableTableAdminServer::new(admin::TableAdmin::new(
            served.clone(),
        )))
        .add_service(BigtableInstanceAdminServer::new(
            instances::InstanceAdmin::new(served),
        ))
        .add_service(OperationsServer::new(operations::Operations));
}

/// Checks who calls.
pub(crate) fn access(authenticator: Arc<dyn Authenticator>) -> AccessLayer {
    AccessLayer::new(authenticator)
}
