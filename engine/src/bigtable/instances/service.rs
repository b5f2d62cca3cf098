//! The RPCs.

use std::sync::Arc;

use prost::Message;
use prost_types::FieldMask;
use tablemount_api::Base64;
use tonic::{Request, Response, Status};

use super::{
    checked_id, cluster, clusters, create, delete_instance, inside, instance, not_found, present,
    profiles, scaled,
};
use crate::bigtable::names::InstanceName;
use crate::bigtable::proto::admin;
use crate::bigtable::proto::admin::bigtable_instance_admin_server::BigtableInstanceAdmin;
use crate::bigtable::proto::google::iam::v1 as iam;
use crate::bigtable::proto::longrunning::Operation;
use crate::bigtable::{Served, operations, policies};
use crate::storage::store::Store;
use crate::{Error, Result};

/// The service.
pub(crate) struct InstanceAdmin {
    served: Served,
}

impl InstanceAdmin {
    pub(crate) fn new(served: Served) -> Self {
        Self { served }
    }

    fn store(&self) -> Result<&Arc<Store>> {
        Ok(self.served.engine()?.store())
    }

    /// Runs what writes to the disk on a thread for that.
    async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Store) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, Status> {
        let store = self.store()?.clone();
        let changed = tokio::task::spawn_blocking(move || change(&store)).await;
        let changed = changed.map_err(|error| Error::Io(format!("a change ended: {error}")))?;
        changed.map_err(|error| match error {
            Error::Conflict(message) => Status::already_exists(message),
            error => error.into(),
        })
    }
}

type Answer<T> = std::result::Result<Response<T>, Status>;

const INSTANCE: &str = "google.bigtable.admin.v2.Instance";
const CLUSTER: &str = "google.bigtable.admin.v2.Cluster";
const PROFILE: &str = "google.bigtable.admin.v2.AppProfile";

/// An operation that made or changed `response`.
fn done<M: Message>(
    name: &str,
    (metadata_type, metadata): (&str, &impl Message),
    (response_type, response): (&str, &M),
) -> Response<Operation> {
    Response::new(operations::done(
        format!("operations/{name}"),
        (
            &format!("google.bigtable.admin.v2.{metadata_type}"),
            metadata,
        ),
        (response_type, response),
    ))
}

fn missing(field: &str) -> Error {
    Error::Invalid(format!("{field} is missing"))
}

/// Calls `set` for each field that an update names.
fn update(mask: Option<FieldMask>, mut set: impl FnMut(&str) -> bool) -> Result<()> {
    let paths = mask.unwrap_or_default().paths;
    if paths.is_empty() {
        return Err(Error::Invalid("update_mask names nothing".to_owned()));
    }
    for path in &paths {
        let field = path.split('.').next().unwrap_or_default();
        if !set(field) {
            return Err(Error::Invalid(format!(
                "update_mask: {path} cannot be updated"
            )));
        }
    }
    Ok(())
}

fn put(store: &Store, name: &str, content: &impl Message) -> Result<()> {
    let content = Base64(content.encode_to_vec().into());
    store.change_resources(|all| {
        all.insert(name.to_owned(), content);
        Ok(())
    })
}

#[tonic::async_trait]
impl BigtableInstanceAdmin for InstanceAdmin {
    async fn create_instance(
        &self,
        request: Request<admin::CreateInstanceRequest>,
    ) -> Answer<Operation> {
        let request = request.into_inner();
        let id = checked_id("instance", &request.instance_id)?;
        let name = InstanceName::parse(&format!("{}/instances/{id}", request.parent))?;
        let mut made = request
            .instance
            .clone()
            .ok_or_else(|| missing("instance"))?;
        made.name = name.to_string();
        made.state = admin::instance::State::Ready.into();
        if made.r#type() == admin::instance::Type::Unspecified {
            made.r#type = admin::instance::Type::Production.into();
        }
        let mut parts = Vec::new();
        for (id, cluster) in &request.clusters {
            let mut cluster = cluster.clone();
            cluster.name = format!("{name}/clusters/{}", checked_id("cluster", id)?);
            cluster.state = admin::cluster::State::Ready.into();
            scaled(&mut cluster);
            parts.push(cluster);
        }
        let answer = made.clone();
        self.change(move |store| {
            store.change_resources(|all| {
                create(all, &made.name, &made)?;
                parts
                    .iter()
                    .try_for_each(|cluster| create(all, &cluster.name, cluster))
            })
        })
        .await?;
        let metadata = admin::CreateInstanceMetadata {
            original_request: Some(request),
            ..admin::CreateInstanceMetadata::default()
        };
        let metadata = ("CreateInstanceMetadata", &metadata);
        Ok(done(&answer.name, metadata, (INSTANCE, &answer)))
    }

    async fn get_instance(
        &self,
        request: Request<admin::GetInstanceRequest>,
    ) -> Answer<admin::Instance> {
        let name = InstanceName::parse(&request.get_ref().name)?;
        Ok(Response::new(instance(self.store()?, &name)?))
    }

    async fn list_instances(
        &self,
        request: Request<admin::ListInstancesRequest>,
    ) -> Answer<admin::ListInstancesResponse> {
        let prefix = format!("{}/instances/", request.get_ref().parent);
        let store = self.store()?;
        let mut instances = Vec::new();
        for (name, content) in store.resources(&prefix) {
            // What lies in an instance has a longer name; what was deleted has no content.
            if name[prefix.len()..].contains('/') || content.is_empty() {
                continue;
            }
            instances.push(super::decode(&name, content)?);
        }
        Ok(Response::new(admin::ListInstancesResponse {
            instances,
            ..admin::ListInstancesResponse::default()
        }))
    }

    async fn update_instance(&self, request: Request<admin::Instance>) -> Answer<admin::Instance> {
        let mut wanted = request.into_inner();
        let name = InstanceName::parse(&wanted.name)?;
        present(self.store()?, &name)?;
        wanted.state = admin::instance::State::Ready.into();
        let answer = wanted.clone();
        self.change(move |store| put(store, &wanted.name, &wanted))
            .await?;
        Ok(Response::new(answer))
    }

    async fn partial_update_instance(
        &self,
        request: Request<admin::PartialUpdateInstanceRequest>,
    ) -> Answer<Operation> {
        let request = request.into_inner();
        let wanted = request
            .instance
            .clone()
            .ok_or_else(|| missing("instance"))?;
        let mut changed = instance(self.store()?, &InstanceName::parse(&wanted.name)?)?;
        update(request.update_mask.clone(), |field| {
            match field {
                "display_name" => changed.display_name.clone_from(&wanted.display_name),
                "labels" => changed.labels.clone_from(&wanted.labels),
                "type" => changed.r#type = wanted.r#type,
                _ => return false,
            }
            true
        })?;
        let answer = changed.clone();
        self.change(move |store| put(store, &changed.name, &changed))
            .await?;
        let metadata = admin::UpdateInstanceMetadata {
            original_request: Some(request),
            ..admin::UpdateInstanceMetadata::default()
        };
        let metadata = ("UpdateInstanceMetadata", &metadata);
        Ok(done(&answer.name, metadata, (INSTANCE, &answer)))
    }

    async fn delete_instance(&self, request: Request<admin::DeleteInstanceRequest>) -> Answer<()> {
        let name = InstanceName::parse(&request.get_ref().name)?;
        self.change(move |store| delete_instance(store, &name))
            .await?;
        Ok(Response::new(()))
    }

    async fn create_cluster(
        &self,
        request: Request<admin::CreateClusterRequest>,
    ) -> Answer<Operation> {
        let request = request.into_inner();
        let instance = InstanceName::parse(&request.parent)?;
        present(self.store()?, &instance)?;
        let id = checked_id("cluster", &request.cluster_id)?;
        let mut made = request.cluster.clone().ok_or_else(|| missing("cluster"))?;
        made.name = format!("{instance}/clusters/{id}");
        made.state = admin::cluster::State::Ready.into();
        scaled(&mut made);
        let answer = made.clone();
        self.change(move |store| store.change_resources(|all| create(all, &made.name, &made)))
            .await?;
        let metadata = admin::CreateClusterMetadata {
            original_request: Some(request),
            ..admin::CreateClusterMetadata::default()
        };
        let metadata = ("CreateClusterMetadata", &metadata);
        Ok(done(&answer.name, metadata, (CLUSTER, &answer)))
    }

    async fn get_cluster(
        &self,
        request: Request<admin::GetClusterRequest>,
    ) -> Answer<admin::Cluster> {
        Ok(Response::new(cluster(
            self.store()?,
            &request.get_ref().name,
        )?))
    }

    async fn list_clusters(
        &self,
        request: Request<admin::ListClustersRequest>,
    ) -> Answer<admin::ListClustersResponse> {
        let store = self.store()?;
        let parent = &request.get_ref().parent;
        // "-" stands for all instances.
        let clusters = match parent.strip_suffix("/instances/-") {
            None => clusters(store, &InstanceName::parse(parent)?)?,
            Some(project) => store
                .resources(&format!("{project}/instances/"))
                .into_iter()
                .filter(|(name, _)| name.contains("/clusters/"))
                .map(|(name, content)| super::decode(&name, content))
                .collect::<Result<_>>()?,
        };
        Ok(Response::new(admin::ListClustersResponse {
            clusters,
            ..admin::ListClustersResponse::default()
        }))
    }

    async fn update_cluster(&self, request: Request<admin::Cluster>) -> Answer<Operation> {
        let wanted = request.into_inner();
        let mut changed = cluster(self.store()?, &wanted.name)?;
        changed.serve_nodes = wanted.serve_nodes;
        changed.config.clone_from(&wanted.config);
        scaled(&mut changed);
        let answer = changed.clone();
        self.change(move |store| put(store, &changed.name, &changed))
            .await?;
        let metadata = admin::UpdateClusterMetadata {
            original_request: Some(wanted),
            ..admin::UpdateClusterMetadata::default()
        };
        let metadata = ("UpdateClusterMetadata", &metadata);
        Ok(done(&answer.name, metadata, (CLUSTER, &answer)))
    }

    async fn partial_update_cluster(
        &self,
        request: Request<admin::PartialUpdateClusterRequest>,
    ) -> Answer<Operation> {
        let request = request.into_inner();
        let wanted = request.cluster.clone().ok_or_else(|| missing("cluster"))?;
        let mut changed = cluster(self.store()?, &wanted.name)?;
        update(request.update_mask.clone(), |field| {
            match field {
                "serve_nodes" => changed.serve_nodes = wanted.serve_nodes,
                "cluster_config" => changed.config.clone_from(&wanted.config),
                _ => return false,
            }
            true
        })?;
        scaled(&mut changed);
        let answer = changed.clone();
        self.change(move |store| put(store, &changed.name, &changed))
            .await?;
        let metadata = admin::PartialUpdateClusterMetadata {
            original_request: Some(request),
            ..admin::PartialUpdateClusterMetadata::default()
        };
        let metadata = ("PartialUpdateClusterMetadata", &metadata);
        Ok(done(&answer.name, metadata, (CLUSTER, &answer)))
    }

    async fn delete_cluster(&self, request: Request<admin::DeleteClusterRequest>) -> Answer<()> {
        let name = request.into_inner().name;
        cluster(self.store()?, &name)?;
        self.change(move |store| {
            store.change_resources(|all| match all.remove(&name) {
                Some(_) => Ok(()),
                None => Err(Error::Precondition(format!(
                    "\"{name}\" is the cluster of an instance that was never made"
                ))),
            })
        })
        .await?;
        Ok(Response::new(()))
    }

    async fn create_app_profile(
        &self,
        request: Request<admin::CreateAppProfileRequest>,
    ) -> Answer<admin::AppProfile> {
        let request = request.into_inner();
        let instance = InstanceName::parse(&request.parent)?;
        present(self.store()?, &instance)?;
        let id = checked_id("app profile", &request.app_profile_id)?;
        let mut made = request.app_profile.ok_or_else(|| missing("app_profile"))?;
        made.name = format!("{instance}/appProfiles/{id}");
        made.etag.clear();
        if made.isolation.is_none() {
            let high = admin::app_profile::StandardIsolation {
                priority: admin::app_profile::Priority::High.into(),
            };
            made.isolation = Some(admin::app_profile::Isolation::StandardIsolation(high));
        }
        let answer = made.clone();
        self.change(move |store| store.change_resources(|all| create(all, &made.name, &made)))
            .await?;
        Ok(Response::new(answer))
    }

    async fn get_app_profile(
        &self,
        request: Request<admin::GetAppProfileRequest>,
    ) -> Answer<admin::AppProfile> {
        let name = &request.get_ref().name;
        let (instance, _) = inside(name, "appProfiles")?;
        let mut all = profiles(self.store()?, &instance)?.into_iter();
        let found = all.find(|profile| profile.name == *name);
        Ok(Response::new(found.ok_or_else(|| not_found(name))?))
    }

    async fn list_app_profiles(
        &self,
        request: Request<admin::ListAppProfilesRequest>,
    ) -> Answer<admin::ListAppProfilesResponse> {
        let instance = InstanceName::parse(&request.get_ref().parent)?;
        Ok(Response::new(admin::ListAppProfilesResponse {
            app_profiles: profiles(self.store()?, &instance)?,
            ..admin::ListAppProfilesResponse::default()
        }))
    }

    async fn update_app_profile(
        &self,
        request: Request<admin::UpdateAppProfileRequest>,
    ) -> Answer<Operation> {
        let request = request.into_inner();
        let wanted = request.app_profile.ok_or_else(|| missing("app_profile"))?;
        let (instance, _) = inside(&wanted.name, "appProfiles")?;
        let mut all = profiles(self.store()?, &instance)?.into_iter();
        let found = all.find(|profile| profile.name == wanted.name);
        let mut changed = found.ok_or_else(|| not_found(&wanted.name))?;
        update(request.update_mask, |field| {
            match field {
                "description" => changed.description.clone_from(&wanted.description),
                "multi_cluster_routing_use_any" | "single_cluster_routing" => {
                    changed.routing_policy.clone_from(&wanted.routing_policy);
                }
                "standard_isolation" | "data_boost_isolation_read_only" | "priority" => {
                    changed.isolation = wanted.isolation;
                }
                _ => return false,
            }
            true
        })?;
        let answer = changed.clone();
        self.change(move |store| put(store, &changed.name, &changed))
            .await?;
        let metadata = (
            "UpdateAppProfileMetadata",
            &admin::UpdateAppProfileMetadata {},
        );
        Ok(done(&answer.name, metadata, (PROFILE, &answer)))
    }

    async fn delete_app_profile(
        &self,
        request: Request<admin::DeleteAppProfileRequest>,
    ) -> Answer<()> {
        let name = request.into_inner().name;
        inside(&name, "appProfiles")?;
        self.change(move |store| {
            store.change_resources(|all| match all.remove(&name) {
                Some(_) => Ok(()),
                None => Err(not_found(&name)),
            })
        })
        .await?;
        Ok(Response::new(()))
    }

    async fn get_iam_policy(
        &self,
        request: Request<iam::GetIamPolicyRequest>,
    ) -> Answer<iam::Policy> {
        let resource = request.into_inner().resource;
        present(self.store()?, &InstanceName::parse(&resource)?)?;
        Ok(Response::new(policies::get(self.store()?, &resource)?))
    }

    async fn set_iam_policy(
        &self,
        request: Request<iam::SetIamPolicyRequest>,
    ) -> Answer<iam::Policy> {
        let request = request.into_inner();
        present(self.store()?, &InstanceName::parse(&request.resource)?)?;
        let policy = self
            .change(move |store| policies::set(store, request))
            .await?;
        Ok(Response::new(policy))
    }

    async fn test_iam_permissions(
        &self,
        request: Request<iam::TestIamPermissionsRequest>,
    ) -> Answer<iam::TestIamPermissionsResponse> {
        let request = request.into_inner();
        present(self.store()?, &InstanceName::parse(&request.resource)?)?;
        Ok(Response::new(iam::TestIamPermissionsResponse {
            permissions: request.permissions,
        }))
    }

    async fn list_hot_tablets(
        &self,
        request: Request<admin::ListHotTabletsRequest>,
    ) -> Answer<admin::ListHotTabletsResponse> {
        inside(&request.get_ref().parent, "clusters")?;
        Ok(Response::new(admin::ListHotTabletsResponse::default()))
    }
}
