//! A disk in memory: files of the log and SSTs by path, which are only read, and the object store's objects, which are written too.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::storage::disk::{Disk, ReadFile, WriteFile};

/// The disk.
#[derive(Default)]
pub(crate) struct Memory {
    files: BTreeMap<String, Bytes>,
    objects: Arc<InMemory>,
}

impl Memory {
    /// Puts a file there, for both kinds of readers.
    pub(crate) fn put(&mut self, path: &str, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        let location = Path::from(path);
        let put = self.objects.put(&location, bytes.clone().into());
        futures::executor::block_on(put).expect("memory takes all");
        self.files.insert(path.to_owned(), bytes);
    }
}

struct File(Bytes);

impl ReadFile for File {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let end = offset.saturating_add(length as u64);
        if end > self.length() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.0.slice(offset as usize..end as usize))
    }
}

impl Disk for Memory {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadFile>> {
        if let Some(bytes) = self.files.get(path) {
            return Ok(Arc::new(File(bytes.clone())));
        }
        let location = Path::from(path);
        let written = async { self.objects.get(&location).await?.bytes().await };
        let bytes = futures::executor::block_on(written).map_err(|_| io::ErrorKind::NotFound)?;
        Ok(Arc::new(File(bytes)))
    }

    fn room(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn create(&self, _: &str, _: u64) -> io::Result<Arc<dyn WriteFile>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn reopen(&self, _: &str, _: u64) -> io::Result<Arc<dyn WriteFile>> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn create_folder(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let inside = |file: &String| {
            file.strip_prefix(path)?
                .strip_prefix('/')
                .map(str::to_owned)
        };
        let names = self.files.keys().filter_map(inside);
        Ok(names.filter(|name| !name.contains('/')).collect())
    }

    fn sync_folder(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }
}
