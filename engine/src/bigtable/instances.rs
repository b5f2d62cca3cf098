//! `google.bigtable.admin.v2.BigtableInstanceAdmin`: instances, clusters, app profiles, policies, as stored objects.
//!
//! One server serves all of them: they say how a client may call it, and change nothing in how tables are stored.
//!
//! **Invariants**: an instance that was never made is there all the same, with one cluster and a default profile, since any name
//! can be used; one that was deleted is not there until it is made again.

mod service;

use std::collections::BTreeMap;

use bytes::Bytes;
use prost::Message;
use tablemount_api::Base64;

use super::names::InstanceName;
use super::proto::admin;
use crate::storage::store::Store;
use crate::{Error, Result};

pub(crate) use self::service::InstanceAdmin;

/// The cluster of an instance that was never made.
pub(super) const CLUSTER: &str = "tablemount";
const LOCATION: &str = "local";
/// What stands in the place of an instance that was deleted.
const DELETED: &[u8] = b"";
const DEFAULT_PROFILE: &str = "default";

/// The last part of a resource's name, checked.
fn checked_id<'a>(kind: &str, id: &'a str) -> Result<&'a str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !id.is_empty() && id.len() <= 50 && id.bytes().all(plain) {
        true => Ok(id),
        false => Err(Error::Invalid(format!(
            "{kind} id \"{id}\" is not 1 to 50 of letters, digits, '-', '_' and '.'"
        ))),
    }
}

/// Splits `projects/P/instances/I/<collection>/X` into the instance and X.
fn inside<'a>(name: &'a str, collection: &str) -> Result<(InstanceName, &'a str)> {
    let (instance, id) = name.split_once(&format!("/{collection}/")).ok_or_else(|| {
        Error::Invalid(format!(
            "name \"{name}\" is not projects/PROJECT/instances/INSTANCE/{collection}/ID"
        ))
    })?;
    Ok((InstanceName::parse(instance)?, id))
}

fn not_found(name: &str) -> Error {
    Error::NotFound(format!("\"{name}\" not found"))
}

fn decode<M: Message + Default>(name: &str, content: Bytes) -> Result<M> {
    M::decode(content).map_err(|error| Error::Corrupt(format!("stored object \"{name}\": {error}")))
}

/// A stored object, if there is one.
fn stored<M: Message + Default>(store: &Store, name: &str) -> Result<Option<M>> {
    let content = store.resource(name);
    content.map(|content| decode(name, content)).transpose()
}

/// Checks that an instance was not deleted. Returns whether it was made.
pub(super) fn present(store: &Store, instance: &InstanceName) -> Result<bool> {
    let name = instance.to_string();
    match store.resource(&name) {
        Some(content) if content == DELETED => Err(not_found(&name)),
        content => Ok(content.is_some()),
    }
}

fn instance(store: &Store, name: &InstanceName) -> Result<admin::Instance> {
    let made = present(store, name)?;
    let name = name.to_string();
    match made {
        true => Ok(stored(store, &name)?.unwrap_or_default()),
        false => Ok(admin::Instance {
            display_name: name.rsplit('/').next().unwrap_or_default().to_owned(),
            name,
            state: admin::instance::State::Ready.into(),
            r#type: admin::instance::Type::Production.into(),
            ..admin::Instance::default()
        }),
    }
}

fn clusters(store: &Store, instance: &InstanceName) -> Result<Vec<admin::Cluster>> {
    let made = present(store, instance)?;
    let prefix = format!("{instance}/clusters/");
    let all = store.resources(&prefix).into_iter();
    let mut all: Vec<admin::Cluster> = all
        .map(|(name, content)| decode(&name, content))
        .collect::<Result<_>>()?;
    if !made && all.is_empty() {
        all.push(implicit_cluster(instance, format!("{prefix}{CLUSTER}")));
    }
    Ok(all)
}

/// A cluster. Of an instance that was never made any cluster is there, as the instance itself is.
fn cluster(store: &Store, name: &str) -> Result<admin::Cluster> {
    let (instance, _) = inside(name, "clusters")?;
    let made = present(store, &instance)?;
    match stored(store, name)? {
        Some(cluster) => Ok(cluster),
        None if made => Err(not_found(name)),
        None => Ok(implicit_cluster(&instance, name.to_owned())),
    }
}

fn implicit_cluster(instance: &InstanceName, name: String) -> admin::Cluster {
    admin::Cluster {
        name,
        location: format!("projects/{}/locations/{LOCATION}", instance.project),
        state: admin::cluster::State::Ready.into(),
        serve_nodes: 1,
        default_storage_type: admin::StorageType::Ssd.into(),
        ..admin::Cluster::default()
    }
}

/// With autoscaling a cluster begins with the fewest nodes.
fn scaled(cluster: &mut admin::Cluster) {
    let Some(admin::cluster::Config::ClusterConfig(config)) = &cluster.config else {
        return;
    };
    let autoscaling = config.cluster_autoscaling_config.as_ref();
    let limits = autoscaling.and_then(|autoscaling| autoscaling.autoscaling_limits.as_ref());
    if let Some(limits) = limits {
        cluster.serve_nodes = limits.min_serve_nodes;
    }
}

fn profiles(store: &Store, instance: &InstanceName) -> Result<Vec<admin::AppProfile>> {
    present(store, instance)?;
    let prefix = format!("{instance}/appProfiles/");
    let all = store.resources(&prefix).into_iter();
    let mut all: Vec<admin::AppProfile> = all
        .map(|(name, content)| decode(&name, content))
        .collect::<Result<_>>()?;
    let default = format!("{prefix}{DEFAULT_PROFILE}");
    if all.iter().all(|profile| profile.name != default) {
        let any = admin::app_profile::MultiClusterRoutingUseAny::default();
        all.push(admin::AppProfile {
            name: default,
            routing_policy: Some(admin::app_profile::RoutingPolicy::MultiClusterRoutingUseAny(any)),
            ..admin::AppProfile::default()
        });
    }
    Ok(all)
}

/// Stores an object under its name, if there is none.
fn create(all: &mut BTreeMap<String, Base64>, name: &str, content: &impl Message) -> Result<()> {
    let free = all.get(name).is_none_or(|present| present.0 == DELETED);
    if !free {
        return Err(Error::Conflict(format!("\"{name}\" exists")));
    }
    all.insert(name.to_owned(), Base64(content.encode_to_vec().into()));
    Ok(())
}

/// Removes all that lies in an instance, and leaves word that it was deleted.
fn delete_instance(store: &Store, instance: &InstanceName) -> Result<()> {
    present(store, instance)?;
    let name = instance.to_string();
    store.change_resources(|all| {
        let prefix = format!("{name}/");
        all.retain(|other, _| !other.starts_with(&prefix));
        all.insert(name, Base64(Bytes::from_static(DELETED)));
        Ok(())
    })
}
