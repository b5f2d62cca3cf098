//! From a directory and a name to a node that exists: [`crate::path`] says what it would be, the engine whether it is there.

use std::ffi::OsStr;
use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::name::{LongName, encode};
use tablemount_api::{Base64, CellContent, ReadRequest};
use tracing::warn;

use crate::errno::Failure;
use crate::fetch::{row_key, scoped};
use crate::filesystem::Filesystem;
use crate::listing::Listing;
use crate::node::{Node, View};
use crate::path::{Step, fill, parse};
use crate::stat::Stat;

/// How far the key behind a long name is looked for: pages of a scan over the keys with its prefix.
const PAGES_SEARCHED: usize = 16;
const KEYS_A_PAGE: u64 = 10_000;

impl Filesystem {
    /// What `name` in `parent` is.
    pub(crate) async fn resolve(
        &self,
        parent: &Arc<Node>,
        name: &OsStr,
    ) -> Result<(Node, Stat), Failure> {
        if let Node::View(base, View::Tablet) = &**parent {
            return self.tablet(base, name).await;
        }
        match parse(parent, name).ok_or(Failure::Absent)? {
            Step::Child(node) => {
                let stat = self.stat(&node).await?;
                Ok((node, stat))
            }
            Step::Alias { name, node } => {
                let modified = self.stat(&node).await?.modified;
                let stat = Stat::link(&name, modified);
                Ok((Node::Link(name), stat))
            }
            Step::Long(long) => {
                let key = self.key_of(parent, name, &long).await?;
                let node = fill(parent, key).ok_or(Failure::Absent)?;
                let stat = self.stat(&node).await?;
                Ok((node, stat))
            }
            Step::More => {
                let target = self.more(parent).await?;
                let stat = Stat::link(&target, self.stat(parent).await?.modified);
                Ok((Node::Link(target), stat))
            }
        }
    }

    /// The key behind a long name: shown lately, or among the first keys with its prefix.
    async fn key_of(&self, parent: &Node, name: &OsStr, long: &LongName) -> Result<Bytes, Failure> {
        let name = name.to_str().ok_or(Failure::Absent)?;
        if let Some(key) = self.long_names.get(name) {
            return Ok(key);
        }
        let base = match parent {
            Node::View(base, _) => base,
            other => other,
        };
        let found = match base {
            Node::Table { .. } => self.search_rows(base, long).await?,
            Node::Family { .. } => self.search_qualifiers(base, long).await?,
            _ => return Err(Failure::Absent),
        };
        match found {
            Some(key) => {
                self.long_names.note(name, &key);
                Ok(key)
            }
            None => {
                warn!(
                    name,
                    "no key with this name among the first with its prefix; list the directory to find it"
                );
                Err(Failure::Absent)
            }
        }
    }

    async fn search_rows(&self, table: &Node, long: &LongName) -> Result<Option<Bytes>, Failure> {
        let Node::Table { scope, .. } = table else {
            return Ok(None);
        };
        let mut request = ReadRequest {
            prefix: Some(Base64(long.prefix.clone().into())),
            cells: CellContent::None,
            row_limit: Some(KEYS_A_PAGE),
            ..scoped(scope)
        };
        for _ in 0..PAGES_SEARCHED {
            let page = self.remote.read_page(&scope.table, &request).await?;
            let keys = page.rows.into_iter().map(|row| row.row.into_bytes());
            if let Some(key) = { keys }.find(|key| long.matches(key)) {
                return Ok(Some(key));
            }
            if page.next.is_none() {
                break;
            }
            request.after = page.next;
        }
        Ok(None)
    }

    async fn search_qualifiers(
        &self,
        family: &Node,
        long: &LongName,
    ) -> Result<Option<Bytes>, Failure> {
        let Node::Family { family, .. } = family else {
            return Ok(None);
        };
        let scope = &family.row.scope;
        let mut request = ReadRequest {
            row: Some(row_key(&family.row.key)?),
            families: vec![family.family.clone()],
            qualifier_prefix: Some(Base64(long.prefix.clone().into())),
            cells: CellContent::Lengths,
            versions: Some(1),
            cell_limit: Some(KEYS_A_PAGE),
            ..scoped(scope)
        };
        for _ in 0..PAGES_SEARCHED {
            let page = self.remote.read_page(&scope.table, &request).await?;
            let cells = page.rows.into_iter().flat_map(|row| row.cells);
            if let Some(key) = cells
                .map(|cell| cell.qualifier.into_bytes())
                .find(|key| long.matches(key))
            {
                return Ok(Some(key));
            }
            if page.next.is_none() {
                break;
            }
            request.after = page.next;
        }
        Ok(None)
    }

    /// Where `@more` of a directory leads, if its listing is cut.
    async fn more(&self, directory: &Arc<Node>) -> Result<String, Failure> {
        match self.more_links.get(directory) {
            Some(target) => Ok(target),
            None => Listing::new(directory.clone())
                .find_more(self)
                .await?
                .ok_or(Failure::Absent),
        }
    }

    /// `@tablet/ID`: a link to the tablet's range.
    async fn tablet(&self, table: &Node, id: &OsStr) -> Result<(Node, Stat), Failure> {
        let id = id.to_str().ok_or(Failure::Absent)?;
        let mut tablets = self.tablet_links(table).await?.into_iter();
        let (_, target) = tablets
            .find(|(known, _)| known == id)
            .ok_or(Failure::Absent)?;
        let stat = Stat::link(&target, self.mounted);
        Ok((Node::Link(target), stat))
    }

    /// The table's tablets by id, and where their links lead.
    pub(crate) async fn tablet_links(
        &self,
        table: &Node,
    ) -> Result<Vec<(String, String)>, Failure> {
        let Node::Table { scope, .. } = table else {
            return Err(Failure::Absent);
        };
        let stats = self.remote.table_stats(&scope.table).await?;
        let name = |key: Option<tablemount_api::RowKey>| {
            encode(key.as_ref().map_or(&[][..], |key| key.as_ref()))
        };
        let link = |tablet: tablemount_api::stats::TabletStats| {
            (
                tablet.id.to_string(),
                format!("../@range/{}/{}", name(tablet.start), name(tablet.stop)),
            )
        };
        Ok(stats.tablets.into_iter().map(link).collect())
    }
}
