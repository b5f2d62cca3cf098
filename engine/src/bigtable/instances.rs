//! `google.bigtable.admin.v2.BigtableInstanceAdmin`: every instance name that a client uses is there, with one cluster.

use tonic::{Request, Response, Status};

use super::proto::admin;
use super::proto::admin::bigtable_instance_admin_server::BigtableInstanceAdmin;
use super::{Served, names};

/// The service.
pub(crate) struct InstanceAdmin {
    _served: Served,
}

impl InstanceAdmin {
    pub(crate) fn new(served: Served) -> Self {
        Self { _served: served }
    }
}

type Answer<T> = Result<Response<T>, Status>;

fn instance(name: &str) -> admin::Instance {
    admin::Instance {
        name: name.to_owned(),
        display_name: name.rsplit('/').next().unwrap_or_default().to_owned(),
        state: admin::instance::State::Ready.into(),
        r#type: admin::instance::Type::Production.into(),
        ..admin::Instance::default()
    }
}

#[tonic::async_trait]
impl BigtableInstanceAdmin for InstanceAdmin {
    async fn get_instance(
        &self,
        request: Request<admin::GetInstanceRequest>,
    ) -> Answer<admin::Instance> {
        let name = names::InstanceName::parse(&request.get_ref().name)?;
        Ok(Response::new(instance(&name.to_string())))
    }
}
