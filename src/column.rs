//! Columns as they stand on the command line: `FAMILY`, `FAMILY:QUALIFIER` and `FAMILY:QUALIFIER=VALUE`.
//!
//! **Invariant**: the family ends at the first `:`, the qualifier at the first `=` after it; qualifiers are in the path encoding
//! (`=` is `%3D`), values are the bytes as they are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::str::FromStr;

use anyhow::{anyhow, bail};
use bytes::Bytes;
use tablemount_api::name::{decode_bytes, encode_whole};
use tablemount_api::{FamilyName, Qualifier, ReadRequest, RowKey};

/// A row key on the command line, in the path encoding.
pub(crate) fn row_key(name: &str) -> anyhow::Result<RowKey> {
    Ok(RowKey::new(decode_bytes(name)?)?)
}

/// `FAMILY` (all its columns) or `FAMILY:QUALIFIER`; `FAMILY:` is the empty qualifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) family: FamilyName,
    pub(crate) qualifier: Option<Qualifier>,
}

impl Column {
    /// Narrows a read to the column.
    pub(crate) fn narrow(&self, request: &mut ReadRequest) {
        request.families = vec![self.family.clone()];
        request.qualifier = self.qualifier.clone();
    }
}

impl FromStr for Column {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match text.split_once(':') {
            None => Ok(Self {
                family: text.parse()?,
                qualifier: None,
            }),
            Some((family, name)) => Ok(Self {
                family: family.parse()?,
                qualifier: Some(qualifier(name)?),
            }),
        }
    }
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.qualifier {
            None => write!(f, "{}", self.family),
            Some(qualifier) if qualifier.bytes().is_empty() => write!(f, "{}:", self.family),
            Some(qualifier) => write!(f, "{}:{}", self.family, encode_whole(qualifier.bytes())),
        }
    }
}

/// A qualifier on the command line, in the path encoding; nothing is the empty one.
pub(crate) fn qualifier(name: &str) -> anyhow::Result<Qualifier> {
    match name {
        "" => Ok(Qualifier::default()),
        name => Ok(Qualifier::new(decode_bytes(name)?)?),
    }
}

/// `FAMILY:QUALIFIER`, and a value unless it comes from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) family: FamilyName,
    pub(crate) qualifier: Qualifier,
    pub(crate) value: Option<Bytes>,
}

/// Parses `FAMILY:QUALIFIER[=VALUE]`; the value may be any bytes.
pub(crate) fn assignment(text: &OsString) -> anyhow::Result<Assignment> {
    let bytes = text.as_bytes();
    let shape = || anyhow!("{:?} is not FAMILY:QUALIFIER=VALUE", text.to_string_lossy());
    let colon = bytes.iter().position(|b| *b == b':').ok_or_else(shape)?;
    if bytes[..colon].contains(&b'=') {
        return Err(shape());
    }
    let rest = &bytes[colon + 1..];
    let (name, value) = match rest.iter().position(|b| *b == b'=') {
        Some(equals) => (
            &rest[..equals],
            Some(Bytes::copy_from_slice(&rest[equals + 1..])),
        ),
        None => (rest, None),
    };
    let Some(name) = OsStr::from_bytes(name).to_str() else {
        bail!(
            "qualifier of {:?} is not UTF-8; write its bytes as %XX",
            text.to_string_lossy()
        );
    };
    let family = OsStr::from_bytes(&bytes[..colon])
        .to_str()
        .ok_or_else(shape)?;
    Ok(Assignment {
        family: family.parse()?,
        qualifier: qualifier(name)?,
        value,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    #[test]
    fn columns() {
        let check = |text: &str, family: &str, qualifier: Option<&[u8]>| {
            let column: Column = text.parse().expect("column");
            assert_eq!(column.family.as_str(), family);
            assert_eq!(
                column.qualifier.as_ref().map(|q| q.bytes().as_ref()),
                qualifier
            );
            assert_eq!(column.to_string(), text);
        };
        check("info", "info", None);
        check("text:", "text", Some(b""));
        check("a:b:c", "a", Some(b"b:c"));
        check("a:%FF", "a", Some(b"\xff"));
        assert!("a:%zz".parse::<Column>().is_err());
        assert!("a/b:c".parse::<Column>().is_err());
    }

    #[test]
    fn assignments() {
        let check = |text: &[u8], family: &str, qualifier: &[u8], value: Option<&[u8]>| {
            let parsed = assignment(&OsString::from_vec(text.to_vec())).expect("assignment");
            assert_eq!(parsed.family.as_str(), family);
            assert_eq!(parsed.qualifier.bytes(), qualifier);
            assert_eq!(parsed.value.as_deref(), value);
        };
        check(b"a:b=c", "a", b"b", Some(b"c"));
        check(b"a:=c", "a", b"", Some(b"c"));
        check(b"a:b=", "a", b"b", Some(b""));
        check(b"a:b=c=d:e", "a", b"b", Some(b"c=d:e"));
        check(b"a:b%3Dx=\xff\x01", "a", b"b=x", Some(b"\xff\x01"));
        check(b"a:b", "a", b"b", None);
        let refuse = |text: &str, expected: &str| {
            assert_eq!(
                assignment(&text.into()).expect_err("refused").to_string(),
                expected
            );
        };
        refuse("a", "\"a\" is not FAMILY:QUALIFIER=VALUE");
        refuse("a=b:c", "\"a=b:c\" is not FAMILY:QUALIFIER=VALUE");
        refuse(
            "a/b:c=d",
            "column family name \"a/b\" is not 1 to 64 of letters, digits, '-', '_' and '.'",
        );
    }
}
