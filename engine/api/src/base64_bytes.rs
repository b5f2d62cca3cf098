//! Serde of byte strings as standard base64 text, with padding. One place, used by every type that holds bytes.

use std::fmt;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Base64Display::new(bytes, &STANDARD))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    struct Base64Visitor;
    impl Visitor<'_> for Base64Visitor {
        type Value = Bytes;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string in standard base64")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
            match STANDARD.decode(text) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => {
                    let shown: String = text.chars().take(40).collect();
                    Err(E::custom(format!(
                        "{shown:?} is not standard base64: {error}"
                    )))
                }
            }
        }
    }
    deserializer.deserialize_str(Base64Visitor)
}
