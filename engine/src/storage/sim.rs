//! The tests' double of a disk: at a crash it keeps what was synced, and of the rest a random part.
//!
//! Files lose unsynced 4 KiB pages, folders unsynced entries and deletes, the object store's deletes are undone; what its put
//! acknowledged stays (the real one syncs, see `disk`). It can also ignore one kind of sync, to show that a test notices, fail
//! the n-th call that changes something, and be full.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, UploadPart,
};
use parking_lot::Mutex;

use super::disk::{Disk, ReadFile, WriteFile};
pub(crate) use super::random::Random;

const PAGE: usize = 4096;

/// A sync that the double can leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sync {
    /// Of a file: a group, and the segment's header before it.
    Group,
    /// Of a folder of files, after one was made.
    Folder,
    /// Of a folder of files, after some were only removed.
    Removal,
    /// Of a folder of folders.
    Parent,
    /// Of objects put.
    Object,
}

/// The disk.
#[derive(Clone)]
pub(crate) struct SimDisk {
    state: Arc<Mutex<State>>,
    objects: Arc<SimObjects>,
}

struct State {
    files: BTreeMap<String, Arc<Mutex<Inode>>>,
    durable_files: BTreeMap<String, Arc<Mutex<Inode>>>,
    folders: BTreeSet<String>,
    durable_folders: BTreeSet<String>,
    ignored: Option<Sync>,
    /// Changing calls until one fails.
    fail_in: Option<u64>,
    /// Bytes of files, objects and uploads that there is room for.
    capacity: u64,
    /// Bytes of uploads under way.
    uploading: u64,
}

#[derive(Default, Clone)]
struct Inode {
    content: Vec<u8>,
    durable: Vec<u8>,
    dirty: BTreeSet<usize>,
}

impl State {
    /// Counts a changing call; it fails if its turn has come.
    fn step(&mut self) -> io::Result<()> {
        match &mut self.fail_in {
            Some(0) => Err(io::Error::other("injected")),
            Some(n) => {
                *n -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn file_bytes(&self) -> u64 {
        let lengths = self.files.values().map(|inode| inode.lock().content.len());
        lengths.sum::<usize>() as u64
    }
}

impl SimDisk {
    pub(crate) fn new() -> Self {
        let state = Arc::new(Mutex::new(State {
            files: BTreeMap::new(),
            durable_files: BTreeMap::new(),
            folders: BTreeSet::new(),
            durable_folders: BTreeSet::new(),
            ignored: None,
            fail_in: None,
            capacity: u64::MAX,
            uploading: 0,
        }));
        let objects = SimObjects {
            inner: Arc::default(),
            deleted: Arc::default(),
            unsynced: Arc::default(),
            state: state.clone(),
        };
        Self {
            state,
            objects: Arc::new(objects),
        }
    }

    pub(crate) fn ignore(&self, sync: Sync) {
        self.state.lock().ignored = Some(sync);
    }

    /// The n-th changing call from now, and all after it, fail.
    pub(crate) fn fail_in(&self, calls: u64) {
        self.state.lock().fail_in = Some(calls);
    }

    /// Bytes on the disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.objects.used(&self.state.lock())
    }

    /// From now on the disk has room for `more` bytes beyond those it holds.
    pub(crate) fn limit_to(&self, more: u64) {
        let mut state = self.state.lock();
        state.capacity = self.objects.used(&state).saturating_add(more);
    }

    /// What a new start finds after a crash.
    pub(crate) fn crash(&self, random: &mut Random) -> Self {
        let after = Self::new();
        self.crash_files(&after, random);
        let mut kept = BTreeMap::new();
        let listed = block(
            self.objects
                .inner
                .list(None)
                .map_ok(|meta| meta.location)
                .try_collect::<Vec<_>>(),
        );
        for path in listed.expect("list") {
            let lost = self.objects.unsynced.lock().contains(&path) && random.chance(50);
            if !lost {
                kept.insert(path.clone(), self.objects.content(&path).expect("listed"));
            }
        }
        for (path, content) in self.objects.deleted.lock().iter() {
            if random.chance(50) {
                kept.entry(path.clone()).or_insert_with(|| content.clone());
            }
        }
        for (path, content) in kept {
            block(after.objects.inner.put(&path, content.into())).expect("put");
        }
        after
    }

    fn crash_files(&self, after: &Self, random: &mut Random) {
        let state = self.state.lock();
        let mut next = after.state.lock();
        for folder in &state.folders {
            if state.durable_folders.contains(folder) || random.chance(50) {
                next.folders.insert(folder.clone());
            }
        }
        let names: BTreeSet<_> = state
            .files
            .keys()
            .chain(state.durable_files.keys())
            .collect();
        for name in names {
            let (now, before) = (state.files.get(name), state.durable_files.get(name));
            let inode = if random.chance(50) { now } else { before };
            let folder_stays = next.folders.iter().any(|folder| parent(name) == folder);
            if let Some(inode) = inode.filter(|_| folder_stays) {
                let content = inode.lock().crash(random);
                let inode = Inode {
                    durable: content.clone(),
                    content,
                    ..Inode::default()
                };
                next.files.insert(name.clone(), Arc::new(Mutex::new(inode)));
            }
        }
        next.durable_files = next.files.clone();
        next.durable_folders = next.folders.clone();
    }

    /// Changes bytes of a file or object, as a failing medium does.
    pub(crate) fn damage(&self, path: &str, offset: usize) {
        match self.state.lock().files.get(path) {
            Some(inode) => inode.lock().content[offset] ^= 0x40,
            None => {
                let path = Path::from(path);
                let mut content = self.objects.content(&path).expect("exists").to_vec();
                content[offset] ^= 0x40;
                block(self.objects.inner.put(&path, content.into())).expect("put");
            }
        }
    }

    /// Paths of objects.
    pub(crate) fn object_paths(&self) -> Vec<String> {
        let listed = self
            .objects
            .inner
            .list(None)
            .map_ok(|meta| meta.location.to_string())
            .try_collect::<Vec<_>>();
        let mut paths = block(listed).expect("list");
        paths.sort();
        paths
    }
}

impl Inode {
    fn crash(&self, random: &mut Random) -> Vec<u8> {
        let mut content = self.durable.clone();
        content.resize(self.content.len(), 0);
        for page in &self.dirty {
            if random.chance(50) {
                let range = page * PAGE..((page + 1) * PAGE).min(content.len());
                content[range.clone()].copy_from_slice(&self.content[range]);
            }
        }
        content
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn block<F: Future>(future: F) -> F::Output {
    futures::executor::block_on(future)
}

struct SimFile {
    inode: Arc<Mutex<Inode>>,
    disk: SimDisk,
}

impl WriteFile for SimFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk.state.lock().step()?;
        let mut inode = self.inode.lock();
        let (start, end) = (offset as usize, offset as usize + bytes.len());
        if end > inode.content.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        inode.content[start..end].copy_from_slice(bytes);
        inode.dirty.extend(start / PAGE..end.div_ceil(PAGE));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let ignored = {
            let mut state = self.disk.state.lock();
            state.step()?;
            state.ignored
        };
        let mut inode = self.inode.lock();
        if ignored != Some(Sync::Group) {
            inode.durable = inode.content.clone();
            inode.dirty.clear();
        }
        Ok(())
    }

    fn grow(&self, from: u64, to: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.step()?;
        self.disk.objects.take_room(&state, to - from)?;
        self.inode.lock().content.resize(to as usize, 0);
        Ok(())
    }
}

struct SimBytes(Bytes);

impl ReadFile for SimBytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let start = offset as usize;
        match start + length <= self.0.len() {
            true => Ok(self.0.slice(start..start + length)),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl Disk for SimDisk {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadFile>> {
        if let Some(inode) = self.state.lock().files.get(path) {
            return Ok(Arc::new(SimBytes(inode.lock().content.clone().into())));
        }
        let content = self.objects.content(&Path::from(path));
        content
            .map(|content| Arc::new(SimBytes(content)) as _)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn create(&self, path: &str, length: u64) -> io::Result<Arc<dyn WriteFile>> {
        let mut state = self.state.lock();
        state.step()?;
        if !state.folders.contains(parent(path)) || state.files.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.objects.take_room(&state, length)?;
        let inode = Inode {
            content: vec![0; length as usize],
            ..Inode::default()
        };
        let inode = Arc::new(Mutex::new(inode));
        state.files.insert(path.to_owned(), inode.clone());
        Ok(Arc::new(SimFile {
            inode,
            disk: self.clone(),
        }))
    }

    fn reopen(&self, path: &str, _length: u64) -> io::Result<Arc<dyn WriteFile>> {
        let inode = self.state.lock().files.get(path).cloned();
        Ok(Arc::new(SimFile {
            inode: inode.ok_or(io::ErrorKind::NotFound)?,
            disk: self.clone(),
        }))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.step()?;
        state.files.remove(path);
        Ok(())
    }

    fn create_folder(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.step()?;
        state.folders.insert(path.to_owned());
        Ok(())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let state = self.state.lock();
        let all = state.files.keys().chain(&state.folders);
        let mut names: Vec<String> = match path {
            "" => all
                .filter_map(|name| name.split('/').next())
                .map(str::to_owned)
                .collect(),
            _ => all
                .filter(|name| parent(name) == path)
                .map(|name| name[path.len() + 1..].to_owned())
                .collect(),
        };
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn sync_folder(&self, path: &str) -> io::Result<()> {
        let mut state = self.state.lock();
        state.step()?;
        let here = |name: &&String| parent(name) == path;
        let known = |name: &String| state.durable_files.contains_key(name);
        let made = state.files.keys().filter(here).any(|name| !known(name));
        let kind = if made { Sync::Folder } else { Sync::Removal };
        if state.ignored != Some(kind) {
            let files: Vec<_> = state
                .files
                .iter()
                .filter(|(name, _)| here(name))
                .map(|(n, i)| (n.clone(), i.clone()))
                .collect();
            state.durable_files.retain(|name, _| !here(&name));
            state.durable_files.extend(files);
        }
        if state.ignored != Some(Sync::Parent) {
            let folders: Vec<_> = state.folders.iter().filter(here).cloned().collect();
            state.durable_folders.extend(folders);
        }
        Ok(())
    }

    fn room(&self) -> io::Result<u64> {
        let state = self.objects.state.lock();
        Ok(state.capacity.saturating_sub(self.objects.used(&state)))
    }

    fn describe(&self) -> String {
        "sim".to_owned()
    }
}

#[derive(Clone)]
struct SimObjects {
    inner: Arc<InMemory>,
    deleted: Arc<Mutex<BTreeMap<Path, Bytes>>>,
    unsynced: Arc<Mutex<BTreeSet<Path>>>,
    state: Arc<Mutex<State>>,
}

impl SimObjects {
    fn content(&self, path: &Path) -> Option<Bytes> {
        block(self.read(path))
    }

    async fn read(&self, path: &Path) -> Option<Bytes> {
        self.inner.get(path).await.ok()?.bytes().await.ok()
    }

    /// Bytes on the disk.
    fn used(&self, state: &State) -> u64 {
        let sizes = self.inner.list(None).map_ok(|meta| meta.size);
        let listed = sizes.try_collect::<Vec<u64>>().now_or_never();
        let objects = listed.expect("in memory, so at once").expect("list");
        state.file_bytes() + state.uploading + objects.iter().sum::<u64>()
    }

    fn take_room(&self, state: &State, bytes: u64) -> io::Result<()> {
        let full = state.capacity != u64::MAX && self.used(state) + bytes > state.capacity;
        match full {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    async fn delete(&self, path: Path) -> object_store::Result<Path> {
        self.step(&path, 0)?;
        if let Some(content) = self.read(&path).await {
            self.deleted.lock().insert(path.clone(), content);
        }
        self.inner.delete(&path).await?;
        Ok(path)
    }

    /// Counts a call that changes `path` and takes room for `bytes` more.
    fn step(&self, path: &Path, bytes: u64) -> object_store::Result<()> {
        let mut state = self.state.lock();
        if state.ignored == Some(Sync::Object) {
            self.unsynced.lock().insert(path.clone());
        }
        let done = state.step().and_then(|()| self.take_room(&state, bytes));
        done.map_err(failed)
    }
}

fn failed(error: io::Error) -> object_store::Error {
    object_store::Error::Generic {
        store: "sim",
        source: Box::new(error),
    }
}

/// An upload whose parts take room until it is complete or given up.
#[derive(Debug)]
struct SimUpload {
    inner: Box<dyn MultipartUpload>,
    objects: SimObjects,
    bytes: u64,
}

#[async_trait::async_trait]
impl MultipartUpload for SimUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let bytes = data.content_length() as u64;
        let mut state = self.objects.state.lock();
        if let Err(error) = self.objects.take_room(&state, bytes) {
            return futures::future::ready(Err(failed(error))).boxed();
        }
        state.uploading += bytes;
        self.bytes += bytes;
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> object_store::Result<PutResult> {
        self.inner.complete().await
    }

    async fn abort(&mut self) -> object_store::Result<()> {
        self.inner.abort().await
    }
}

impl Drop for SimUpload {
    fn drop(&mut self) {
        self.objects.state.lock().uploading -= self.bytes;
    }
}

impl fmt::Debug for SimObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimObjects")
    }
}

impl fmt::Display for SimObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimObjects")
    }
}

#[async_trait::async_trait]
impl ObjectStore for SimObjects {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.step(path, payload.content_length() as u64)?;
        self.inner.put_opts(path, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.step(path, 0)?;
        let inner = self.inner.put_multipart_opts(path, opts).await?;
        let (objects, bytes) = (self.clone(), 0);
        Ok(Box::new(SimUpload {
            inner,
            objects,
            bytes,
        }))
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        let objects = self.clone();
        let delete = move |path: object_store::Result<Path>| {
            let objects = objects.clone();
            async move { objects.delete(path?).await }
        };
        paths.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
