//! `TableCluster`: a store and the server that holds it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the TableCluster should be.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "tablemount.dev",
    version = "v1alpha1",
    kind = "TableCluster",
    plural = "tableclusters",
    shortname = "tmc",
    category = "tablemount",
    namespaced,
    status = "TableClusterStatus",
    derive = "PartialEq",
    cel,
    doc = "A TableCluster is a store for tables and the server that holds it: a StatefulSet with a volume, Services in front of it. Deleting it keeps the volume claim, and with it the data; a TableCluster made again under the same name takes it up.",
    validation = Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')")
        .message("metadata.name must be at most 40 lower-case letters, digits and '-', starting with a letter: Services are named after it"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        description = "Whether the server serves",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        description = "Why it does or does not",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Replicas", type_ = "integer", description = "Servers wanted", json_path = ".spec.replicas"),
    printcolumn(
        name = "Endpoint",
        type_ = "string",
        description = "URL inside the Kubernetes cluster",
        json_path = ".status.endpoint",
        priority = 1
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        description = "The server's image",
        json_path = ".status.image",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct TableClusterSpec {
    /// How many servers run: 1, or 0 to stop the server and keep its data. Default 1.
    #[serde(default = "default_replicas")]
    #[x_kube(validation = Rule::new("self == 0 || self == 1").message("replicas must be 0 or 1: several servers are not supported yet"))]
    pub replicas: i32,
    /// The server's image. Default: the one that the server has, at first the operator's own; an upgrade of the operator
    /// does not change it. Changing it restarts the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// When the node pulls the image: Always, IfNotPresent or Never. Default: Always for the tag latest, else IfNotPresent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<ImagePullPolicy>,
    /// Secrets in this namespace with credentials for the image's registry. Changing them restarts the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub image_pull_secrets: Vec<PullSecret>,
    /// The volume that holds the data.
    #[serde(default)]
    pub storage: Storage,
    /// CPU and memory of the server's container. Changing them restarts the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// How the server's memory is divided. Changing it restarts the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budgets: Option<Budgets>,
    /// Who may use the tables.
    #[serde(default)]
    pub access: Access,
}

fn default_replicas() -> i32 {
    1
}

/// When the node pulls the image: Always, IfNotPresent or Never. Default: Always for the tag latest, else IfNotPresent.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImagePullPolicy {
    /// At every start.
    Always,
    /// When it is not there.
    IfNotPresent,
    /// Never.
    Never,
}

/// A Secret in the same namespace with credentials for a registry.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullSecret {
    /// Its metadata.name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The volume that holds the data.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)")
    .message("storageClassName cannot change: a volume keeps the class that it was made with"))]
pub struct Storage {
    /// The volume's size, such as 10Gi (the default). It can grow if the storage class allows that; it cannot shrink.
    #[serde(default = "default_size")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))").message("size must be a quantity above 0, such as 10Gi"))]
    #[x_kube(validation = Rule::new("!isQuantity(self) || !isQuantity(oldSelf) || !quantity(self).isLessThan(quantity(oldSelf))").message("size cannot shrink: volumes only grow"))]
    pub size: String,
    /// The volume's storage class. Default: the Kubernetes cluster's default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub storage_class_name: Option<String>,
}

fn default_size() -> String {
    "10Gi".to_owned()
}

impl Default for Storage {
    fn default() -> Self {
        Self {
            size: default_size(),
            storage_class_name: None,
        }
    }
}

/// CPU and memory of a container.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// What the scheduler sets aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<ResourceList>,
    /// What the container cannot exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ResourceList>,
}

/// Amounts of CPU and memory.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceList {
    /// CPU, such as 500m or 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Quantity>,
    /// Memory, such as 2Gi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
}

impl ResourceList {
    /// In the form that a container takes.
    pub(crate) fn quantities(&self) -> BTreeMap<String, Quantity> {
        [("cpu", &self.cpu), ("memory", &self.memory)]
            .into_iter()
            .filter_map(|(name, amount)| Some((name.to_owned(), amount.clone()?)))
            .collect()
    }
}

/// How the server's memory is divided, and how much commit log it keeps. What is not set follows resources.limits.memory, or
/// is the server's default where there is no limit. Leave a third of the limit for requests.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Budgets {
    /// Cells in memory that are not in files yet; above it writers wait. Default: an eighth of the memory limit, or 128Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi'))").message("memtables must be a quantity of 1Mi or more, such as 128Mi"))]
    pub memtables: Option<String>,
    /// Blocks of files that were read. Default: a quarter of the memory limit, or 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi'))").message("cache must be a quantity of 1Mi or more, such as 256Mi"))]
    pub cache: Option<String>,
    /// Column families with inMemory; what is beyond it is read from disk. Default: an eighth of the memory limit, or 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi'))").message("inMemory must be a quantity of 1Mi or more, such as 256Mi"))]
    pub in_memory: Option<String>,
    /// The commit log, on disk; above it the tablets with the oldest records are flushed. More of it means larger files and a
    /// longer start after a crash. Default 256Mi.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    #[x_kube(validation = Rule::new("isQuantity(self) && !quantity(self).isLessThan(quantity('1Mi'))").message("log must be a quantity of 1Mi or more, such as 256Mi"))]
    pub log: Option<String>,
}

/// Who may use the tables.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Access {
    /// What a client without a token may do: None (the default; only the operator gets in), ReadOnly or ReadWrite.
    /// Changing it restarts the server.
    #[serde(default)]
    pub anonymous: Anonymous,
}

/// What a client without a token may do.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Anonymous {
    /// Nothing.
    #[default]
    None,
    /// Read all tables.
    ReadOnly,
    /// Read and write all tables, and change their schemas.
    ReadWrite,
}

/// What the TableCluster is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableClusterStatus {
    /// Ready: the server serves. StorageResized: the volume has the size wanted. UpdateAvailable: the operator would now
    /// run the server differently (another image, or its pod set up otherwise), and leaves it as it is until the spec changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
    /// The metadata.generation that this status tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Servers that exist.
    #[serde(default)]
    pub replicas: i32,
    /// Servers that serve.
    #[serde(default)]
    pub ready_replicas: i32,
    /// Selects the servers' pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub selector: Option<String>,
    /// The image that the server runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub image: Option<String>,
    /// The server's URL inside the Kubernetes cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub endpoint: Option<String>,
}
