//! Ids that a store gives: to itself, its log, its tables.

use uuid::Uuid;

/// Where they come from.
#[derive(Debug, Clone, Default)]
pub(crate) enum Ids {
    /// No two in the world are equal.
    #[default]
    Random,
    /// Counted, so that a store is the same each time it is written.
    #[cfg(test)]
    Counted(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

impl Ids {
    /// One that was not given yet.
    pub(crate) fn next(&self) -> Uuid {
        match self {
            Self::Random => Uuid::new_v4(),
            #[cfg(test)]
            Self::Counted(given) => {
                let before = given.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Uuid::from_u128(u128::from(before) + 1)
            }
        }
    }
}
