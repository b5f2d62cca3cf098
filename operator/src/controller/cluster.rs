//! TableCluster → its Kubernetes objects → status.
//!
//! Deleting a TableCluster needs nothing here: Kubernetes collects what it owns, and the volume claim, which nothing owns,
//! stays.

mod status;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::{Resource, ResourceExt};
use serde_json::json;
use uuid::Uuid;

use super::RECONCILE_SECONDS;
use super::context::{Context, ensure_part_of, now, reading};
use crate::Error;
use crate::crd::TableCluster;
use crate::quantity;
use crate::render::stateful_set::stateful_set;
use crate::render::template::Template;
use crate::render::{
    claim_name, client_service, disruption_budget, headless_service, pod_name, secret, secret_name,
    service_account, token_of,
};
use status::{Observed, Resize, Running};

/// Makes what `cluster` describes, within the time limit.
pub(super) async fn reconcile(
    cluster: Arc<TableCluster>,
    context: Arc<Context>,
) -> Result<Action, Error> {
    if cluster.meta().deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let limit = Duration::from_secs(RECONCILE_SECONDS);
    let seconds = RECONCILE_SECONDS;
    tokio::time::timeout(limit, reconcile_now(&cluster, &context))
        .await
        .unwrap_or(Err(Error::Deadline { seconds }))
}

async fn reconcile_now(cluster: &TableCluster, context: &Context) -> Result<Action, Error> {
    let observed = match apply(cluster, context).await {
        Ok(observed) => observed,
        Err(error) if status::is_refusal(&error) => Observed::refused(error),
        Err(error) => return Err(error),
    };
    let previous = cluster.status.clone().unwrap_or_default();
    let (status, reason) = observed.status(cluster, now());
    if previous != status {
        context
            .report(cluster, &status, &previous.conditions, &status.conditions)
            .await?;
    }
    Ok(context.look_again(cluster, reason))
}

/// Applies everything and looks at what became of it.
async fn apply(cluster: &TableCluster, context: &Context) -> Result<Observed, Error> {
    context.apply(cluster, &service_account(cluster)).await?;
    context.apply(cluster, &headless_service(cluster)).await?;
    context.apply(cluster, &client_service(cluster)).await?;
    context.apply(cluster, &disruption_budget(cluster)).await?;
    let has_token = ensure_secret(cluster, context).await?;

    let sets = context.namespaced::<StatefulSet>(cluster);
    let name = cluster.name_any();
    let existing = sets
        .get_opt(&name)
        .await
        .map_err(Error::kubernetes(reading::<StatefulSet>(&name)))?;
    let template = Template::new(cluster, &context.image, existing.as_ref());
    context
        .apply(
            cluster,
            &stateful_set(cluster, &template, existing.as_ref()),
        )
        .await?;
    let set = sets
        .get(&name)
        .await
        .map_err(Error::kubernetes(reading::<StatefulSet>(&name)))?;

    let pods = context.namespaced::<Pod>(cluster);
    let pod = match status::is_serving(&set) {
        true => None,
        false => pods
            .get_opt(&pod_name(&name))
            .await
            .map_err(Error::kubernetes("read the server's pod"))?,
    };
    let resize = resize(cluster, context).await?;
    Ok(Observed::running(Running {
        template,
        set,
        pod,
        has_token,
        resize,
    }))
}

/// Makes the Secret with the operator's token, once, and tells whether it has a token. It is never changed: a changed token
/// would lock the operator out until the server's volume shows it.
async fn ensure_secret(cluster: &TableCluster, context: &Context) -> Result<bool, Error> {
    let secrets = context.namespaced::<Secret>(cluster);
    let name = secret_name(&cluster.name_any());
    let existing = secrets
        .get_opt(&name)
        .await
        .map_err(Error::kubernetes(reading::<Secret>(&name)))?;
    if let Some(existing) = existing {
        ensure_part_of::<Secret>(cluster, &existing.metadata)?;
        return Ok(token_of(&existing).is_some());
    }
    let token = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
    let made = secrets
        .create(&PostParams::default(), &secret(cluster, token))
        .await;
    made.map(|_| true)
        .map_err(Error::kubernetes(format!("make Secret \"{name}\"")))
}

/// Asks for a larger volume if the spec does.
async fn resize(cluster: &TableCluster, context: &Context) -> Result<Resize, Error> {
    let claims = context.namespaced::<PersistentVolumeClaim>(cluster);
    let name = claim_name(&cluster.name_any());
    let existing = claims
        .get_opt(&name)
        .await
        .map_err(Error::kubernetes(reading::<PersistentVolumeClaim>(&name)))?;
    let Some((claim, size)) = existing
        .as_ref()
        .and_then(|claim| Some((claim, status::requested_size(claim)?)))
    else {
        return Ok(Resize::Unknown);
    };
    let wanted = &cluster.spec.storage.size;
    if quantity::is_same(&size, wanted) {
        return Ok(Resize::requested(claim, wanted));
    }
    let patch = json!({ "spec": { "resources": { "requests": { "storage": wanted } } } });
    match claims
        .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await
    {
        Ok(claim) => Ok(Resize::requested(&claim, wanted)),
        Err(kube::Error::Api(refusal)) if (400..500).contains(&refusal.code) => {
            Ok(Resize::Refused {
                claim: name,
                size,
                answer: refusal.message.clone(),
            })
        }
        Err(error) => Err(Error::kubernetes(format!("grow volume claim \"{name}\""))(
            error,
        )),
    }
}
