//! Whether a path can be mounted on: each obstacle is one clear error.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};
use tracing::info;

use crate::mount::Error;

const DEVICE: &str = "/dev/fuse";

/// The absolute path to mount on. What a mount process that died left there is cleared away.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf, Error> {
    if is_dead(path) {
        info!(mountpoint = %path.display(), "clears a mount whose process is gone");
        umount2(path, MntFlags::MNT_DETACH).map_err(|errno| refused(path, errno.into()))?;
    }
    let metadata = fs::metadata(path).map_err(|error| refused(path, error))?;
    if !metadata.is_dir() {
        return Err(Error::NotDirectory {
            path: path.to_owned(),
        });
    }
    let mut entries = fs::read_dir(path).map_err(|error| refused(path, error))?;
    if entries.next().is_some() {
        return Err(Error::NotEmpty {
            path: path.to_owned(),
        });
    }
    check_device()?;
    fs::canonicalize(path).map_err(|error| refused(path, error))
}

/// Detaches whatever is mounted at `path`, though it may be in use.
pub fn detach(path: &Path) -> io::Result<()> {
    umount2(path, MntFlags::MNT_DETACH).map_err(io::Error::from)
}

fn is_dead(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotConnected)
}

fn check_device() -> Result<(), Error> {
    match File::options().read(true).write(true).open(DEVICE) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::NoDevice),
        // Without permission, fusermount3 may have it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(error) => Err(Error::Device(error)),
    }
}

fn refused(path: &Path, error: io::Error) -> Error {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => Error::Missing { path },
        io::ErrorKind::NotADirectory => Error::NotDirectory { path },
        _ => Error::Mountpoint { path, error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &Path) -> String {
        prepare(path).expect_err("refused").to_string()
    }

    #[test]
    fn obstacles_are_named() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().display();
        assert_eq!(
            error(&folder.path().join("missing")),
            format!(
                "mount point \"{path}/missing\" does not exist; make it first: mkdir -p '{path}/missing'"
            )
        );
        fs::write(folder.path().join("file"), "").expect("write");
        assert_eq!(
            error(&folder.path().join("file")),
            format!("mount point \"{path}/file\" is not a directory")
        );
        assert_eq!(
            error(&folder.path().join("file/below")),
            format!("mount point \"{path}/file/below\" is not a directory")
        );
        assert_eq!(
            error(folder.path()),
            format!(
                "mount point \"{path}\" is not empty, or something is mounted there; give an empty directory"
            )
        );
    }

    #[test]
    fn what_is_allowed_is_made_absolute() {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir(folder.path().join("a")).expect("mkdir");
        let found = prepare(&folder.path().join("a/../a/.")).expect("allowed");
        assert_eq!(
            found,
            fs::canonicalize(folder.path()).expect("absolute").join("a")
        );
    }
}
