//! What a path stands for. A node says all that is needed to answer for it; nothing is looked up to make one.

use std::sync::Arc;

use bytes::Bytes;
use tablemount_api::{FamilyName, Qualifier, RowKey, TableName, Timestamp};

use crate::bounds::Bounds;
use crate::window::Scope;

/// A row, as a view shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) scope: Arc<Scope>,
    pub(crate) key: Bytes,
}

/// A row's cells in one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) row: Row,
    pub(crate) family: FamilyName,
}

/// The versions of one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) family: Family,
    pub(crate) qualifier: Bytes,
}

/// A file, directory or symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    /// The mount point: tables.
    Root,
    /// A table: rows.
    Table { scope: Arc<Scope>, rows: Bounds },
    /// A row: families.
    Row(Row),
    /// A family in a row: qualifiers.
    Family { family: Family, qualifiers: Bounds },
    /// A column: its versions. `paging` if the path's last step is `@at`, so that the next page's link leads beside it.
    Column { column: Column, paging: bool },
    /// A version: its value.
    Cell(Column, Timestamp),
    /// A column where views show one version only: the newest value.
    Newest(Column),
    /// `latest` in a column: a link to the newest version.
    Latest(Column),
    /// Another spelling of a name, or the next page: a link.
    Link(String),
    /// `@at`, `@prefix` and so on, whose argument comes next in the path.
    View(Box<Node>, View),
    /// A file that is made when it is read.
    Generated(Box<Node>, Generated),
}

/// A view that takes an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum View {
    At,
    Prefix,
    RangeStart,
    RangeStop { start: Bytes },
    After,
    Limit,
    Tablet,
}

/// A file that is made when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generated {
    Help,
    ServerStats,
    Config,
    Schema,
    TableStats,
    RowJson,
}

/// What a node is to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
    Link,
}

impl Node {
    /// The table `table` as it is.
    pub(crate) fn table(table: TableName) -> Self {
        let scope = Scope {
            table,
            at: None,
            latest: false,
            reverse: false,
        };
        Self::Table {
            scope: Arc::new(scope),
            rows: Bounds::default(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Root
            | Self::Table { .. }
            | Self::Row(_)
            | Self::Family { .. }
            | Self::Column { .. }
            | Self::View(..) => Kind::Directory,
            Self::Cell(..) | Self::Newest(_) | Self::Generated(..) => Kind::File,
            Self::Latest(_) | Self::Link(_) => Kind::Link,
        }
    }

    /// The row the node is of or in.
    pub(crate) fn row(&self) -> Option<&Row> {
        match self {
            Self::Row(row) => Some(row),
            Self::Family { family, .. } => Some(&family.row),
            Self::Column { column, .. }
            | Self::Cell(column, _)
            | Self::Newest(column)
            | Self::Latest(column) => Some(&column.family.row),
            Self::Root
            | Self::Table { .. }
            | Self::Link(_)
            | Self::View(..)
            | Self::Generated(..) => None,
        }
    }

    /// The column the node is of or in.
    pub(crate) fn column(&self) -> Option<&Column> {
        match self {
            Self::Column { column, .. }
            | Self::Cell(column, _)
            | Self::Newest(column)
            | Self::Latest(column) => Some(column),
            _ => None,
        }
    }

    /// What is inside a table, row, family or column, seen in another scope.
    fn rescoped(&self, change: impl FnOnce(&mut Scope)) -> Option<Self> {
        let mut node = self.clone();
        let scope = match &mut node {
            Self::Table { scope, .. } => scope,
            Self::Row(row) => &mut row.scope,
            Self::Family { family, .. } => &mut family.row.scope,
            Self::Column { column, .. } => &mut column.family.row.scope,
            _ => return None,
        };
        change(Arc::make_mut(scope));
        Some(node)
    }

    /// The same, showing only versions with a timestamp of at most `at`.
    pub(crate) fn at(&self, at: Timestamp) -> Option<Self> {
        let mut node =
            self.rescoped(|scope| scope.at = Some(scope.at.map_or(at, |before| before.min(at))))?;
        match &mut node {
            Self::Table { rows: bounds, .. }
            | Self::Family {
                qualifiers: bounds, ..
            } => bounds.paging = false,
            Self::Column { paging, .. } => *paging = true,
            _ => {}
        }
        Some(node)
    }

    /// The same, one level shorter: qualifiers are files with the newest value.
    pub(crate) fn latest(&self) -> Option<Self> {
        if matches!(self, Self::Column { .. }) {
            return None;
        }
        let mut node = self.rescoped(|scope| scope.latest = true)?;
        if let Self::Table { rows: bounds, .. }
        | Self::Family {
            qualifiers: bounds, ..
        } = &mut node
        {
            bounds.paging = false;
        }
        Some(node)
    }

    /// The same from the last row to the first.
    pub(crate) fn reversed(&self) -> Option<Self> {
        let Self::Table { rows, .. } = self else {
            return None;
        };
        let rows = rows.clone().reverse();
        let Self::Table { scope, .. } = self.rescoped(|scope| scope.reverse = rows.reverse)? else {
            return None;
        };
        Some(Self::Table { scope, rows })
    }

    /// The same, listing fewer keys; `change` is given the bounds so far and the most bytes a key has.
    pub(crate) fn bounded(&self, change: impl FnOnce(Bounds, usize) -> Bounds) -> Option<Self> {
        match self.clone() {
            Self::Table { scope, rows } => Some(Self::Table {
                scope,
                rows: change(rows, RowKey::MAX_BYTES),
            }),
            Self::Family { family, qualifiers } => Some(Self::Family {
                family,
                qualifiers: change(qualifiers, Qualifier::MAX_BYTES),
            }),
            _ => None,
        }
    }

    /// The row `key` of a table, if the view shows it.
    pub(crate) fn row_child(&self, key: Bytes) -> Option<Self> {
        match self {
            Self::Table { scope, rows }
                if rows.contains(&key) && RowKey::new(key.clone()).is_ok() =>
            {
                Some(Self::Row(Row {
                    scope: scope.clone(),
                    key,
                }))
            }
            _ => None,
        }
    }

    /// The family `family` of a row.
    pub(crate) fn family_child(&self, family: FamilyName) -> Option<Self> {
        let Self::Row(row) = self else { return None };
        Some(Self::Family {
            family: Family {
                row: row.clone(),
                family,
            },
            qualifiers: Bounds::default(),
        })
    }

    /// The column `qualifier` of a family, if the view shows it.
    pub(crate) fn column_child(&self, qualifier: Bytes) -> Option<Self> {
        match self {
            Self::Family { family, qualifiers }
                if qualifiers.contains(&qualifier) && Qualifier::new(qualifier.clone()).is_ok() =>
            {
                let column = Column {
                    family: family.clone(),
                    qualifier,
                };
                Some(match column.family.row.scope.latest {
                    true => Self::Newest(column),
                    false => Self::Column {
                        column,
                        paging: false,
                    },
                })
            }
            _ => None,
        }
    }

    /// The version with `timestamp` of a column, if the view shows it.
    pub(crate) fn version_child(&self, timestamp: Timestamp) -> Option<Self> {
        match self {
            Self::Column { column, .. }
                if column.family.row.scope.at.is_none_or(|at| timestamp <= at) =>
            {
                Some(Self::Cell(column.clone(), timestamp))
            }
            _ => None,
        }
    }
}
