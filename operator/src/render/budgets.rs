//! The server's budgets, as environment variables of its container: an image that does not know one passes over it.
//!
//! ```text
//! resources.limits.memory = memtables 1/8 │ block cache 1/4 │ in-memory families 1/8 │ rest: requests, and what a budget's
//!                                                                                     memory takes beyond it
//! ```
//! **Invariants**: what spec.budgets says holds; what it leaves open follows the memory limit, if there is one
//! (`budgets_fit_into_the_memory_limit`); without either the server's own defaults hold, and nothing is set.

use k8s_openapi::api::core::v1::EnvVar;

use crate::crd::{Budgets, TableCluster};
use crate::quantity;

/// The least that the server takes for a budget.
const LEAST: u128 = 1 << 20;

/// The variables, or none.
pub(super) fn variables(cluster: &TableCluster) -> Option<Vec<EnvVar>> {
    let none = Budgets::default();
    let budgets = cluster.spec.budgets.as_ref().unwrap_or(&none);
    let memory = memory_limit(cluster);
    let share = |parts: u128| memory.map(|memory| (memory / parts).max(LEAST));
    let all = [
        ("TABLEMOUNT_MEMTABLE_BUDGET", &budgets.memtables, share(8)),
        ("TABLEMOUNT_CACHE_BUDGET", &budgets.cache, share(4)),
        ("TABLEMOUNT_IN_MEMORY_BUDGET", &budgets.in_memory, share(8)),
        ("TABLEMOUNT_LOG_BUDGET", &budgets.log, None),
    ];
    let set: Vec<_> = all
        .into_iter()
        .filter_map(|(name, said, share)| Some(variable(name, said_bytes(said).or(share)?)))
        .collect();
    (!set.is_empty()).then_some(set)
}

fn memory_limit(cluster: &TableCluster) -> Option<u128> {
    let limits = cluster.spec.resources.as_ref()?.limits.as_ref()?;
    quantity::bytes(&limits.memory.as_ref()?.0)
}

fn said_bytes(said: &Option<String>) -> Option<u128> {
    quantity::bytes(said.as_deref()?)
}

fn variable(name: &str, bytes: u128) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        // More than the server's numbers hold is as much as they hold.
        value: Some(bytes.min(u128::from(u64::MAX)).to_string()),
        value_from: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_objects::cluster;

    fn set(spec: &str) -> Vec<(String, u64)> {
        let variables = variables(&cluster("main", spec)).unwrap_or_default();
        variables
            .into_iter()
            .map(|variable| {
                let name = variable.name.trim_start_matches("TABLEMOUNT_").to_owned();
                let value = variable.value.expect("a value");
                (name, value.parse().expect("a number"))
            })
            .collect()
    }

    fn expected(budgets: &[(&str, u64)]) -> Vec<(String, u64)> {
        budgets
            .iter()
            .map(|(name, bytes)| ((*name).to_owned(), *bytes))
            .collect()
    }

    #[test]
    fn budgets_fit_into_the_memory_limit() {
        assert_eq!(set("{}"), []);
        assert_eq!(
            set("{resources: {requests: {memory: 1Gi}, limits: {cpu: 1}}}"),
            []
        );
        let of_a_limit = set("{resources: {limits: {memory: 2Gi}}}");
        let shares = [
            ("MEMTABLE_BUDGET", 256 << 20),
            ("CACHE_BUDGET", 512 << 20),
            ("IN_MEMORY_BUDGET", 256 << 20),
        ];
        assert_eq!(of_a_limit, expected(&shares));
        let tiny = set("{resources: {limits: {memory: 1Mi}}}");
        assert!(tiny.iter().all(|(_, bytes)| *bytes == 1 << 20), "{tiny:?}");
    }

    #[test]
    fn what_is_said_holds() {
        let said = set("{resources: {limits: {memory: 1Gi}}, budgets: {cache: 100M, log: 1Gi}}");
        let budgets = [
            ("MEMTABLE_BUDGET", 128 << 20),
            ("CACHE_BUDGET", 100_000_000),
            ("IN_MEMORY_BUDGET", 128 << 20),
            ("LOG_BUDGET", 1 << 30),
        ];
        assert_eq!(said, expected(&budgets));
        assert_eq!(
            set("{budgets: {inMemory: 3Mi}}"),
            expected(&[("IN_MEMORY_BUDGET", 3 << 20)])
        );
    }
}
