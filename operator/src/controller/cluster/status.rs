//! What a TableCluster's objects say about it, purely.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use kube::ResourceExt;

use crate::Error;
use crate::condition::{self, Now, READY, Reason, STORAGE_RESIZED, UPDATE_AVAILABLE};
use crate::crd::{TableCluster, TableClusterStatus};
use crate::render::template::Template;
use crate::render::{endpoint, selector_text};

/// What was seen of a TableCluster's objects.
pub(super) struct Observed {
    /// Absent where the API server, or the name's owner, refused something.
    running: Result<Running, Error>,
}

struct Running {
    template: Template,
    default_image: String,
    set: StatefulSet,
    pod: Option<Pod>,
    resize: Resize,
}

/// What became of the volume's size.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resize {
    /// There is no volume claim yet.
    Unknown,
    /// The claim asks for the size wanted.
    AsWanted,
    /// The claim asks for `size` and cannot change.
    Refused {
        claim: String,
        size: String,
        answer: String,
    },
}

/// Whether the error lasts until somebody changes something.
pub(super) fn is_refusal(error: &Error) -> bool {
    match error {
        Error::NameTaken { .. } => true,
        Error::Kubernetes { source, .. } => {
            matches!(&**source, kube::Error::Api(status) if (400..500).contains(&status.code) && ![409, 429].contains(&status.code))
        }
        _ => false,
    }
}

/// Whether the server serves, in the version wanted.
pub(super) fn is_serving(set: &StatefulSet) -> bool {
    let wanted = set
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    set.status.as_ref().is_some_and(|status| {
        status.observed_generation == set.metadata.generation
            && status.ready_replicas == Some(wanted)
            && status.updated_replicas.unwrap_or(0) >= wanted
            && wanted > 0
    })
}

/// The size that a claim asks for.
pub(super) fn requested_size(claim: &PersistentVolumeClaim) -> Option<String> {
    Some(
        claim
            .spec
            .as_ref()?
            .resources
            .as_ref()?
            .requests
            .as_ref()?
            .get("storage")?
            .0
            .clone(),
    )
}

impl Observed {
    pub(super) fn new(
        template: Template,
        default_image: &str,
        set: StatefulSet,
        pod: Option<Pod>,
        resize: Resize,
    ) -> Self {
        Self {
            running: Ok(Running {
                template,
                default_image: default_image.to_owned(),
                set,
                pod,
                resize,
            }),
        }
    }

    /// Something was refused, which ended the round.
    pub(super) fn refused(error: Error) -> Self {
        Self {
            running: Err(error),
        }
    }

    /// The status of `cluster`, and the reason of its Ready condition.
    pub(super) fn status(
        &self,
        cluster: &TableCluster,
        at: Timestamp,
    ) -> (TableClusterStatus, Reason) {
        let generation = cluster.metadata.generation;
        let mut status = cluster.status.clone().unwrap_or_default();
        status.observed_generation = generation;
        let mut conditions = Vec::new();
        let ready = match &self.running {
            Ok(running) => {
                running.fill(cluster, &mut status);
                conditions.extend(running.storage());
                conditions.push(running.update());
                running.ready(cluster)
            }
            Err(error @ Error::NameTaken { .. }) => (false, Reason::NameTaken, error.to_string()),
            Err(error) => (false, Reason::ApiRefused, error.to_string()),
        };
        let reason = ready.1;
        conditions.push((READY, ready));
        for (kind, (holds, reason, message)) in conditions {
            let now = Now {
                kind,
                holds,
                reason,
                message: &message,
            };
            status.conditions = condition::set(&status.conditions, &now, generation, at);
        }
        (status, reason)
    }
}

type State = (bool, Reason, String);

impl Running {
    fn fill(&self, cluster: &TableCluster, status: &mut TableClusterStatus) {
        let name = cluster.name_any();
        let of_set = self.set.status.clone().unwrap_or_default();
        status.replicas = of_set.replicas;
        status.ready_replicas = of_set.ready_replicas.unwrap_or(0);
        status.selector = Some(selector_text(&name));
        status.image = self.template.image();
        status.endpoint = Some(endpoint(&cluster.namespace().unwrap_or_default(), &name));
    }

    fn ready(&self, cluster: &TableCluster) -> State {
        if cluster.spec.replicas == 0 {
            return (
                false,
                Reason::ScaledToZero,
                "spec.replicas is 0: no server runs, the data is kept".to_owned(),
            );
        }
        if is_serving(&self.set) {
            return (true, Reason::Serving, "the server serves".to_owned());
        }
        let trouble = self.pod.as_ref().and_then(trouble);
        (
            false,
            Reason::Starting,
            trouble.unwrap_or_else(|| "the server is starting".to_owned()),
        )
    }

    fn storage(&self) -> Option<(&'static str, State)> {
        let state = match &self.resize {
            Resize::Unknown => return None,
            Resize::AsWanted => (
                true,
                Reason::AsWanted,
                "the volume claim asks for the size wanted".to_owned(),
            ),
            Resize::Refused {
                claim,
                size,
                answer,
            } => (
                false,
                Reason::ExpansionRefused,
                format!(
                    "volume claim \"{claim}\" stays at {size}: {answer}; a volume grows only if its storage class has allowVolumeExpansion, and never shrinks"
                ),
            ),
        };
        Some((STORAGE_RESIZED, state))
    }

    fn update(&self) -> (&'static str, State) {
        let state = if self.template.outdated {
            let runs = self.template.image().unwrap_or_default();
            let message = format!(
                "the server runs {runs} as it was set up; the operator would run {} now: set spec.image to that to update, which restarts the server",
                self.default_image
            );
            (true, Reason::ImageDiffers, message)
        } else {
            (
                false,
                Reason::UpToDate,
                "the server runs as the operator would run it".to_owned(),
            )
        };
        (UPDATE_AVAILABLE, state)
    }
}

/// What keeps a pod from serving, where Kubernetes knows it.
fn trouble(pod: &Pod) -> Option<String> {
    let name = pod.name_any();
    let status = pod.status.as_ref()?;
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .and_then(|condition| condition.message.clone());
    if let Some(message) = unscheduled {
        return Some(format!("pod \"{name}\" has no node: {message}"));
    }
    let container = status.container_statuses.iter().flatten().next()?;
    container_trouble(container).map(|trouble| format!("pod \"{name}\": {trouble}"))
}

fn container_trouble(container: &ContainerStatus) -> Option<String> {
    let waiting = container.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting
        .reason
        .as_deref()
        .filter(|reason| *reason != "ContainerCreating" && *reason != "PodInitializing")?;
    let ended = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    let exit = ended
        .map(|ended| format!(", last exit code {}", ended.exit_code))
        .unwrap_or_default();
    let message = waiting
        .message
        .as_deref()
        .map(|message| format!(": {message}"))
        .unwrap_or_default();
    Some(format!("{reason}{exit}{message}"))
}

#[cfg(test)]
mod tests;
