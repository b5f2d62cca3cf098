//! What directories list, a page at a time.
//!
//! Tables of rows, families of many qualifiers and columns of many versions are read page by page; what came with a row
//! anyway is listed without a request.

use tablemount_api::{CellContent, Position, Qualifier, ReadRequest, RowKey, Timestamp};
use tablemount_client::Page as ReadPage;

use crate::bounds::Bounds;
use crate::errno::Failure;
use crate::fetch::{row_key, scoped};
use crate::filesystem::Filesystem;
use crate::node::{Column, Family, Generated, Node, Row, View};
use crate::path::{listed_name, timestamp_name};
use crate::place::{Edge, Place};
use crate::stat::Stat;
use crate::tables::family_id;
use crate::window::{Content, Window};

/// A name in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) node: Node,
    pub(crate) stat: Stat,
}

/// Some of a directory's names, in order.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) items: Vec<Item>,
    /// Where the next page starts; `None`: no more.
    pub(crate) next: Option<Position>,
}

impl Filesystem {
    /// The directory's names after `after`, at most about `limit`.
    pub(crate) async fn page(
        &self,
        directory: &Node,
        after: Option<&Position>,
        limit: u64,
    ) -> Result<Page, Failure> {
        match directory {
            Node::Root => self.table_names().await,
            Node::Table { rows, .. }
            | Node::Family {
                qualifiers: rows, ..
            } if rows.is_void() => Ok(Page::default()),
            Node::Table { .. } => self.row_names(directory, after, limit).await,
            Node::Row(row) => self.family_names(row).await,
            Node::Family { family, qualifiers } => {
                self.qualifier_names(directory, family, qualifiers, after, limit)
                    .await
            }
            Node::Column { column, .. } => {
                self.version_names(directory, column, after, limit).await
            }
            Node::View(table, View::Tablet) => self.tablet_names(table).await,
            // Its names are whatever argument the view takes.
            Node::View(..) => Ok(Page::default()),
            Node::Cell(..)
            | Node::Newest(_)
            | Node::Latest(_)
            | Node::Link(_)
            | Node::Generated(..) => Err(Failure::NotDirectory),
        }
    }

    async fn table_names(&self) -> Result<Page, Failure> {
        let tables = self.facts.tables.list().await?;
        let item = |info: &tablemount_api::TableInfo| {
            let node = Node::table(info.name.clone());
            Some(Item {
                name: listed_name(&node)?,
                node,
                stat: Stat::directory(info.created),
            })
        };
        let mut items: Vec<_> = tables.iter().filter_map(|info| item(info)).collect();
        let help = Node::Generated(Box::new(Node::Root), Generated::Help);
        let stat = self.stat(&help).await?;
        items.push(Item {
            name: "@help".to_owned(),
            node: help,
            stat,
        });
        Ok(Page { items, next: None })
    }

    async fn row_names(
        &self,
        table: &Node,
        after: Option<&Position>,
        limit: u64,
    ) -> Result<Page, Failure> {
        let Node::Table { scope, rows } = table else {
            return Err(Failure::NotDirectory);
        };
        let created = self.facts.tables.recent(&scope.table).await?.created;
        let fetched = self.facts.clock.now();
        let start = (!rows.start.is_empty())
            .then(|| RowKey::new(rows.start.clone()))
            .transpose();
        // Beyond the longest key there is none.
        let Ok(start) = start else {
            return Ok(Page::default());
        };
        let request = ReadRequest {
            start,
            stop: rows.stop.as_ref().map(row_key).transpose()?,
            reverse: rows.reverse,
            after: after.cloned(),
            cells: CellContent::None,
            row_limit: Some(limit),
            ..scoped(scope)
        };
        let page = self.remote.read_page(&scope.table, &request).await?;
        self.facts.tables.confirm(&scope.table, fetched);
        let next = page.next.clone();
        let mut keys: Vec<_> = page
            .rows
            .into_iter()
            .map(|row| row.row.into_bytes())
            .collect();
        let items = keys
            .iter()
            .filter_map(|key| self.item(table.row_child(key.clone())?, Stat::directory(created)));
        let items = items.collect();
        if rows.reverse {
            keys.reverse();
        }
        let (low, high) = key_edges(rows, after, next.as_ref());
        let content = Content::Keys(keys);
        self.facts.note(Window {
            scope: (**scope).clone(),
            fetched,
            low,
            high,
            content,
        });
        Ok(Page { items, next })
    }

    async fn family_names(&self, row: &Row) -> Result<Page, Failure> {
        let known = self
            .facts
            .all_cells(&row.scope, &Place::row(row.key.clone()))
            .await?;
        // Asked for after the cells, since what they told may have renewed it.
        let info = self.facts.tables.recent(&row.scope.table).await?;
        let has: Vec<u64> = match known {
            Some(cells) => cells.iter().map(|cell| cell.family).collect(),
            None => {
                let request = ReadRequest {
                    row: Some(row_key(&row.key)?),
                    cells: CellContent::Lengths,
                    versions: Some(1),
                    columns_per_family: Some(1),
                    ..scoped(&row.scope)
                };
                let page = self.remote.read_page(&row.scope.table, &request).await?;
                let cells = page.rows.into_iter().flat_map(|row| row.cells);
                cells
                    .filter_map(|cell| family_id(&info, &cell.family))
                    .collect()
            }
        };
        if has.is_empty() {
            return Err(Failure::Absent);
        }
        let parent = Node::Row(row.clone());
        let families = info
            .families
            .iter()
            .filter(|family| has.contains(&family.id));
        let items = families.filter_map(|family| {
            self.item(
                parent.family_child(family.schema.name.clone())?,
                Stat::directory(info.created),
            )
        });
        Ok(Page {
            items: items.collect(),
            next: None,
        })
    }

    async fn qualifier_names(
        &self,
        directory: &Node,
        family: &Family,
        bounds: &Bounds,
        after: Option<&Position>,
        limit: u64,
    ) -> Result<Page, Failure> {
        let scope = &family.row.scope;
        let item = |qualifier: bytes::Bytes, timestamp: i64, length: u64| {
            let node = directory.column_child(qualifier)?;
            let modified = Timestamp(timestamp);
            let stat = match &node {
                Node::Newest(_) => Stat {
                    kind: node.kind(),
                    size: length,
                    modified,
                },
                _ => Stat::directory(modified),
            };
            self.item(node, stat)
        };
        if after.is_none() {
            let place = self.facts.family_place(family).await?;
            if let Some(mut cells) = self.facts.all_cells(scope, &place).await? {
                // The newest version of each column comes first.
                cells.dedup_by(|cell, before| cell.qualifier == before.qualifier);
                let items = cells
                    .into_iter()
                    .filter_map(|cell| item(cell.qualifier, cell.timestamp, cell.length));
                return Ok(Page {
                    items: items.collect(),
                    next: None,
                });
            }
        }
        let request = ReadRequest {
            after: after.cloned(),
            cell_limit: Some(limit),
            ..columns(family, bounds)?
        };
        let page = self.remote.read_page(&scope.table, &request).await?;
        let cells = page.rows.into_iter().flat_map(|row| row.cells);
        let items = cells.filter_map(|cell| {
            item(
                cell.qualifier.into_bytes(),
                cell.timestamp.0,
                cell.length.unwrap_or_default(),
            )
        });
        Ok(Page {
            items: items.collect(),
            next: page.next,
        })
    }

    async fn version_names(
        &self,
        directory: &Node,
        column: &Column,
        after: Option<&Position>,
        limit: u64,
    ) -> Result<Page, Failure> {
        let scope = &column.family.row.scope;
        let place = self.facts.column_place(column).await?;
        let (versions, next) = match after {
            None => match self.facts.all_cells(scope, &place).await? {
                Some(cells) => (
                    cells
                        .into_iter()
                        .map(|cell| (cell.timestamp, cell.length))
                        .collect(),
                    None,
                ),
                None => self.version_page(column, after, limit).await?,
            },
            Some(_) => self.version_page(column, after, limit).await?,
        };
        let mut items = Vec::with_capacity(versions.len() + 1);
        match versions.first() {
            Some((newest, _)) if after.is_none() => {
                let newest = Timestamp(*newest);
                let stat = Stat::link(&timestamp_name(newest), newest);
                items.extend(self.item(Node::Latest(column.clone()), stat));
            }
            None if after.is_none() => return Err(Failure::Absent),
            _ => {}
        }
        items.extend(versions.into_iter().filter_map(|(timestamp, size)| {
            let node = directory.version_child(Timestamp(timestamp))?;
            let stat = Stat {
                kind: node.kind(),
                size,
                modified: Timestamp(timestamp),
            };
            self.item(node, stat)
        }));
        Ok(Page { items, next })
    }

    async fn version_page(
        &self,
        column: &Column,
        after: Option<&Position>,
        limit: u64,
    ) -> Result<(Vec<(i64, u64)>, Option<Position>), Failure> {
        let family = &column.family;
        let request = ReadRequest {
            row: Some(row_key(&family.row.key)?),
            families: vec![family.family.clone()],
            qualifier: Qualifier::new(column.qualifier.clone()).ok(),
            after: after.cloned(),
            cells: CellContent::Lengths,
            cell_limit: Some(limit),
            ..scoped(&family.row.scope)
        };
        let ReadPage { rows, next } = self
            .remote
            .read_page(&family.row.scope.table, &request)
            .await?;
        let cells = rows.into_iter().flat_map(|row| row.cells);
        Ok((
            cells
                .map(|cell| (cell.timestamp.0, cell.length.unwrap_or_default()))
                .collect(),
            next,
        ))
    }

    async fn tablet_names(&self, table: &Node) -> Result<Page, Failure> {
        let links = self.tablet_links(table).await?.into_iter();
        let item = |(name, target): (String, String)| Item {
            stat: Stat::link(&target, self.mounted),
            node: Node::Link(target),
            name,
        };
        Ok(Page {
            items: links.map(item).collect(),
            next: None,
        })
    }

    /// A listed node, whose key is remembered if its name does not hold it.
    fn item(&self, node: Node, stat: Stat) -> Option<Item> {
        let name = listed_name(&node)?;
        match &node {
            Node::Row(row) => self.long_names.note(&name, &row.key),
            Node::Column { column, .. } | Node::Newest(column) => {
                self.long_names.note(&name, &column.qualifier)
            }
            _ => {}
        }
        Some(Item { name, node, stat })
    }
}

/// A request for the newest version of each of a family's columns inside `bounds`.
fn columns(family: &Family, bounds: &Bounds) -> Result<ReadRequest, Failure> {
    let stop = bounds.stop.clone();
    Ok(ReadRequest {
        row: Some(row_key(&family.row.key)?),
        families: vec![family.family.clone()],
        qualifier_start: Qualifier::new(bounds.start.clone()).ok(),
        qualifier_stop: stop.and_then(|stop| Qualifier::new(stop).ok()),
        cells: CellContent::Lengths,
        versions: Some(1),
        ..scoped(&family.row.scope)
    })
}

/// Between which edges a page of row keys is complete, the lower one first.
fn key_edges(
    rows: &Bounds,
    after: Option<&Position>,
    next: Option<&Position>,
) -> (Option<Edge>, Option<Edge>) {
    let place = |key: &RowKey| Place::row(key.bytes().clone());
    let start = (!rows.start.is_empty()).then(|| Place::row(rows.start.clone()).before());
    let stop = rows.stop.clone().map(|stop| Place::row(stop).before());
    if rows.reverse {
        let high = after.map(|after| place(&after.row).before()).or(stop);
        let low = next.map(|next| place(&next.row).before()).or(start);
        (low, high)
    } else {
        let low = after.map(|after| place(&after.row).after()).or(start);
        let high = next.map(|next| place(&next.row).after()).or(stop);
        (low, high)
    }
}
