//! Objects of APIs that the store keeps by name and does not look into: instances, profiles, policies.
//!
//! **Invariants**: a change is durable when it returns, and one at a time; all of them together are at most [`MAX_BYTES`], since
//! they are held in memory and written as one object.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tablemount_api::Base64;

use super::store::Store;
use crate::{Error, Result};

/// The folder of numbered objects.
pub(crate) const RESOURCES: &str = "resources";
/// The most bytes of names and contents.
const MAX_BYTES: usize = 4 << 20;

/// `resources/<n>`: the newest has all of them. None: there never were any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourcesRecord {
    /// The start of the server that wrote it.
    pub(crate) epoch: u64,
    /// Content by name.
    pub(crate) resources: BTreeMap<String, Base64>,
}

/// The newest record's number and content.
pub(crate) type ResourcesState = (u64, ResourcesRecord);

impl Store {
    /// A resource's content.
    pub(crate) fn resource(&self, name: &str) -> Option<Bytes> {
        let state = self.resources.lock();
        let found = state.1.resources.get(name);
        found.map(|content| content.0.clone())
    }

    /// Those whose names start with `prefix`, in their order.
    pub(crate) fn resources(&self, prefix: &str) -> Vec<(String, Bytes)> {
        let state = self.resources.lock();
        let from = state.1.resources.range(prefix.to_owned()..);
        from.take_while(|(name, _)| name.starts_with(prefix))
            .map(|(name, content)| (name.clone(), content.0.clone()))
            .collect()
    }

    /// Changes them, durably; after an error they are as before.
    pub(crate) fn change_resources<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Base64>) -> Result<T>,
    ) -> Result<T> {
        self.log()?;
        let mut state = self.resources.lock();
        let (number, mut record) = state.clone();
        let result = change(&mut record.resources)?;
        let sizes = record.resources.iter();
        let bytes: usize = sizes
            .map(|(name, content)| name.len() + content.0.len())
            .sum();
        if bytes > MAX_BYTES {
            return Err(Error::TooLarge(format!(
                "instances, profiles and policies come to {bytes} bytes; limit is {MAX_BYTES}"
            )));
        }
        record.epoch = self.epoch;
        if record.resources != state.1.resources {
            self.fatal_if_unclear(self.objects.create_numbered(RESOURCES, number + 1, &record))?;
            self.objects.clean_numbered(RESOURCES, number);
            *state = (number + 1, record);
        }
        Ok(result)
    }
}
