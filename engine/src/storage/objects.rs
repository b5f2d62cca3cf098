//! Small objects with a checksum: the store's record, catalogs, schemas, manifests, server records. And numbered objects:
//! `FOLDER/<n>`, created by put-if-absent only; the highest that exists is the truth.
//!
//! ```text
//! object = "TMNT" │ format version u32 │ CRC-32C of what follows u32 │ length of the JSON u32 │ JSON        (little-endian)
//! ```
//!
//! **Invariants**: a number is never given other bytes; after an unclear answer the object is read back (ours → won, another's
//! → lost, absent → the same bytes again); clean-up goes upwards and never takes the newest.

use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// The on-disk format that this program reads and writes.
pub(crate) const FORMAT: u32 = 1;
/// The highest number of a group or mutation, and the highest id: none is ever reached, and what follows it is a number too.
pub(crate) const MAX_NUMBER: u64 = i64::MAX as u64;
const MAGIC: &[u8; 4] = b"TMNT";
const HEADER: usize = 16;
/// Puts of the same bytes before an unclear answer is given up.
const TRIES: usize = 3;

/// What became of a put-if-absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Created {
    /// The object is there, with our bytes, durable.
    Won,
    /// The object is there with other bytes.
    Lost,
}

/// An object store, called from threads that may block.
#[derive(Clone)]
pub(crate) struct Objects {
    store: Arc<dyn ObjectStore>,
}

impl Objects {
    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }

    /// Creates an object that is absent.
    pub(crate) fn create(&self, path: &str, payload: &PutPayload) -> Result<Created> {
        let mut last = None;
        for _ in 0..TRIES {
            let location = Path::from(path);
            let put = self
                .store
                .put_opts(&location, payload.clone(), PutMode::Create.into());
            let error = match block_on(put) {
                Ok(_) => return Ok(Created::Won),
                Err(error) => error,
            };
            let exists = matches!(error, object_store::Error::AlreadyExists { .. });
            match self.read(path)? {
                Some(bytes) if !same(&bytes, payload) => return Ok(Created::Lost),
                Some(_) if exists => return Ok(Created::Won),
                // The bytes are there, but the put failed after it placed them: they may not be durable.
                Some(_) => {
                    let cause = failed("write", path, &error);
                    return Err(Error::Unavailable(format!(
                        "{cause}; it is there, but may not be durable"
                    )));
                }
                None => last = Some(error),
            }
        }
        Err(last.map_or_else(
            || Error::Io(format!("write {path}")),
            |error| failed("write", path, &error),
        ))
    }

    /// The object's bytes, or `None` if it is absent.
    pub(crate) fn read(&self, path: &str) -> Result<Option<Bytes>> {
        let location = Path::from(path);
        let get = async { self.store.get(&location).await?.bytes().await };
        match block_on(get) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("read", path, &error)),
        }
    }

    /// Starts an object that is written in parts; it is there, whole and durable, after [`Objects::finish_upload`].
    pub(crate) fn start_upload(&self, path: &str) -> Result<Box<dyn MultipartUpload>> {
        block_on(self.store.put_multipart(&Path::from(path)))
            .map_err(|error| failed("write", path, &error))
    }

    pub(crate) fn upload_part(
        &self,
        path: &str,
        upload: &mut Box<dyn MultipartUpload>,
        part: Bytes,
    ) -> Result<()> {
        block_on(upload.put_part(part.into())).map_err(|error| failed("write", path, &error))
    }

    pub(crate) fn finish_upload(
        &self,
        path: &str,
        upload: &mut Box<dyn MultipartUpload>,
    ) -> Result<()> {
        block_on(upload.complete())
            .map(drop)
            .map_err(|error| failed("write", path, &error))
    }

    pub(crate) fn abort_upload(
        &self,
        path: &str,
        upload: &mut Box<dyn MultipartUpload>,
    ) -> Result<()> {
        block_on(upload.abort()).map_err(|error| failed("remove", path, &error))
    }

    /// All objects below a folder, with their sizes, by path.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let listing = async {
            self.store
                .list(Some(&Path::from(folder)))
                .map_ok(|meta| (meta.location.to_string(), meta.size))
                .try_collect::<Vec<_>>()
                .await
        };
        let mut found = block_on(listing).map_err(|error| failed("list", folder, &error))?;
        found.sort();
        Ok(found)
    }

    /// Removes an object; that it is absent is no error.
    pub(crate) fn remove(&self, path: &str) -> Result<()> {
        match block_on(self.store.delete(&Path::from(path))) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("remove", path, &error)),
        }
    }

    /// The highest number in a folder and its content.
    pub(crate) fn newest<T: DeserializeOwned>(&self, folder: &str) -> Result<Option<(u64, T)>> {
        let Some(number) = self.newest_number(folder)? else {
            return Ok(None);
        };
        let path = numbered(folder, number);
        let bytes = self
            .read(&path)?
            .ok_or_else(|| Error::Corrupt(format!("{path} is listed but absent")))?;
        Ok(Some((number, decode(&path, &bytes)?)))
    }

    /// The highest number in a folder.
    pub(crate) fn newest_number(&self, folder: &str) -> Result<Option<u64>> {
        Ok(self.numbers(folder)?.pop())
    }

    /// Creates `FOLDER/<number>`. Losing means that another process writes to the store: an error.
    pub(crate) fn create_numbered<T: Serialize>(
        &self,
        folder: &str,
        number: u64,
        content: &T,
    ) -> Result<()> {
        let path = numbered(folder, number);
        match self.create(&path, &encode(content)?.into())? {
            Created::Won => Ok(()),
            Created::Lost => Err(Error::Precondition(format!(
                "{path} was written by another process"
            ))),
        }
    }

    /// Removes the numbers below `keep`, upwards. What is left over is removed by a later call: a failure is only logged.
    pub(crate) fn clean_numbered(&self, folder: &str, keep: u64) {
        let clean = || {
            let numbers = self.numbers(folder)?;
            let mut old = numbers.into_iter().filter(|number| *number < keep);
            old.try_for_each(|number| self.remove(&numbered(folder, number)))
        };
        if let Err(error) = clean() {
            tracing::warn!(%error, "old records stay for now");
        }
    }

    /// Removes all objects below a folder.
    pub(crate) fn remove_all(&self, folder: &str) -> Result<()> {
        self.list(folder)?
            .iter()
            .try_for_each(|(path, _)| self.remove(path))
    }

    fn numbers(&self, folder: &str) -> Result<Vec<u64>> {
        let name = |path: &str| number(path.strip_prefix(folder)?.strip_prefix('/')?);
        let mut numbers: Vec<u64> = self
            .list(folder)?
            .iter()
            .filter_map(|(path, _)| name(path))
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// The path of a numbered object; zeros in front make list order the numbers' order.
pub(crate) fn numbered(folder: &str, number: u64) -> String {
    format!("{folder}/{number:012}")
}

/// The number that a name stands for: 12 digits, nothing else.
pub(crate) fn number(name: &str) -> Option<u64> {
    let digits = name.len() == 12 && name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse().ok())?
}

/// An object's bytes.
pub(crate) fn encode<T: Serialize>(content: &T) -> Result<Bytes> {
    let json =
        serde_json::to_vec(content).map_err(|error| Error::Io(format!("encode: {error}")))?;
    let mut bytes = Vec::with_capacity(HEADER + json.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&json);
    let checksum = crc32c::crc32c(&bytes[12..]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    Ok(bytes.into())
}

/// Why bytes are no object of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadObject {
    Damaged(String),
    Format(u32),
}

impl std::fmt::Display for BadObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged(what) => f.write_str(what),
            Self::Format(format) => {
                write!(f, "has format {format}; this version reads format {FORMAT}")
            }
        }
    }
}

/// An object's content, checked.
pub(crate) fn decode<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Result<T> {
    open(bytes).map_err(|bad| match bad {
        BadObject::Damaged(what) => Error::Corrupt(format!("{path} at offset 0: {what}")),
        BadObject::Format(_) => Error::Precondition(format!("{path} {bad}")),
    })
}

/// The same, of bytes of any origin.
pub(crate) fn open<T: DeserializeOwned>(bytes: &[u8]) -> std::result::Result<T, BadObject> {
    let word = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|word| Some(u32::from_le_bytes(word.try_into().ok()?)))
    };
    let damaged = |what: &str| BadObject::Damaged(what.to_owned());
    if bytes.get(..4) != Some(MAGIC) {
        return Err(damaged("not an object of tablemount"));
    }
    match word(4) {
        Some(FORMAT) => {}
        Some(other) => return Err(BadObject::Format(other)),
        None => return Err(damaged("cut short")),
    }
    let (Some(checksum), Some(length)) = (word(8), word(12)) else {
        return Err(damaged("cut short"));
    };
    if bytes.len() - HEADER != length as usize || crc32c::crc32c(&bytes[12..]) != checksum {
        return Err(damaged("checksum does not match"));
    }
    serde_json::from_slice(&bytes[HEADER..]).map_err(|error| damaged(&format!("content: {error}")))
}

/// Runs a future to its end on a thread that may block.
fn block_on<F: Future>(future: F) -> F::Output {
    match tokio::runtime::Handle::try_current() {
        Ok(handle) => handle.block_on(future),
        Err(_) => futures::executor::block_on(future),
    }
}

fn same(bytes: &Bytes, payload: &PutPayload) -> bool {
    let mut rest = &bytes[..];
    for part in payload {
        match rest.strip_prefix(&part[..]) {
            Some(tail) => rest = tail,
            None => return false,
        }
    }
    rest.is_empty()
}

fn failed(doing: &str, path: &str, error: &object_store::Error) -> Error {
    // The innermost cause is the operating system's; what is around it repeats the path.
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    Error::Io(format!("{doing} {path}: {cause}"))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn objects() -> Objects {
        Objects::new(Arc::new(InMemory::new()))
    }

    #[test]
    fn the_highest_number_is_the_truth_and_a_number_keeps_its_bytes() {
        let objects = objects();
        assert!(objects.newest::<String>("a").expect("list").is_none());
        for number in [1, 2, 10] {
            objects
                .create_numbered("a", number, &format!("v{number}"))
                .expect("create");
        }
        assert_eq!(
            objects.newest::<String>("a").expect("list"),
            Some((10, "v10".to_owned()))
        );
        assert!(objects.create_numbered("a", 10, &"other").is_err());
        objects
            .create_numbered("a", 10, &"v10")
            .expect("the same bytes again");
        objects.clean_numbered("a", 10);
        assert_eq!(objects.list("a").expect("list").len(), 1);
    }

    #[test]
    fn names_that_are_no_numbers_of_twelve_digits_are_passed_over() {
        let check = |name: &str, expected| assert_eq!(number(name), expected, "{name}");
        check("000000000007", Some(7));
        check("999999999999", Some(999_999_999_999));
        // Unequal names must not have equal numbers, and counting on must not overflow.
        for name in [
            "7",
            "+00000000007",
            "18446744073709551615",
            "00000000000x",
            "",
        ] {
            check(name, None);
        }
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let good = encode(&"content").expect("encode");
        assert_eq!(decode::<String>("p", &good).expect("decode"), "content");
        for bit in 0..good.len() * 8 {
            let mut bad = good.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode::<String>("p", &bad).is_err(), "bit {bit}");
        }
        for length in 0..good.len() {
            assert!(
                decode::<String>("p", &good[..length]).is_err(),
                "length {length}"
            );
        }
    }

    #[test]
    fn another_format_is_named() {
        let mut bytes = encode(&"content").expect("encode").to_vec();
        bytes[4] = 7;
        let error = decode::<String>("catalog/1", &bytes)
            .expect_err("refused")
            .to_string();
        assert_eq!(error, "catalog/1 has format 7; this version reads format 1");
    }
}
