//! Clean-up of files: those that no manifest and no catalog names any more wait in a queue until they are removed.
//!
//! **Invariants**: only what a won manifest or catalog dropped, or what an earlier start left unnamed, comes into the queue; a
//! file comes in when its last reader is gone; while the store is held nothing leaves it. What could not be removed stays in.

use super::store::Store;
use crate::Result;

impl Store {
    /// Removes what waits, unless the store is held. The error is of the last that could not be removed.
    pub(crate) fn remove_dropped(&self) -> Result<()> {
        let hold = self.hold.read();
        if hold.1.held {
            return Ok(());
        }
        let paths = std::mem::take(&mut *self.dropped.lock());
        let (any, mut result) = (!paths.is_empty(), Ok(()));
        for path in paths {
            if let Err(error) = self.objects.remove(&path) {
                self.dropped.lock().push(path);
                result = Err(error);
            }
        }
        if let Some(log) = self.log.as_ref().filter(|_| any) {
            log.look_for_room();
        }
        result
    }

    /// Puts all objects below a folder that nothing names any more into the queue; a failure is only logged, since the next
    /// start finds them too.
    pub(super) fn drop_folder(&self, folder: &str) {
        match self.objects.list(folder) {
            Ok(listed) => {
                let paths = listed.into_iter().map(|(path, _)| path);
                self.dropped.lock().extend(paths);
            }
            Err(error) => {
                tracing::warn!(%error, "files of what was dropped stay until the next start")
            }
        }
    }
}
