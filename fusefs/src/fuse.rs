//! FUSE's requests, translated to the filesystem's operations and back. Decides nothing.
//!
//! A request is worked on right away as far as that goes without waiting, so that what is known needs no change of thread;
//! the rest runs on the runtime and answers from there. The session's threads never wait.

use std::ffi::OsStr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tracing::{debug, warn};

use crate::config::Options;
use crate::errno::Failure;
use crate::filesystem::Filesystem;
use crate::node::Kind;
use crate::stat::Stat;
use crate::window::TTL;

const BLOCK_BYTES: u32 = 4096;
/// The largest read.
const MAX_READ_BYTES: u32 = 1 << 20;
/// Shown by df, which hides filesystems of size 0: 1 PiB, all of it free, since nothing here can fill up.
const BLOCKS: u64 = 1 << 38;
const NAME_BYTES: u32 = 255;
const GENERATION: Generation = Generation(0);
const LOG_EVERY: Duration = Duration::from_secs(1);

/// The filesystem, as fuser calls it.
pub(crate) struct Fuse {
    filesystem: Arc<Filesystem>,
    runtime: Handle,
    log: Arc<TroubleLog>,
}

impl Fuse {
    /// Works on `runtime`.
    pub(crate) fn new(filesystem: Arc<Filesystem>, runtime: Handle) -> Self {
        Self {
            filesystem,
            runtime,
            log: Arc::default(),
        }
    }

    /// Works until the first wait, then hands over to the runtime.
    fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
        let _runtime = self.runtime.enter();
        let mut context = Context::from_waker(Waker::noop());
        if work.as_mut().poll(&mut context).is_pending() {
            self.runtime.spawn(work);
        }
    }
}

/// Logs what goes wrong, but not once per file of a walk over a server that is gone.
#[derive(Default)]
struct TroubleLog {
    /// When it was last logged, and how often it was not since.
    last: Mutex<(Option<Instant>, u64)>,
}

impl TroubleLog {
    /// The errno of a failed operation, after a line in the log if someone should know.
    fn errno(&self, operation: &'static str, failure: &Failure) -> Errno {
        self.note(operation, failure);
        failure.errno()
    }

    fn note(&self, operation: &'static str, failure: &Failure) {
        if !failure.is_trouble() {
            debug!(operation, %failure, "refused");
            return;
        }
        let now = Instant::now();
        let (last, held_back) = &mut *self.last.lock();
        if last.is_some_and(|last| now.duration_since(last) < LOG_EVERY) {
            *held_back += 1;
            return;
        }
        warn!(operation, held_back, "{failure}");
        (*last, *held_back) = (Some(now), 0);
    }
}

fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::File => FileType::RegularFile,
        Kind::Link => FileType::Symlink,
    }
}

fn file_attr(options: &Options, number: u64, stat: &Stat) -> FileAttr {
    let modified = stat.modified_time();
    let perm = match stat.kind {
        Kind::Directory => options.dir_mode,
        Kind::File => options.file_mode,
        Kind::Link => 0o777,
    };
    FileAttr {
        ino: INodeNo(number),
        size: stat.size,
        blocks: stat.size.div_ceil(512),
        atime: modified,
        mtime: modified,
        ctime: modified,
        crtime: SystemTime::UNIX_EPOCH,
        kind: file_type(stat.kind),
        perm,
        nlink: 1,
        uid: options.uid,
        gid: options.gid,
        rdev: 0,
        blksize: BLOCK_BYTES,
        flags: 0,
    }
}

/// Answers getxattr and listxattr: the length if `size` is 0, else the bytes if they fit.
fn reply_xattr(value: Result<Bytes, Failure>, size: u32, reply: ReplyXattr) {
    match value {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() <= size as usize => reply.data(&value),
        Ok(_) => reply.error(Failure::SmallBuffer.errno()),
        Err(failure) => reply.error(failure.errno()),
    }
}

impl fuser::Filesystem for Fuse {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        for wanted in [
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ] {
            if config.add_capabilities(wanted).is_err() {
                debug!(?wanted, "the kernel does not have it");
            }
        }
        // Bounds reads as well; the nearest value it takes instead is as good.
        let _ = config.set_max_write(MAX_READ_BYTES);
        let _ = config.set_max_background(64);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (filesystem, name, log) = (self.filesystem.clone(), name.to_owned(), self.log.clone());
        self.run(async move {
            match filesystem.lookup(parent.0, &name).await {
                Ok((number, stat)) => reply.entry(
                    &TTL,
                    &file_attr(&filesystem.options, number, &stat),
                    GENERATION,
                ),
                Err(failure) => reply.error(log.errno("lookup", &failure)),
            }
        });
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.filesystem.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        let (filesystem, log) = (self.filesystem.clone(), self.log.clone());
        self.run(async move {
            match filesystem.getattr(ino.0).await {
                Ok(stat) => reply.attr(&TTL, &file_attr(&filesystem.options, ino.0, &stat)),
                Err(failure) => reply.error(log.errno("getattr", &failure)),
            }
        });
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        let (filesystem, log) = (self.filesystem.clone(), self.log.clone());
        self.run(async move {
            match filesystem.readlink(ino.0).await {
                Ok(target) => reply.data(target.as_bytes()),
                Err(failure) => reply.error(log.errno("readlink", &failure)),
            }
        });
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(Failure::ReadOnly.errno());
        }
        let (filesystem, log) = (self.filesystem.clone(), self.log.clone());
        self.run(async move {
            match filesystem.open(ino.0).await {
                // What is read is what the server has, whatever size the kernel has heard of.
                Ok(handle) => {
                    reply.opened(
                        FileHandle(handle),
                        FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_NOFLUSH,
                    );
                }
                Err(failure) => reply.error(log.errno("open", &failure)),
            }
        });
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let (filesystem, log) = (self.filesystem.clone(), self.log.clone());
        self.run(async move {
            match filesystem.read(fh.0, offset, size).await {
                Ok(bytes) => reply.data(&bytes),
                Err(failure) => reply.error(log.errno("read", &failure)),
            }
        });
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.filesystem.release(ino.0, fh.0);
        reply.ok();
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.filesystem.opendir(ino.0) {
            Ok(handle) => reply.opened(FileHandle(handle), FopenFlags::empty()),
            Err(failure) => reply.error(self.log.errno("opendir", &failure)),
        }
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let (filesystem, log) = (self.filesystem.clone(), self.log.clone());
        self.run(async move {
            let add = |entry: &crate::filesystem::Entry<'_>| {
                reply.add(
                    INodeNo(entry.number),
                    entry.offset,
                    file_type(entry.stat.kind),
                    entry.name,
                )
            };
            match filesystem.readdir(ino.0, fh.0, offset, false, add).await {
                Ok(()) => reply.ok(),
                Err(failure) => reply.error(log.errno("readdir", &failure)),
            }
        });
    }

    fn readdirplus(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (filesystem, log) = (self.filesystem.clone(), self.log.clone());
        self.run(async move {
            let add = |entry: &crate::filesystem::Entry<'_>| {
                let attr = file_attr(&filesystem.options, entry.number, &entry.stat);
                reply.add(
                    INodeNo(entry.number),
                    entry.offset,
                    entry.name,
                    &TTL,
                    &attr,
                    GENERATION,
                )
            };
            match filesystem.readdir(ino.0, fh.0, offset, true, add).await {
                Ok(()) => reply.ok(),
                Err(failure) => reply.error(log.errno("readdir", &failure)),
            }
        });
    }

    fn releasedir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.filesystem.releasedir(ino.0, fh.0);
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        reply.statfs(
            BLOCKS,
            BLOCKS,
            BLOCKS,
            0,
            0,
            BLOCK_BYTES,
            NAME_BYTES,
            BLOCK_BYTES,
        );
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        reply_xattr(self.filesystem.getxattr(ino.0, name), size, reply);
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        reply_xattr(self.filesystem.listxattr(ino.0), size, reply);
    }

    fn lseek(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _offset: i64,
        _whence: i32,
        reply: ReplyLseek,
    ) {
        // The kernel then finds the ends of data itself, and does not ask again.
        reply.error(Errno::ENOSYS);
    }

    // What writes is refused, should someone have remounted read-write.

    fn setattr(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        reply.error(Errno::EROFS);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn unlink(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn rmdir(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &std::path::Path, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn rename(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(Errno::EROFS);
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(Errno::EROFS);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        _: u64,
        _: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::EROFS);
    }

    fn setxattr(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EROFS);
    }

    fn removexattr(&self, _: &Request, _: INodeNo, _: &OsStr, reply: ReplyEmpty) {
        reply.error(Errno::EROFS);
    }
}
