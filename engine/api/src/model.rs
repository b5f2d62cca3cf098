//! The data model: table → row key → column family → qualifier → timestamp → value.
//!
//! **Invariants** (each constructor checks, so nothing inside checks again): a row key has 1 to 65,536 bytes, a qualifier 0 to
//! 32,768, a family name 1 to 64 of `[-_.a-zA-Z0-9]`, a table name 1 to 50 of the same starting with a letter, digit or
//! underscore (Bigtable's rules). Rows, qualifiers sort bytewise; versions newest first.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::base64_bytes;

/// What a byte string or name must be, and is not. The message names the value and the limit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum InvalidModel {
    #[error("row key is empty; a row key has 1 to {limit} bytes", limit = RowKey::MAX_BYTES)]
    EmptyRowKey,
    #[error("row key is {0} bytes; limit is {limit}", limit = RowKey::MAX_BYTES)]
    LongRowKey(usize),
    #[error("qualifier is {0} bytes; limit is {limit}", limit = Qualifier::MAX_BYTES)]
    LongQualifier(usize),
    #[error("column family name {0:?} is not 1 to 64 of letters, digits, '-', '_' and '.'")]
    FamilyName(String),
    #[error(
        "table name {0:?} is not 1 to 50 of letters, digits, '-', '_' and '.', starting with a letter, a digit or '_'"
    )]
    TableName(String),
    #[error("reason of a hold is {0} bytes; limit is {limit}", limit = crate::Hold::MAX_REASON_BYTES)]
    LongReason(usize),
}

/// A row key, 1 to 65,536 bytes. JSON: base64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey(Bytes);

impl RowKey {
    /// The longest row key, as in HBase's largest deployments; the Bigtable API keeps its own limit of 4,096.
    pub const MAX_BYTES: usize = 65_536;

    /// Checks the length of `bytes`.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, InvalidModel> {
        let bytes = bytes.into();
        match bytes.len() {
            0 => Err(InvalidModel::EmptyRowKey),
            n if n > Self::MAX_BYTES => Err(InvalidModel::LongRowKey(n)),
            _ => Ok(Self(bytes)),
        }
    }

    /// The key's bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The key's bytes, given away.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// A column qualifier, 0 to 32,768 bytes; empty is legal. JSON: base64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Qualifier(Bytes);

impl Qualifier {
    /// The longest qualifier.
    pub const MAX_BYTES: usize = 32_768;

    /// Checks the length of `bytes`.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, InvalidModel> {
        let bytes = bytes.into();
        match bytes.len() {
            n if n > Self::MAX_BYTES => Err(InvalidModel::LongQualifier(n)),
            _ => Ok(Self(bytes)),
        }
    }

    /// The qualifier's bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The qualifier's bytes, given away.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// Bytes with no rule of their own (values, prefixes). JSON: base64.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Base64(pub Bytes);

impl From<Bytes> for Base64 {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

macro_rules! base64_serde {
    ($type:ty, $make:expr) => {
        impl AsRef<[u8]> for $type {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                base64_bytes::serialize(&self.0, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $make(base64_bytes::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }

        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(
                        utoipa::openapi::KnownFormat::Byte,
                    )))
                    .into()
            }
        }

        impl utoipa::ToSchema for $type {}
    };
}

base64_serde!(RowKey, RowKey::new);
base64_serde!(Qualifier, Qualifier::new);
base64_serde!(Base64, |bytes| Ok::<_, InvalidModel>(Base64(bytes)));

macro_rules! name_type {
    ($(#[$doc:meta])* $type:ident, $max:expr, $first:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, utoipa::ToSchema)]
        #[schema(value_type = String)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks the characters and the length of `name`.
            pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidModel> {
                let name = name.as_ref();
                let legal = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
                let first: fn(u8) -> bool = $first;
                let bytes = name.as_bytes();
                if bytes.is_empty() || bytes.len() > $max || !bytes.iter().all(|b| legal(*b)) || !first(bytes[0]) {
                    return Err(InvalidModel::$type(name.chars().take(100).collect()));
                }
                Ok(Self(name.into()))
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = InvalidModel;

            fn from_str(name: &str) -> Result<Self, InvalidModel> {
                Self::new(name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

name_type!(
    /// A column family's name: 1 to 64 of `[-_.a-zA-Z0-9]`.
    FamilyName,
    64,
    |_| true
);
name_type!(
    /// A table's name: 1 to 50 of `[-_.a-zA-Z0-9]`, starting with a letter, a digit or `_`.
    TableName,
    50,
    |b| b.is_ascii_alphanumeric() || b == b'_'
);

/// Microseconds since the Unix epoch; any i64 (the HTTP edge and the command line take those ≥ 0).
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Default,
    utoipa::ToSchema,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The lowest timestamp there is.
    pub const MIN: Self = Self(i64::MIN);
    /// The highest timestamp there is.
    pub const MAX: Self = Self(i64::MAX);
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_checked_and_named() {
        assert_eq!(
            RowKey::new("").unwrap_err().to_string(),
            "row key is empty; a row key has 1 to 65536 bytes"
        );
        assert!(RowKey::new(vec![0; 65_536]).is_ok());
        assert_eq!(
            RowKey::new(vec![0; 70_000]).unwrap_err().to_string(),
            "row key is 70000 bytes; limit is 65536"
        );
        assert!(Qualifier::new("").is_ok());
        assert_eq!(
            Qualifier::new(vec![0; 32_769]).unwrap_err().to_string(),
            "qualifier is 32769 bytes; limit is 32768"
        );
    }

    #[test]
    fn names_are_checked() {
        for good in ["a", "_x", "0-9.B"] {
            assert!(TableName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a/b", ".a", "-a", "ä", &"x".repeat(51)] {
            assert!(TableName::new(bad).is_err(), "{bad}");
        }
        assert!(FamilyName::new("-a.b_c").is_ok());
        assert_eq!(
            FamilyName::new("a:b").unwrap_err().to_string(),
            "column family name \"a:b\" is not 1 to 64 of letters, digits, '-', '_' and '.'"
        );
    }

    #[test]
    fn wrong_base64_is_shown() {
        let error = serde_json::from_str::<RowKey>("\"a*\"")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("\"a*\" is not standard base64"),
            "{error}"
        );
    }
}
