//! Conditions: what status says to people and to `kubectl wait`.
//!
//! **Invariant**: `lastTransitionTime` changes only when the condition's status does (`time_stays_while_the_status_does`).

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition that tells whether an object is what its spec says.
pub(crate) const READY: &str = "Ready";
/// The condition that tells whether a TableCluster's volume has the size wanted.
pub(crate) const STORAGE_RESIZED: &str = "StorageResized";
/// The condition that tells that a TableCluster's server would now be run differently.
pub(crate) const UPDATE_AVAILABLE: &str = "UpdateAvailable";

/// The longest message of a condition: Kubernetes' limit is 32 KiB, events take 1 kB.
const MAX_MESSAGE_BYTES: usize = 1000;

/// Why a condition is as it is. The variant's name is the condition's `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Table: the schema read back is the manifest's.
    Applied,
    /// Table: the spec asks for what no table can be.
    InvalidSpec,
    /// Table: there is no such TableCluster.
    ClusterNotFound,
    /// Table: the TableCluster is scaled to 0 or its server does not serve yet.
    ClusterNotReady,
    /// Table: another Table, which has it or is older, declares the same table.
    Conflicted,
    /// Table: the table belongs to another object.
    OwnedByOther,
    /// Table: the table exists, made by other means.
    NotAdopted,
    /// Table: a change deletes data and the manifest does not consent to it.
    ConsentRequired,
    /// Table: the manifest asks for splits that a table that exists does not have.
    SplitsImmutable,
    /// Table: the server did not answer.
    EngineUnreachable,
    /// Table: the server refused the change.
    EngineRefused,
    /// Table: the server does not know the operator's token.
    AccessDenied,
    /// Table: others change the schema at the same time.
    ChangedMeanwhile,
    /// Table: its object is being deleted, the table cannot be dropped yet.
    DropPending,
    /// TableCluster: the server serves.
    Serving,
    /// TableCluster: the server is on its way.
    Starting,
    /// TableCluster: the Secret exists and lacks the operator's token, without which no pod starts.
    TokenMissing,
    /// TableCluster: replicas is 0.
    ScaledToZero,
    /// TableCluster: an object of a name that it needs exists and is not its own.
    NameTaken,
    /// Any: the API server refused what the operator wanted.
    ApiRefused,
    /// StorageResized: the volume has the size wanted.
    AsWanted,
    /// StorageResized: the volume claim asks for the size wanted, the volume does not have it yet.
    Resizing,
    /// StorageResized: the volume claim cannot grow.
    ExpansionRefused,
    /// UpdateAvailable: the operator's image is another one.
    ImageDiffers,
    /// UpdateAvailable: the image is the same, the operator would set up the pod in another way.
    TemplateDiffers,
    /// UpdateAvailable: the server runs as the operator would run it.
    UpToDate,
}

impl Reason {
    /// Whether it may pass by itself, so that trying again soon makes sense.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::ClusterNotReady
                | Self::EngineUnreachable
                | Self::AccessDenied
                | Self::ChangedMeanwhile
                | Self::DropPending
                | Self::Starting
                | Self::TokenMissing
                | Self::Resizing
                | Self::NameTaken
                | Self::ApiRefused
        )
    }
}

/// One condition as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Now<'a> {
    pub(crate) kind: &'a str,
    pub(crate) holds: bool,
    pub(crate) reason: Reason,
    pub(crate) message: &'a str,
}

/// `previous` with `now` in the place of the condition of its type.
pub(crate) fn set(
    previous: &[Condition],
    now: &Now<'_>,
    generation: Option<i64>,
    at: Timestamp,
) -> Vec<Condition> {
    let status = if now.holds { "True" } else { "False" };
    let since = previous
        .iter()
        .find(|condition| condition.type_ == now.kind && condition.status == status)
        .map_or(Time(at), |condition| condition.last_transition_time.clone());
    let condition = Condition {
        last_transition_time: since,
        message: shorten(now.message),
        observed_generation: generation,
        reason: format!("{:?}", now.reason),
        status: status.to_owned(),
        type_: now.kind.to_owned(),
    };
    let mut conditions: Vec<_> = previous
        .iter()
        .filter(|condition| condition.type_ != now.kind)
        .cloned()
        .collect();
    conditions.push(condition);
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    conditions
}

/// The message, cut to what a condition and an event take.
pub(crate) fn shorten(message: &str) -> String {
    match message.len() {
        0..=MAX_MESSAGE_BYTES => message.to_owned(),
        _ => format!(
            "{}…",
            &message[..message.floor_char_boundary(MAX_MESSAGE_BYTES - '…'.len_utf8())]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(holds: bool, message: &str) -> Now<'_> {
        Now {
            kind: READY,
            holds,
            reason: if holds {
                Reason::Applied
            } else {
                Reason::EngineUnreachable
            },
            message,
        }
    }

    #[test]
    fn time_stays_while_the_status_does() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let first = set(&[], &now(false, "a"), Some(1), at(10));
        let second = set(&first, &now(false, "b"), Some(2), at(20));
        assert_eq!(
            (second.len(), second[0].last_transition_time.0),
            (1, at(10))
        );
        assert_eq!(
            (second[0].message.as_str(), second[0].observed_generation),
            ("b", Some(2))
        );
        let third = set(&second, &now(true, "c"), Some(2), at(30));
        assert_eq!(
            (third[0].last_transition_time.0, third[0].status.as_str()),
            (at(30), "True")
        );
        assert_eq!(third[0].reason, "Applied");
    }

    #[test]
    fn other_conditions_stay() {
        let at = Timestamp::UNIX_EPOCH;
        let resized = Now {
            kind: STORAGE_RESIZED,
            holds: true,
            reason: Reason::AsWanted,
            message: "",
        };
        let both = set(&set(&[], &resized, None, at), &now(true, ""), None, at);
        assert_eq!(
            both.iter()
                .map(|condition| condition.type_.as_str())
                .collect::<Vec<_>>(),
            [READY, STORAGE_RESIZED]
        );
    }

    #[test]
    fn messages_are_cut_at_a_character() {
        assert_eq!(shorten("short"), "short");
        let cut = shorten(&"ä".repeat(600));
        assert!(
            cut.len() <= MAX_MESSAGE_BYTES && cut.ends_with("ä…"),
            "{}",
            cut.len()
        );
    }
}
