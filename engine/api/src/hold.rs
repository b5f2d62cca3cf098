//! Holding a store: for a night when a GC rule was wrong, nothing that is stored is forgotten until a person has looked.

use serde::{Deserialize, Serialize};

use crate::model::{InvalidModel, Timestamp};

/// `GET` and `PUT /v1/hold`: whether clean-up of files and collection by GC rules stand still, for the whole store.
///
/// While held, flushes and compactions keep every entry as it is, whatever the rules and deletes say, and no SST, table or
/// family that was dropped loses its files. What readers see does not change. A hold outlives restarts. Releasing it lets
/// all clean-up go on, also of what gathered meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Hold {
    /// Whether the store is held.
    pub held: bool,
    /// Why, for those who come later; at most 1,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it was held or released last. The server sets it; what a request says is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl Hold {
    /// The longest reason, in bytes.
    pub const MAX_REASON_BYTES: usize = 1000;

    /// Checks the limits.
    pub fn validate(&self) -> Result<(), InvalidModel> {
        let length = self.reason.as_ref().map_or(0, String::len);
        match length <= Self::MAX_REASON_BYTES {
            true => Ok(()),
            false => Err(InvalidModel::LongReason(length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_a_limit() {
        let hold = |bytes: usize| Hold {
            held: true,
            reason: Some("x".repeat(bytes)),
            since: None,
        };
        assert!(hold(1000).validate().is_ok());
        assert!(Hold::default().validate().is_ok());
        assert_eq!(
            hold(1001).validate().expect_err("refused").to_string(),
            "reason of a hold is 1001 bytes; limit is 1000"
        );
    }

    #[test]
    fn its_json_is_what_the_documentation_says() {
        let hold = Hold {
            held: true,
            reason: Some("wrong rule".to_owned()),
            since: Some(Timestamp(5)),
        };
        let json = r#"{"held":true,"reason":"wrong rule","since":5}"#;
        assert_eq!(serde_json::to_string(&hold).expect("json"), json);
        assert_eq!(serde_json::from_str::<Hold>(json).expect("json"), hold);
        assert_eq!(
            serde_json::from_str::<Hold>(r#"{"held":false}"#).expect("json"),
            Hold::default()
        );
    }
}
