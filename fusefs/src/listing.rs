//! An open directory: names by offset, whatever offset the kernel asks for.
//!
//! 1. *Big directories*: one page of names is held at a time ([`crate::pages`]).
//! 2. *seekdir to any offset*: [`Checkpoints`] remember where pages began; going back reads from the nearest one.
//! 3. *rewinddir*: offset 0 reads anew, so that what was written since shows.
//! 4. *Too many names*: after the limit comes `@more`, a link to the next page, and then an error, so that no program takes
//!    a part for the whole.
//!
//! **Invariants**: offsets count names, 0 is `.`, 1 is `..`; reading on costs no request but one per page.

use std::sync::Arc;

use tablemount_api::Position;

use crate::errno::Failure;
use crate::filesystem::Filesystem;
use crate::node::Node;
use crate::pages::Item;
use crate::path::timestamp_name;
use crate::stat::Stat;

/// Names in the first page, so that the first of them show soon, and in those after it.
const FIRST_PAGE: u64 = 1000;
const PAGE: u64 = 10_000;
/// When only the last name is of interest.
const SKIPPED_PAGE: u64 = 50_000;
const MAX_CHECKPOINTS: usize = 256;

/// An open directory.
pub(crate) struct Listing {
    directory: Arc<Node>,
    /// The index of the page's first name.
    first: u64,
    items: Vec<Item>,
    next: Next,
    checkpoints: Checkpoints,
    page: u64,
    /// The last name before the limit.
    last_listed: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Next {
    Start,
    After(Position),
    End,
}

impl Listing {
    pub(crate) fn new(directory: Arc<Node>) -> Self {
        Self {
            directory,
            first: 0,
            items: Vec::new(),
            next: Next::Start,
            checkpoints: Checkpoints::default(),
            page: FIRST_PAGE,
            last_listed: None,
        }
    }

    /// Starts anew, as after rewinddir.
    pub(crate) fn rewind(&mut self) {
        *self = Self::new(self.directory.clone());
    }

    /// The name at `index`, not counting `.` and `..`; `None`: the directory's end.
    pub(crate) async fn get(
        &mut self,
        filesystem: &Filesystem,
        index: u64,
    ) -> Result<Option<&Item>, Failure> {
        if bounds_limit(&self.directory).is_some_and(|limit| index >= limit) {
            return Ok(None);
        }
        let limit = filesystem.options.listing_limit;
        let cut = limit > 0 && index >= limit;
        if cut && index > limit {
            return Err(Failure::TooManyNames);
        }
        if cut && self.last_listed.is_none() {
            self.last_listed = self
                .load(filesystem, limit - 1)
                .await?
                .map(|item| item.name.clone());
        }
        if self.load(filesystem, index).await?.is_none() {
            return Ok(None);
        }
        let at = (index - self.first) as usize;
        if index + 1 == limit {
            self.last_listed = self.items.get(at).map(|item| item.name.clone());
        }
        if cut {
            let target = self.more_target(self.last_listed.as_deref().unwrap_or_default());
            filesystem.more_links.note(&self.directory, &target);
            // Nothing comes after it, so it can stand in the place of the first name that is left out.
            let stat = Stat::link(&target, filesystem.mounted);
            self.items[at] = Item {
                name: "@more".to_owned(),
                node: Node::Link(target),
                stat,
            };
        }
        Ok(self.items.get(at))
    }

    /// Where `@more` leads, if the listing is cut.
    pub(crate) async fn find_more(
        mut self,
        filesystem: &Filesystem,
    ) -> Result<Option<String>, Failure> {
        self.page = SKIPPED_PAGE;
        let limit = filesystem.options.listing_limit;
        if limit == 0 || bounds_limit(&self.directory).is_some_and(|bound| bound <= limit) {
            return Ok(None);
        }
        let Some(last) = self
            .load(filesystem, limit - 1)
            .await?
            .map(|item| item.name.clone())
        else {
            return Ok(None);
        };
        Ok(self
            .load(filesystem, limit)
            .await?
            .is_some()
            .then(|| self.more_target(&last)))
    }

    async fn load(
        &mut self,
        filesystem: &Filesystem,
        index: u64,
    ) -> Result<Option<&Item>, Failure> {
        if index < self.first {
            let (first, next) = self.checkpoints.before(index);
            (self.first, self.next, self.items) = (first, next, Vec::new());
        }
        while index >= self.first + self.items.len() as u64 {
            let after = match &self.next {
                Next::End => return Ok(None),
                Next::Start => None,
                Next::After(position) => Some(position.clone()),
            };
            let page = filesystem
                .page(&self.directory, after.as_ref(), self.page_size())
                .await?;
            self.first += self.items.len() as u64;
            self.items = page.items;
            if let Some(after) = after {
                self.checkpoints.note(self.first, after);
            }
            self.next = page.next.map_or(Next::End, Next::After);
            self.page = self.page.max(PAGE);
        }
        Ok(self.items.get((index - self.first) as usize))
    }

    /// No more than the view asks for.
    fn page_size(&self) -> u64 {
        let loaded = self.first + self.items.len() as u64;
        let left =
            bounds_limit(&self.directory).map_or(u64::MAX, |limit| limit.saturating_sub(loaded));
        self.page.min(left).max(1)
    }

    fn more_target(&self, last: &str) -> String {
        let (paging, step, argument) = match &*self.directory {
            Node::Table { rows: bounds, .. }
            | Node::Family {
                qualifiers: bounds, ..
            } => (bounds.paging, "@after", last.to_owned()),
            // Versions come newest first: the next page is what was there before the last one.
            Node::Column { paging, .. } => (*paging, "@at", before_version(last)),
            _ => (false, "@after", last.to_owned()),
        };
        if paging {
            format!("../{argument}")
        } else {
            format!("{step}/{argument}")
        }
    }
}

fn bounds_limit(directory: &Node) -> Option<u64> {
    match directory {
        Node::Table { rows: bounds, .. }
        | Node::Family {
            qualifiers: bounds, ..
        } => bounds.limit,
        _ => None,
    }
}

/// The timestamp before that of the version `name`, which is a canonical one.
fn before_version(name: &str) -> String {
    let timestamp: i64 = name.replace("%2D", "-").parse().unwrap_or(i64::MIN);
    timestamp_name(tablemount_api::Timestamp(timestamp.saturating_sub(1)))
}

/// Where pages began: at most [`MAX_CHECKPOINTS`], evenly thinned out as they become more.
#[derive(Debug, Default)]
struct Checkpoints {
    /// By index, rising.
    pages: Vec<(u64, Position)>,
    /// The least distance between two.
    stride: u64,
}

impl Checkpoints {
    fn note(&mut self, index: u64, after: Position) {
        let last = self.pages.last().map_or(0, |(last, _)| *last);
        if index < last + self.stride.max(1) {
            return;
        }
        self.pages.push((index, after));
        if self.pages.len() > MAX_CHECKPOINTS {
            let mut keep = false;
            self.pages.retain(|_| {
                keep = !keep;
                keep
            });
            let gaps = self.pages.windows(2).map(|pair| pair[1].0 - pair[0].0);
            self.stride = gaps.min().unwrap_or_default();
        }
    }

    /// The nearest place at or before `index` from which to read on.
    fn before(&self, index: u64) -> (u64, Next) {
        let found = self.pages.partition_point(|(first, _)| *first <= index);
        match found.checked_sub(1) {
            Some(at) => (self.pages[at].0, Next::After(self.pages[at].1.clone())),
            None => (0, Next::Start),
        }
    }
}

/// Where the `@more` links of directories lead that were listed lately.
#[derive(Default)]
pub(crate) struct MoreLinks {
    newest_last: parking_lot::Mutex<Vec<(Arc<Node>, String)>>,
}

impl MoreLinks {
    const MAX: usize = 64;

    fn note(&self, directory: &Arc<Node>, target: &str) {
        let mut links = self.newest_last.lock();
        links.retain(|(known, _)| known != directory);
        if links.len() >= Self::MAX {
            links.remove(0);
        }
        links.push((directory.clone(), target.to_owned()));
    }

    pub(crate) fn get(&self, directory: &Arc<Node>) -> Option<String> {
        let links = self.newest_last.lock();
        links
            .iter()
            .find(|(known, _)| known == directory)
            .map(|(_, target)| target.clone())
    }
}

#[cfg(test)]
mod tests {
    use tablemount_api::RowKey;

    use super::*;

    fn position(index: u64) -> Position {
        Position {
            row: RowKey::new(format!("{index:08}")).expect("valid"),
            cell: None,
        }
    }

    #[test]
    fn checkpoints_are_bounded_and_lead_near() {
        let mut checkpoints = Checkpoints::default();
        for page in 1..=10_000 {
            checkpoints.note(page * 10, position(page * 10));
            assert!(checkpoints.pages.len() <= MAX_CHECKPOINTS);
        }
        assert_eq!(checkpoints.before(5), (0, Next::Start));
        for index in [100, 5_000, 50_000, 100_000] {
            let (first, next) = checkpoints.before(index);
            assert!(
                first <= index && index - first <= 100_000 / 64,
                "{first} for {index}"
            );
            assert!(next == Next::After(position(first)) || (first, &next) == (0, &Next::Start));
        }
    }

    #[test]
    fn the_version_before() {
        assert_eq!(before_version("15"), "14");
        assert_eq!(before_version("0"), "%2D1");
        assert_eq!(before_version("%2D5"), "%2D6");
    }
}
