//! The one door to bytes on disk: files and folders of the commit log, reads of SSTs, and the object store for all else.
//!
//! Paths are relative to the data folder, with `/`. [`LocalDisk`] is the real one; the tests' double (`sim`) loses at a crash
//! what was not synced: pages of files, entries of folders, deletes.
//!
//! **Invariants**: what an object store's put acknowledged is durable (`LocalFileSystem::with_fsync`, see the test); a file is
//! durable after `sync`, its name after `sync_folder` of its folder. One process holds a data folder (its lock).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::{Error, Result};

/// Written where zeros are needed, as often as needed.
pub(crate) static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A file open for reading.
pub(crate) trait ReadFile: Send + Sync {
    /// Its length in bytes.
    fn length(&self) -> u64;
    /// Exactly `length` bytes from `offset`; fewer is an error.
    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes>;
}

/// A file open for writing.
pub(crate) trait WriteFile: Send + Sync {
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Makes what was written durable (fdatasync).
    fn sync(&self) -> io::Result<()>;
    /// Takes space for the bytes `from..to`, zeros, where the file ends at `from`. After an error it ends there still.
    fn grow(&self, from: u64, to: u64) -> io::Result<()>;
}

/// Files, folders and objects under one data folder.
pub(crate) trait Disk: Send + Sync {
    /// The object store over the same folder.
    fn objects(&self) -> Arc<dyn ObjectStore>;
    /// Opens a file to read.
    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadFile>>;
    /// Creates a file that is not there, with `length` bytes of space. After an error it is not there.
    fn create(&self, path: &str, length: u64) -> io::Result<Arc<dyn WriteFile>>;
    /// Opens a file that is there, to write into its first `length` bytes, which it has; their space is taken.
    fn reopen(&self, path: &str, length: u64) -> io::Result<Arc<dyn WriteFile>>;
    /// Removes a file; that it is absent is no error.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Creates a folder in one that is there; that it exists is no error.
    fn create_folder(&self, path: &str) -> io::Result<()>;
    /// Names in a folder, sorted; an absent folder has none.
    fn list(&self, path: &str) -> io::Result<Vec<String>>;
    /// Makes the folder's entries durable.
    fn sync_folder(&self, path: &str) -> io::Result<()>;
    /// Bytes that are free for this process.
    fn room(&self) -> io::Result<u64>;
    /// Where the folder is, for messages.
    fn describe(&self) -> String;
}

/// A folder of the machine.
pub(crate) struct LocalDisk {
    root: PathBuf,
    objects: Arc<LocalFileSystem>,
    _lock: Option<File>,
}

impl LocalDisk {
    /// Opens the folder and takes its lock; creates it unless `read_only`, which takes no lock.
    pub(crate) fn open(root: &Path, read_only: bool) -> Result<Self> {
        let shown = root.display();
        if !read_only {
            create_durable(root).map_err(|error| failed(root, "create", root, error))?;
        } else if !root.is_dir() {
            return Err(Error::NotFound(format!(
                "data folder {shown} does not exist"
            )));
        }
        let lock = if read_only { None } else { Some(lock(root)?) };
        let objects = local_objects(root)
            .map_err(|error| Error::Io(format!("data folder {shown}: open: {error}")))?;
        Ok(Self {
            root: root.to_owned(),
            objects: Arc::new(objects),
            _lock: lock,
        })
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }
}

/// The object store over a folder; what it acknowledges is synced, file and folder.
fn local_objects(root: &Path) -> object_store::Result<LocalFileSystem> {
    Ok(LocalFileSystem::new_with_prefix(root)?.with_fsync(true))
}

/// Creates a folder and those above it, each durable in the one above.
fn create_durable(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    create_durable(parent)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(parent)?.sync_all()
}

fn lock(root: &Path) -> Result<File> {
    let path = root.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|error| failed(root, "open", &path, error))?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(Error::Precondition(format!(
            "data folder {} is in use by another process (it holds {})",
            root.display(),
            path.display()
        ))),
        Err(error) => Err(failed(root, "lock", &path, error.into())),
    }
}

/// A data folder that cannot be made ready to be written.
fn failed(root: &Path, doing: &str, path: &Path, error: io::Error) -> Error {
    let (root, path) = (root.display(), path.display());
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            Error::Precondition(format!(
                "data folder {root} cannot be written: {doing} {path}: {error}; --read-only opens a store to read"
            ))
        }
        _ => Error::Io(format!("data folder {root}: {doing} {path}: {error}")),
    }
}

struct LocalFile {
    file: File,
    length: u64,
}

impl ReadFile for LocalFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        if offset.saturating_add(length as u64) > self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.into())
    }
}

impl WriteFile for File {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn grow(&self, from: u64, to: u64) -> io::Result<()> {
        let grown = reserve(self, from, to);
        if grown.is_err() {
            self.set_len(from)?;
        }
        grown
    }
}

/// Takes space for the bytes `from..to` of a file that ends at `from`.
fn reserve(file: &File, from: u64, to: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), from, to - from) {
        // Some file systems cannot reserve space; zeros take it, where what is written over stays in its place.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, from, to),
        reserved => Ok(reserved?),
    }
}

fn write_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    (from..to).step_by(ZEROS.len()).try_for_each(|at| {
        let length = (to - at).min(ZEROS.len() as u64) as usize;
        file.write_all_at(&ZEROS[..length], at)
    })
}

impl Disk for LocalDisk {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadFile>> {
        let file = File::open(self.path(path))?;
        let length = file.metadata()?.len();
        Ok(Arc::new(LocalFile { file, length }))
    }

    fn create(&self, path: &str, length: u64) -> io::Result<Arc<dyn WriteFile>> {
        let file = File::options()
            .create_new(true)
            .write(true)
            .open(self.path(path))?;
        if let Err(error) = reserve(&file, 0, length) {
            drop(file);
            fs::remove_file(self.path(path))?;
            return Err(error);
        }
        Ok(Arc::new(file))
    }

    fn reopen(&self, path: &str, length: u64) -> io::Result<Arc<dyn WriteFile>> {
        let file = File::options().write(true).open(self.path(path))?;
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, length) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            reserved => reserved?,
        }
        Ok(Arc::new(file))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        match fs::remove_file(self.path(path)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn create_folder(&self, path: &str) -> io::Result<()> {
        match fs::create_dir(self.path(path)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        File::open(self.path(path))?.sync_all()
    }

    fn room(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn describe(&self) -> String {
        self.root.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_store_syncs_what_it_acknowledges() {
        let folder = tempfile::tempdir().expect("tempdir");
        let objects = local_objects(folder.path()).expect("open");
        assert!(
            format!("{objects:?}").contains("fsync: true"),
            "{objects:?}"
        );
    }

    #[test]
    fn a_second_process_is_refused() {
        let folder = tempfile::tempdir().expect("tempdir");
        let first = LocalDisk::open(folder.path(), false).expect("open");
        let second = LocalDisk::open(folder.path(), false)
            .err()
            .expect("refused")
            .to_string();
        assert!(second.contains("is in use by another process"), "{second}");
        drop(first);
        LocalDisk::open(folder.path(), false).expect("open again");
    }
}
