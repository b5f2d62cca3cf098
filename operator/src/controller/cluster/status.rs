//! What a TableCluster's objects say about it, purely.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use kube::ResourceExt;

use crate::Error;
use crate::condition::{self, Now, READY, Reason, STORAGE_RESIZED, UPDATE_AVAILABLE};
use crate::crd::{TableCluster, TableClusterStatus};
use crate::quantity;
use crate::render::template::{POD_SPEC, Template, Update};
use crate::render::{endpoint, pod_name, secret_name, selector_text, token_missing};

/// What was seen of a TableCluster's objects.
pub(super) struct Observed {
    /// Absent where the API server, or the name's owner, refused something.
    running: Result<Running, Error>,
}

/// The objects after a round in which nothing was refused.
pub(super) struct Running {
    pub(super) template: Template,
    pub(super) set: StatefulSet,
    /// The server's pod, where the server does not serve.
    pub(super) pod: Option<Pod>,
    /// Whether the Secret holds a token.
    pub(super) has_token: bool,
    pub(super) resize: Resize,
}

/// What became of the volume's size.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Resize {
    /// There is no volume claim yet.
    Unknown,
    /// The volume has the size wanted.
    AsWanted,
    /// The claim asks for the size `wanted`, the volume has the size `has`, if there is one.
    Resizing {
        claim: String,
        wanted: String,
        has: Option<String>,
        /// What Kubernetes says about it.
        progress: Option<String>,
    },
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

impl Resize {
    /// What became of the size `wanted`, for which `claim` asks.
    pub(super) fn requested(claim: &PersistentVolumeClaim, wanted: &str) -> Self {
        let status = claim.status.clone().unwrap_or_default();
        let has = status
            .capacity
            .and_then(|mut capacity| capacity.remove("storage"));
        let has = has.map(|capacity| capacity.0);
        if has
            .as_ref()
            .is_some_and(|has| quantity::reaches(has, wanted))
        {
            return Self::AsWanted;
        }
        let conditions = status.conditions.into_iter().flatten();
        let progress = conditions
            .filter(|condition| condition.status == "True")
            .find_map(|condition| condition.message.filter(|message| !message.is_empty()));
        Self::Resizing {
            claim: claim.name_any(),
            wanted: wanted.to_owned(),
            has,
            progress,
        }
    }

    fn state(&self) -> Option<State> {
        Some(match self {
            Self::Unknown => return None,
            Self::AsWanted => (
                true,
                Reason::AsWanted,
                "the volume has the size wanted".to_owned(),
            ),
            Self::Resizing {
                claim,
                wanted,
                has,
                progress,
            } => {
                let has = match has {
                    Some(has) => format!("its volume has {has} so far"),
                    None => "it has no volume yet".to_owned(),
                };
                let progress = progress
                    .as_ref()
                    .map(|progress| format!(": {progress}"))
                    .unwrap_or_default();
                let message = format!(
                    "volume claim \"{claim}\" asks for {wanted}, {has}{progress}; see: kubectl describe pvc {claim}"
                );
                (false, Reason::Resizing, message)
            }
            Self::Refused {
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
        })
    }
}

impl Observed {
    pub(super) fn running(running: Running) -> Self {
        Self {
            running: Ok(running),
        }
    }

    /// Something was refused, which ended the round.
    pub(super) fn refused(error: Error) -> Self {
        Self {
            running: Err(error),
        }
    }

    /// The status of `cluster`, and the reason by which to look again: that of Ready, or of a volume that is growing, which
    /// nothing else tells of.
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
                let resize = running.resize.state();
                conditions.extend(resize.map(|state| (STORAGE_RESIZED, state)));
                conditions.push((UPDATE_AVAILABLE, running.update(cluster)));
                running.ready(cluster)
            }
            Err(error @ Error::NameTaken { .. }) => (false, Reason::NameTaken, error.to_string()),
            Err(error) => (false, Reason::ApiRefused, error.to_string()),
        };
        let resizes = conditions
            .iter()
            .any(|(_, state): &(_, State)| state.1 == Reason::Resizing);
        let reason = match ready.1 {
            settled if resizes && !settled.is_transient() => Reason::Resizing,
            reason => reason,
        };
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
        let name = cluster.name_any();
        if !self.has_token {
            let message = token_missing(&secret_name(&name));
            return (false, Reason::TokenMissing, message);
        }
        let pod = pod_name(&name);
        let message = match &self.pod {
            None => {
                format!("pod \"{pod}\" does not exist; see: kubectl describe statefulset {name}")
            }
            Some(_) if self.pod_goes() => {
                format!("pod \"{pod}\" is being deleted; see: kubectl describe pod {pod}")
            }
            Some(found) => trouble(found, &pod),
        };
        (false, Reason::Starting, message)
    }

    fn pod_goes(&self) -> bool {
        self.pod
            .as_ref()
            .is_some_and(|pod| pod.metadata.deletion_timestamp.is_some())
    }

    fn update(&self, cluster: &TableCluster) -> State {
        let name = cluster.name_any();
        match &self.template.update {
            Update::None => (
                false,
                Reason::UpToDate,
                "the server runs as the operator would run it".to_owned(),
            ),
            Update::Image(image) => {
                let runs = self.template.image().unwrap_or_default();
                let message = format!(
                    "the server runs {runs} as it was set up; the operator would run {image} now: set spec.image to that to update, which restarts the server"
                );
                (true, Reason::ImageDiffers, message)
            }
            Update::Template => {
                let message = format!(
                    "the server runs in a pod as it was set up; the operator would set up the pod in another way now, with the same image: for that, which restarts the server, run: kubectl annotate statefulset {name} {POD_SPEC}-"
                );
                (true, Reason::TemplateDiffers, message)
            }
        }
    }
}

/// What keeps a pod from serving, where Kubernetes knows it.
fn trouble(pod: &Pod, name: &str) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")
        .and_then(|condition| condition.message.as_deref());
    if let Some(message) = unscheduled {
        return format!("pod \"{name}\" has no node: {message}");
    }
    let container = status.container_statuses.iter().flatten().next();
    container
        .and_then(|container| container_trouble(container, name))
        .unwrap_or_else(|| {
            format!("pod \"{name}\" is being set up; see: kubectl describe pod {name}")
        })
}

/// The same of its container; absent while it is not there yet.
fn container_trouble(container: &ContainerStatus, pod: &str) -> Option<String> {
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref();
    let ended = state
        .terminated
        .as_ref()
        .or_else(|| last?.terminated.as_ref());
    let exit = ended.map(|ended| {
        let reason = ended.reason.as_deref().filter(|reason| *reason != "Error");
        let reason = reason.map(|reason| format!(" ({reason})"));
        let reason = reason.unwrap_or_default();
        format!("exit code {}{reason}", ended.exit_code)
    });
    let waiting = state.waiting.as_ref().and_then(|waiting| {
        let reason = waiting.reason.as_deref()?;
        let message = waiting
            .message
            .as_deref()
            .map(|message| format!(": {message}"));
        let is_trouble = !["ContainerCreating", "PodInitializing"].contains(&reason);
        is_trouble.then(|| (reason, message.unwrap_or_default()))
    });
    let logs = format!("see: kubectl logs --previous {pod}");
    Some(match (waiting, exit) {
        (Some((reason, message)), Some(exit)) => {
            format!("pod \"{pod}\": {reason}, last {exit}{message}; {logs}")
        }
        (Some((reason, message)), None) => format!("pod \"{pod}\": {reason}{message}"),
        (None, Some(exit)) if state.running.is_some() => {
            format!("pod \"{pod}\": the server starts again after {exit}; {logs}")
        }
        (None, Some(exit)) => {
            format!("pod \"{pod}\": the server ended with {exit} and is started again; {logs}")
        }
        (None, None) if state.running.is_some() => {
            format!("pod \"{pod}\": the server is starting; see: kubectl logs {pod}")
        }
        (None, None) => return None,
    })
}

#[cfg(test)]
mod tests;
