//! Mounting and unmounting.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::SystemTime;

use fuser::{MountOption, Session, SessionACL, SessionUnmounter};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::clock::Clock;
use crate::config::MountConfig;
use crate::evict;
use crate::filesystem::Filesystem;
use crate::fuse::Fuse;
use crate::inodes::Inodes;
use crate::mountpoint;
use crate::source::Engine;

/// Requests are taken from the kernel by so many threads.
const SESSION_THREADS: usize = 1;

/// Why mounting failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such directory.
    #[error("mount point {path:?} does not exist; make it first: mkdir -p '{}'", path.display())]
    Missing {
        /// The mount point.
        path: PathBuf,
    },
    /// It is something else.
    #[error("mount point {path:?} is not a directory")]
    NotDirectory {
        /// The mount point.
        path: PathBuf,
    },
    /// It has files in it, or something is mounted there.
    #[error(
        "mount point {path:?} is not empty, or something is mounted there; give an empty directory"
    )]
    NotEmpty {
        /// The mount point.
        path: PathBuf,
    },
    /// It cannot be looked at.
    #[error("mount point {path:?}: {error}")]
    Mountpoint {
        /// The mount point.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The kernel has no FUSE, or the container was not given the device.
    #[error(
        "/dev/fuse does not exist; load the kernel module (modprobe fuse) or give the container the device"
    )]
    NoDevice,
    /// The device cannot be opened.
    #[error("/dev/fuse: {0}")]
    Device(io::Error),
    /// Neither privileged nor helped.
    #[error(
        "mounting takes root with CAP_SYS_ADMIN, or the program fusermount3 (Debian: apt install fuse3)"
    )]
    NoHelper,
    /// The kernel, or fusermount3, refused.
    #[error("mount on {path:?}: {error}")]
    Refused {
        /// The mount point.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Unmounting failed.
    #[error("unmount {path:?}: {error}")]
    Unmount {
        /// The mount point.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A mounted filesystem. Dropping it unmounts it.
pub struct Mount {
    path: PathBuf,
    /// `None` once it was used.
    unmounter: Option<SessionUnmounter>,
    ended: watch::Receiver<bool>,
}

/// Mounts, and returns once the kernel and the filesystem have agreed: from then on paths work.
///
/// Does not ask the engine anything: a mount comes up, and stays, while the engine is away. Must be called on a tokio
/// runtime of several threads, on which the filesystem then works.
pub async fn mount(config: MountConfig) -> Result<Mount, Error> {
    let runtime = Handle::current();
    let mounting = tokio::task::spawn_blocking(move || mount_here(&config, runtime));
    mounting
        .await
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

fn mount_here(config: &MountConfig, runtime: Handle) -> Result<Mount, Error> {
    let path = mountpoint::prepare(&config.mountpoint)?;
    let options = config.options();
    let source = Engine::new(&config.client, &options);
    let (crowded, is_crowded) = sync_channel(1);
    let inodes = Arc::new(Inodes::new(crowded));
    let filesystem = Filesystem::new(
        Arc::new(source),
        options,
        inodes.clone(),
        Clock::system(),
        SystemTime::now(),
    );
    let fuse = Fuse::new(Arc::new(filesystem), runtime);
    let mut session = Session::new(fuse, &path, &session_config(config))
        .map_err(|error| refused(&path, error))?;
    let (notifier, unmounter) = (session.notifier(), session.unmount_callable());
    let (end, ended) = watch::channel(false);
    let failed = |error| Error::Refused {
        path: path.clone(),
        error,
    };
    let inodes = Arc::downgrade(&inodes);
    let sweep = move || evict::run(&inodes, &is_crowded, &notifier);
    std::thread::Builder::new()
        .name("fuse-evict".to_owned())
        .spawn(sweep)
        .map_err(failed)?;
    let serve = move || {
        if let Err(error) = session.run() {
            warn!(%error, "the filesystem's session broke off");
        }
        end.send_replace(true);
    };
    std::thread::Builder::new()
        .name("fuse".to_owned())
        .spawn(serve)
        .map_err(failed)?;
    info!(mountpoint = %path.display(), server = config.client.url(), "mounted");
    Ok(Mount {
        path,
        unmounter: Some(unmounter),
        ended,
    })
}

fn session_config(config: &MountConfig) -> fuser::Config {
    let mut session = fuser::Config::default();
    session.mount_options = vec![
        MountOption::RO,
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
        MountOption::NoAtime,
        MountOption::DefaultPermissions,
        MountOption::FSName("tablemount".to_owned()),
        // As a kernel option: fuser itself would pass the subtype to fusermount3 only.
        MountOption::CUSTOM("subtype=tablemount".to_owned()),
    ];
    session.acl = if config.allow_other {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    session.n_threads = Some(SESSION_THREADS);
    session
}

fn refused(path: &Path, error: io::Error) -> Error {
    // The path is there, so it is the helper that is not: fuser goes for it when the kernel says EPERM.
    if error.kind() == io::ErrorKind::NotFound {
        return Error::NoHelper;
    }
    Error::Refused {
        path: path.to_owned(),
        error,
    }
}

impl Mount {
    /// Where it is mounted.
    pub fn mountpoint(&self) -> &Path {
        &self.path
    }

    /// Unmounts. If it is in use, the path is free at once, and what is open ends when it is closed, or with this process.
    pub async fn unmount(mut self) -> Result<(), Error> {
        let (unmounter, path) = (self.unmounter.take(), self.path.clone());
        let unmounting = tokio::task::spawn_blocking(move || unmount(unmounter, &path));
        unmounting
            .await
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    /// Waits until it was unmounted, by whomever.
    pub async fn wait(&self) {
        let mut ended = self.ended.clone();
        // An error means that the session is gone, which is the end too.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = unmount(self.unmounter.take(), &self.path) {
            warn!("{error}");
        }
    }
}

/// Unmounts, unless that was done already.
fn unmount(unmounter: Option<SessionUnmounter>, path: &Path) -> Result<(), Error> {
    let Some(mut unmounter) = unmounter else {
        return Ok(());
    };
    match unmounter.unmount() {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
            debug!(mountpoint = %path.display(), "in use; detaches it");
            mountpoint::detach(path).map_err(|error| Error::Unmount {
                path: path.to_owned(),
                error,
            })
        }
        // Someone else was faster.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        Err(error) => Err(Error::Unmount {
            path: path.to_owned(),
            error,
        }),
    }
}
