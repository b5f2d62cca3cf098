//! The keys behind `%l` names, which hold only a digest: those that listings showed lately.
//!
//! **Invariant**: at most [`MAX_BYTES`] of keys are held; the oldest go first.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use parking_lot::Mutex;

const MAX_BYTES: usize = 16 << 20;

/// Names that were shown, and what they stand for.
#[derive(Default)]
pub(crate) struct LongNames {
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    keys: HashMap<String, Bytes>,
    oldest_first: VecDeque<String>,
    bytes: usize,
}

impl LongNames {
    /// A listing shows `key` as `name`.
    pub(crate) fn note(&self, name: &str, key: &Bytes) {
        if !name.starts_with("%l") {
            return;
        }
        let mut shown = self.shown.lock();
        if shown.keys.insert(name.to_owned(), key.clone()).is_some() {
            return;
        }
        shown.oldest_first.push_back(name.to_owned());
        shown.bytes += key.len();
        while shown.bytes > MAX_BYTES
            && let Some(name) = shown.oldest_first.pop_front()
        {
            let key = shown.keys.remove(&name);
            shown.bytes -= key.map_or(0, |key| key.len());
        }
    }

    /// What `name` stands for, if it was shown lately.
    pub(crate) fn get(&self, name: &str) -> Option<Bytes> {
        self.shown.lock().keys.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_names_go_first() {
        let names = LongNames::default();
        let key = Bytes::from(vec![b'k'; 1 << 16]);
        for i in 0..300 {
            names.note(&format!("%l{i}"), &key);
        }
        names.note("short", &key);
        assert_eq!(names.get("%l299").as_ref(), Some(&key));
        assert_eq!(names.get("%l0"), None);
        assert_eq!(names.get("short"), None);
        assert!(names.shown.lock().bytes <= MAX_BYTES);
    }
}
