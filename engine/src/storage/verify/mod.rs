//! Checking a store as a whole: from the store's record over catalog, schemas and manifests to SSTs and log.
//!
//! ```text
//! store, server, hold │ catalog → table: schema → tablet: manifest → [`file`]: each SST │ [`log`] │ what nothing names
//! ```
//! **Invariants**: nothing is written, no lock is taken. A server may change the store meanwhile, so whatever is absent is
//! looked for again by what is newest then: it is damage only if that still names it. Memory holds one block at a time of each
//! level of a file, one segment of the log, and the paths of the files.

mod file;
mod log;
mod tablet;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tablemount_api::RowKey;

use super::cache::Shared;
use super::catalog::{
    CATALOG, Catalog, CatalogTable, SERVERS, STORE, SchemaRecord, ServerRecord, StoreRecord,
    TABLETS, schema_folder,
};
use super::disk::Disk;
use super::hold::{HOLD, HoldRecord};
use super::keys;
use super::objects::{self, Objects, numbered};
use super::resources::{RESOURCES, ResourcesRecord};
use crate::verify::{Finding, Summary};
use crate::{Error, Result};

/// A check needs few blocks at a time, and none of them twice.
const CACHE_BYTES: u64 = 64 << 10;
/// How often a record is looked for that others replace meanwhile.
const TRIES: usize = 16;

/// The keys that a tablet may hold, encoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rows {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Rows {
    fn new(start: Option<&RowKey>, stop: Option<&RowKey>) -> Self {
        let encoded = |row: &RowKey| keys::row(row.bytes());
        Self {
            from: start.map(encoded).unwrap_or_default(),
            to: stop.map(encoded),
        }
    }

    fn hold(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && self.to.as_ref().is_none_or(|to| key < to.as_slice())
    }
}

/// What the newest object of a folder is.
enum Newest<T> {
    Sound(u64, T),
    /// It was reported.
    Damaged,
    Absent,
}

/// A check under way.
struct Verifier<'a> {
    disk: Arc<dyn Disk>,
    objects: Objects,
    shared: Arc<Shared>,
    report: &'a mut dyn FnMut(Finding),
    summary: Summary,
    /// SSTs that a manifest named when it was read.
    named: BTreeSet<String>,
    /// Folders of tablets of which it is not known what they hold.
    unknown: BTreeSet<String>,
    /// Objects that were reported.
    bad: BTreeSet<String>,
    /// By tablet id.
    rows: BTreeMap<u64, Rows>,
}

/// Checks the store on a disk.
pub(crate) fn verify(disk: Arc<dyn Disk>, report: &mut dyn FnMut(Finding)) -> Result<Summary> {
    let mut verifier = Verifier {
        objects: Objects::new(disk.objects()),
        shared: Shared::new(disk.clone(), CACHE_BYTES),
        disk,
        report,
        summary: Summary::default(),
        named: BTreeSet::new(),
        unknown: BTreeSet::new(),
        bad: BTreeSet::new(),
        rows: BTreeMap::new(),
    };
    verifier.store()?;
    Ok(verifier.summary)
}

impl Verifier<'_> {
    fn store(&mut self) -> Result<()> {
        let record = self.objects.read(STORE)?.ok_or_else(|| {
            let folder = self.disk.describe();
            Error::NotFound(format!("{folder} holds no store"))
        })?;
        if let Err(bad) = objects::open::<StoreRecord>(&record) {
            self.damage(STORE, Some(0), bad.to_string());
        }
        let before = self.objects.list(TABLETS)?;
        self.newest::<HoldRecord>(HOLD)?;
        self.newest::<ResourcesRecord>(RESOURCES)?;
        match self.newest::<Catalog>(CATALOG)? {
            Newest::Sound(number, catalog) => {
                self.catalog(&numbered(CATALOG, number), &catalog)?;
                self.garbage(before)?;
            }
            Newest::Damaged => {}
            Newest::Absent => self.damage(CATALOG, None, "is missing"),
        }
        match self.newest::<ServerRecord>(SERVERS)? {
            Newest::Sound(..) => self.log(),
            Newest::Damaged => Ok(()),
            Newest::Absent => {
                self.damage(SERVERS, None, "is missing");
                Ok(())
            }
        }
    }

    fn catalog(&mut self, path: &str, catalog: &Catalog) -> Result<()> {
        let mut ids = BTreeSet::new();
        for (name, table) in &catalog.tables {
            self.summary.tables += 1;
            let starts: Vec<_> = table.tablets.iter().map(|tablet| &tablet.start).collect();
            if starts.first().is_none_or(|first| first.is_some())
                || starts.windows(2).any(|pair| pair[0] >= pair[1])
            {
                let what = format!("table \"{name}\": its tablets do not cover all rows in order");
                self.damage(path, Some(0), what);
            }
            for tablet in &table.tablets {
                if !ids.insert(tablet.id) || tablet.id >= catalog.next_tablet {
                    let what = format!(
                        "table \"{name}\": tablet {} has no id of its own",
                        tablet.id
                    );
                    self.damage(path, Some(0), what);
                }
            }
            self.table(name, table)?;
        }
        Ok(())
    }

    fn table(&mut self, name: &str, table: &CatalogTable) -> Result<()> {
        let folder = schema_folder(table.uid);
        match self.newest::<SchemaRecord>(&folder)? {
            Newest::Sound(number, schema) => {
                let path = numbered(&folder, number);
                let known = |id: u64| schema.families.iter().filter(|f| f.id == id).count() == 1;
                let sound = |id: u64| id < schema.next_family && known(id);
                if schema.name.as_str() != name {
                    self.damage(&path, Some(0), format!("is of table \"{}\"", schema.name));
                }
                if !schema.families.iter().all(|family| sound(family.id)) {
                    self.damage(&path, Some(0), "two families have one id");
                }
            }
            Newest::Damaged => {}
            Newest::Absent if !self.has_table(name, table)? => return Ok(()),
            Newest::Absent => self.damage(&folder, None, "is missing"),
        }
        let stops = table
            .tablets
            .iter()
            .skip(1)
            .map(|tablet| tablet.start.as_ref());
        for (tablet, stop) in table.tablets.iter().zip(stops.chain([None])) {
            self.summary.tablets += 1;
            let rows = Rows::new(tablet.start.as_ref(), stop);
            self.rows.insert(tablet.id, rows.clone());
            self.tablet(name, table, tablet.id, &rows)?;
        }
        Ok(())
    }

    /// Whether the catalog, as it is now, has the table.
    fn has_table(&mut self, name: &str, table: &CatalogTable) -> Result<bool> {
        Ok(match self.newest::<Catalog>(CATALOG)? {
            Newest::Sound(_, catalog) => {
                let now = catalog.tables.get(name);
                now.is_some_and(|now| now.uid == table.uid)
            }
            Newest::Damaged | Newest::Absent => true,
        })
    }

    /// Tells of files that were there from the start of the check to its end without a manifest that names them.
    fn garbage(&mut self, before: Vec<(String, u64)>) -> Result<()> {
        let now: BTreeSet<String> = self
            .objects
            .list(TABLETS)?
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        for (path, bytes) in before {
            let folder = path.split('/').nth(1).unwrap_or_default();
            let counts = path.contains("/sst/") && !self.unknown.contains(folder);
            if counts && now.contains(&path) && !self.named.contains(&path) {
                let what = format!(
                    "{bytes} bytes that no manifest names; they go at a start of the server"
                );
                self.note(&path, what);
            }
        }
        Ok(())
    }

    /// The newest object of a folder, checked.
    fn newest<T: DeserializeOwned>(&mut self, folder: &str) -> Result<Newest<T>> {
        for _ in 0..TRIES {
            let Some(number) = self.objects.newest_number(folder)? else {
                return Ok(Newest::Absent);
            };
            let path = numbered(folder, number);
            // Replaced between the two: then there is a newer one.
            let Some(bytes) = self.objects.read(&path)? else {
                continue;
            };
            return Ok(match objects::open(&bytes) {
                Ok(content) => Newest::Sound(number, content),
                Err(bad) => {
                    if self.bad.insert(path.clone()) {
                        self.damage(&path, Some(0), bad.to_string());
                    }
                    Newest::Damaged
                }
            });
        }
        Err(Error::Unavailable(format!(
            "{folder} changes too fast to be read"
        )))
    }

    fn damage(&mut self, path: &str, offset: Option<u64>, what: impl Into<String>) {
        self.summary.findings += 1;
        self.tell(path, offset, what.into(), false);
    }

    fn note(&mut self, path: &str, what: String) {
        self.summary.notes += 1;
        self.tell(path, None, what, true);
    }

    fn tell(&mut self, path: &str, offset: Option<u64>, what: String, note: bool) {
        let path = path.to_owned();
        (self.report)(Finding {
            path,
            offset,
            what,
            note,
        });
    }
}
