//! Which of a family's SSTs to merge: a pure choice.
//!
//! Size-tiered: files stand oldest first; the newest run of similar size is merged once it is long enough, so each byte is
//! rewritten about log(size) times. Which files merge is always a run without gaps, so that age order stays order.

use std::ops::Range;

/// Files of similar size that are merged at once, at least.
const MIN_RUN: usize = 4;
/// A run grows over a file of up to this many times what the run's newer files hold together.
const SIMILAR: u64 = 2;
/// So many files are merged whatever their sizes, so that a read never looks into more.
const MAX_FILES: usize = 16;

/// The files to merge, by their place; all: tombstones and wider deletes need not be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) files: Range<usize>,
}

/// Chooses, given the files' sizes, oldest first.
pub(crate) fn choose(bytes: &[u64]) -> Option<Choice> {
    let mut start = bytes.len();
    let mut total = 0_u64;
    while start > 0 && (total == 0 || bytes[start - 1] <= total.saturating_mul(SIMILAR)) {
        start -= 1;
        total = total.saturating_add(bytes[start]);
    }
    let long = bytes.len() - start >= MIN_RUN;
    let many = bytes.len() > MAX_FILES;
    match (long, many) {
        (true, _) => Some(Choice {
            files: start..bytes.len(),
        }),
        (false, true) => Some(Choice {
            files: 0..bytes.len(),
        }),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_similar_files_merge() {
        let check = |bytes: &[u64], expected: Option<Range<usize>>| {
            assert_eq!(
                choose(bytes).map(|choice| choice.files),
                expected,
                "{bytes:?}"
            );
        };
        check(&[], None);
        check(&[10, 10, 10], None);
        check(&[10, 10, 10, 10], Some(0..4));
        check(&[1000, 10, 10, 10], None);
        check(&[1000, 10, 10, 10, 10], Some(1..5));
        check(&[40, 10, 10, 10, 10], Some(0..5));
        check(&[1 << 60, 1 << 50, 1 << 40], None);
    }

    #[test]
    fn a_family_never_keeps_many_files() {
        let growing: Vec<u64> = (0..17).rev().map(|i| 1 << (3 * i)).collect();
        assert_eq!(choose(&growing), Some(Choice { files: 0..17 }));
    }

    #[test]
    fn rewriting_is_logarithmic() {
        let (mut files, mut rewritten) = (Vec::new(), 0);
        for _ in 0..4096 {
            files.extend([1_u64]);
            while let Some(choice) = choose(&files) {
                let merged: u64 = files[choice.files.clone()].iter().sum();
                rewritten += merged;
                files.splice(choice.files, [merged]);
            }
        }
        assert!(rewritten < 4096 * 12, "{rewritten}");
        assert!(files.len() <= MAX_FILES);
    }
}
