//! Which keys a view lists, and in which direction: `@prefix`, `@range`, `@after`, `@limit`, `@reverse`, chained.
//!
//! **Invariant**: every step narrows what the steps before it left; nothing widens it again.

use bytes::Bytes;

/// The keys (row keys, or a family's qualifiers) that a directory lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    /// Keys from this one on; empty: from the first.
    pub(crate) start: Bytes,
    /// Keys before this one; `None`: to the last.
    pub(crate) stop: Option<Bytes>,
    /// From the highest key down.
    pub(crate) reverse: bool,
    /// At most so many.
    pub(crate) limit: Option<u64>,
    /// Whether the view's last step is `@after`, so that the next page's link leads beside it, not into it.
    pub(crate) paging: bool,
}

impl Bounds {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        key >= &self.start[..] && self.stop.as_ref().is_none_or(|stop| key < &stop[..])
    }

    /// Whether no key can lie inside.
    pub(crate) fn is_void(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| *stop <= self.start)
    }

    /// Keys that start with `prefix`.
    pub(crate) fn prefix(self, prefix: Bytes) -> Self {
        let stop = end_of_prefix(&prefix);
        self.narrow(prefix, stop)
    }

    /// Keys from `start` on and before `stop`; an empty one is open.
    pub(crate) fn range(self, start: Bytes, stop: Bytes) -> Self {
        self.narrow(start, (!stop.is_empty()).then_some(stop))
    }

    /// What is listed after `key`, in the direction so far. Keys have at most `max_bytes` bytes.
    pub(crate) fn after(self, key: &Bytes, max_bytes: usize) -> Self {
        let narrowed = match self.reverse {
            true => self.narrow(Bytes::new(), Some(key.clone())),
            false => self.narrow(successor(key, max_bytes), None),
        };
        Self {
            paging: true,
            ..narrowed
        }
    }

    pub(crate) fn limit(self, limit: u64) -> Self {
        Self {
            limit: Some(self.limit.map_or(limit, |before| before.min(limit))),
            paging: false,
            ..self
        }
    }

    pub(crate) fn reverse(self) -> Self {
        Self {
            reverse: !self.reverse,
            paging: false,
            ..self
        }
    }

    fn narrow(self, start: Bytes, stop: Option<Bytes>) -> Self {
        let stop = match (self.stop, stop) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            start: self.start.max(start),
            stop,
            paging: false,
            ..self
        }
    }
}

/// The lowest byte string above all that start with `prefix`; `None`: there is none.
pub(crate) fn end_of_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end.into())
}

/// The lowest key above `key`, if keys have at most `max_bytes` bytes; of the highest key, something no key reaches.
pub(crate) fn successor(key: &[u8], max_bytes: usize) -> Bytes {
    if key.len() >= max_bytes
        && let Some(end) = end_of_prefix(key)
    {
        return end;
    }
    [key, &[0]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn inside(bounds: &Bounds) -> String {
        ["a", "aa", "ab", "b", "ba", "c"]
            .into_iter()
            .filter(|key| bounds.contains(key.as_bytes()))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn steps_narrow() {
        let all = Bounds::default();
        let check =
            |bounds: &Bounds, expected: &str| assert_eq!(inside(bounds), expected, "{bounds:?}");
        check(&all, "a aa ab b ba c");
        check(&all.clone().prefix(bytes("a")), "a aa ab");
        check(&all.clone().prefix(bytes("")), "a aa ab b ba c");
        check(&all.clone().range(bytes("aa"), bytes("b")), "aa ab");
        check(&all.clone().range(bytes("b"), bytes("")), "b ba c");
        check(&all.clone().after(&bytes("aa"), 100), "ab b ba c");
        check(&all.clone().reverse().after(&bytes("aa"), 100), "a");
        check(&all.clone().prefix(bytes("a")).prefix(bytes("b")), "");
        check(
            &all.clone().after(&bytes("b"), 100).after(&bytes("a"), 100),
            "ba c",
        );
        assert!(all.clone().prefix(bytes("a")).prefix(bytes("b")).is_void());
        assert_eq!(all.clone().limit(5).limit(7).limit, Some(5));
        assert!(
            all.clone().after(&bytes("b"), 100).paging
                && !all.after(&bytes("b"), 100).limit(3).paging
        );
    }

    #[test]
    fn successors_of_the_longest_keys() {
        assert_eq!(successor(b"ab", 3), &b"ab\0"[..]);
        assert_eq!(successor(b"ab", 2), &b"ac"[..]);
        assert_eq!(successor(b"a\xff", 2), &b"b"[..]);
        assert_eq!(successor(b"\xff\xff", 2), &b"\xff\xff\0"[..]);
        assert_eq!(end_of_prefix(b"\xff"), None);
        assert_eq!(end_of_prefix(b""), None);
    }
}
