//! Tablemount's custom resources and reconcilers.
//!
//! Owns: the CRDs ([`crd`]), manifests as files ([`manifest`]), the reconciliation of one table ([`reconcile`]), and the
//! controllers that run in Kubernetes ([`run`]). Does not own the schema's rules (`tablemount-api`) or the engine.
//!
//! A table: custom resource → desired → `plan(desired, observed)` (pure) → idempotent client calls → read back → status.
//! A cluster: custom resource → render (pure) → server-side apply → status.
//!
//! **Architecture invariants**: depends on the engine's API and client, never on the engine; the manifest wins over the
//! engine's schema; nothing is dropped that this object does not own; no secret is logged.

pub mod crd;
pub mod manifest;
pub mod reconcile;

mod condition;
mod controller;
mod desired;
mod error;
mod plan;
mod probe;
mod quantity;
mod render;
mod stats;
#[cfg(test)]
mod test_objects;

pub use condition::Reason;
pub use controller::{OperatorConfig, run};
pub use crd::{crds, crds_yaml};
pub use error::Error;
pub use plan::{Change, Permission};
