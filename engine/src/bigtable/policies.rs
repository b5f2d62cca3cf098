//! IAM policies of instances and tables: stored and given back, and enforced nowhere. Who may do what is said by tokens
//! (docs/operations.md).

use prost::Message;
use tablemount_api::Base64;

use super::proto::google::iam::v1 as iam;
use crate::storage::store::Store;
use crate::{Error, Result};

fn key(resource: &str) -> String {
    format!("{resource}/iamPolicy")
}

/// The policy of a resource; one that was never set is empty.
pub(crate) fn get(store: &Store, resource: &str) -> Result<iam::Policy> {
    let Some(content) = store.resource(&key(resource)) else {
        return Ok(iam::Policy {
            etag: vec![0],
            ..iam::Policy::default()
        });
    };
    iam::Policy::decode(content)
        .map_err(|error| Error::Corrupt(format!("stored policy of \"{resource}\": {error}")))
}

/// Sets it, if the one that it replaces has the etag that it names.
pub(crate) fn set(store: &Store, request: iam::SetIamPolicyRequest) -> Result<iam::Policy> {
    let mut policy = request.policy.unwrap_or_default();
    let before = get(store, &request.resource)?;
    if !policy.etag.is_empty() && policy.etag != before.etag {
        return Err(Error::Precondition(format!(
            "the policy of \"{}\" changed meanwhile: its etag is another",
            request.resource
        )));
    }
    let next = before.etag.first().map_or(1, |last| last.wrapping_add(1));
    policy.etag = vec![next];
    let content = Base64(policy.encode_to_vec().into());
    store.change_resources(|all| {
        all.insert(key(&request.resource), content);
        Ok(())
    })?;
    Ok(policy)
}
