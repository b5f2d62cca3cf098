//! Opening a store: who owns it, what it holds, what the log adds, and a new start of the server.
//!
//! ```text
//! lock → store record (or create) → catalog, schemas, manifests, SSTs → replay the log → untouched segment → server record (epoch)
//!      → flush what was replayed → remove old segments and garbage → serve
//! ```
//! **Invariants**: a missing log is refused, never replaced; nothing is written before the log was read without fault; a
//! read-only opening writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tablemount_api::RowKey;

use super::catalog::{
    CATALOG, Catalog, CatalogTable, Manifest, SERVERS, STORE, SchemaRecord, ServerRecord,
    StoreRecord, TABLES, TABLETS, manifest_folder, schema_folder, sst_epoch,
};
use super::disk::Disk;
use super::hold::HOLD;
use super::log::frame::SegmentHeader;
use super::log::recovery::{OnCorruption, Recovered, replay};
use super::log::segment::{Segment, remove_segment};
use super::log::{self, CommitLog};
use super::objects::{self, Created, Objects};
use super::resources::RESOURCES;
use super::store::{Options, Store};
use super::table::Table;
use super::tablet::Tablet;
use crate::clock::Clock;
use crate::{Error, Result};

/// What a new store may find in its folder: a lost+found, our lock, and what an interrupted creation left.
const BEFORE_CREATION: [&str; 5] = ["lock", "lost+found", "logs", "servers", "catalog"];

/// Opens the store, creating it in an empty folder.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    options: Options,
    read_only: bool,
) -> Result<Store> {
    let objects = Objects::new(disk.objects());
    let record = match objects.read(STORE)? {
        Some(bytes) => objects::decode(STORE, &bytes)?,
        None if read_only => {
            return Err(Error::NotFound(format!(
                "{} holds no store",
                disk.describe()
            )));
        }
        None => create(disk.as_ref(), &objects, &options)?,
    };
    let StoreRecord { store_id } = record;
    let missing = |what: &str| Error::Corrupt(format!("{}: {what} is missing", disk.describe()));
    let (epoch, server) = objects
        .newest::<ServerRecord>(SERVERS)?
        .ok_or_else(|| missing(SERVERS))?;
    let catalog = objects
        .newest::<Catalog>(CATALOG)?
        .ok_or_else(|| missing(CATALOG))?;
    let hold = objects.newest(HOLD)?.unwrap_or_default();
    let resources = objects.newest(RESOURCES)?.unwrap_or_default();
    let my_epoch = if read_only { epoch } else { epoch + 1 };
    let mut store = Store::new(
        disk, objects, clock, options, store_id, my_epoch, server.log, catalog,
    );
    *store.hold.get_mut() = hold;
    *store.resources.get_mut() = resources;
    store.load_tables()?;
    let on_corruption = if read_only {
        OnCorruption::StopThere
    } else {
        OnCorruption::Refuse
    };
    let recovered = store.replay(&server, on_corruption)?;
    if !read_only {
        store.begin_epoch(&recovered)?;
    }
    Ok(store)
}

/// Creates a store; the record that is put last makes it one.
fn create(disk: &dyn Disk, objects: &Objects, options: &Options) -> Result<StoreRecord> {
    let names = disk
        .list("")
        .map_err(|error| Error::Io(format!("data folder {}: list: {error}", disk.describe())))?;
    let ours = |name: &str| BEFORE_CREATION.contains(&name) || name.starts_with("store#");
    let empty = |(number, catalog): (u64, Catalog)| number == 1 && catalog.tables.is_empty();
    let begun = objects.newest::<Catalog>(CATALOG)?.is_none_or(empty);
    let other = names.iter().map(String::as_str).find(|name| !ours(name));
    if let Some(other) = other.or((!begun).then_some(CATALOG)) {
        return Err(Error::Precondition(format!(
            "data folder {} holds \"{other}\" but no store; give an empty folder, or one that a store was created in",
            disk.describe()
        )));
    }
    objects.remove_all(CATALOG)?;
    let log = options.ids.next();
    for (folder, parent) in [("logs".to_owned(), ""), (log::folder(log), "logs")] {
        let created = disk
            .create_folder(&folder)
            .and_then(|()| disk.sync_folder(parent));
        created.map_err(|error| Error::Io(format!("create {folder}: {error}")))?;
    }
    let header = SegmentHeader {
        log,
        first_group: 1,
    };
    Segment::create(disk, header, 1, options.segment_bytes)?;
    let epoch = objects
        .newest::<ServerRecord>(SERVERS)?
        .map_or(1, |(epoch, _)| epoch + 1);
    objects.create_numbered(SERVERS, epoch, &ServerRecord { log, segment: 1 })?;
    let catalog = Catalog {
        epoch,
        next_tablet: 1,
        tables: BTreeMap::new(),
    };
    let record = StoreRecord {
        store_id: options.ids.next(),
    };
    objects.create_numbered(CATALOG, 1, &catalog)?;
    match objects.create(STORE, &objects::encode(&record)?.into())? {
        Created::Won => Ok(record),
        Created::Lost => Err(Error::Precondition(format!(
            "{} was created by another process",
            disk.describe()
        ))),
    }
}

/// That counting on from what the newest object of a folder says does not overflow.
fn check_number(folder: &str, name: &str, number: u64) -> Result<()> {
    match number {
        ..=objects::MAX_NUMBER => Ok(()),
        _ => Err(Error::Corrupt(format!(
            "{folder}: {name} is {number}; limit is {}",
            objects::MAX_NUMBER
        ))),
    }
}

impl Store {
    fn load_tables(&mut self) -> Result<()> {
        let catalog = self.admin.lock().1.clone();
        check_number(CATALOG, "nextTablet", catalog.next_tablet)?;
        let mut tables = BTreeMap::new();
        for (name, entry) in &catalog.tables {
            tables.insert(name.clone(), Arc::new(self.load_table(name, entry)?));
        }
        self.tables.store(Arc::new(tables));
        Ok(())
    }

    fn load_table(&self, name: &str, entry: &CatalogTable) -> Result<Table> {
        let folder = schema_folder(entry.uid);
        let missing = |what: &str| Error::Corrupt(format!("table \"{name}\": {what} is missing"));
        let newest = self.objects.newest::<SchemaRecord>(&folder)?;
        let (version, record) = newest.ok_or_else(|| missing(&folder))?;
        check_number(&folder, "nextFamily", record.next_family)?;
        let stops = entry
            .tablets
            .iter()
            .skip(1)
            .map(|tablet| tablet.start.clone())
            .chain([None]);
        let mut tablets = Vec::new();
        for (tablet, stop) in entry.tablets.iter().zip(stops) {
            tablets.push(Arc::new(self.load_tablet(
                &record,
                tablet.id,
                tablet.start.clone(),
                stop,
            )?));
        }
        Ok(Table::new(entry.uid, tablets, version, record))
    }

    fn load_tablet(
        &self,
        schema: &SchemaRecord,
        id: u64,
        start: Option<RowKey>,
        stop: Option<RowKey>,
    ) -> Result<Tablet> {
        let folder = manifest_folder(id);
        let newest = self.objects.newest::<Manifest>(&folder)?;
        let (number, manifest) =
            newest.ok_or_else(|| Error::Corrupt(format!("{folder} is missing")))?;
        check_number(&folder, "flushedSequence", manifest.flushed_sequence)?;
        let mut files = BTreeMap::new();
        for family in &schema.families {
            let metas = manifest.files.get(&family.id).into_iter().flatten();
            let open = metas.map(|meta| self.open_sst(meta.clone()));
            files.insert(family.id, open.collect::<Result<Vec<_>>>()?);
        }
        Ok(Tablet::new(id, start, stop, number, manifest, files))
    }

    fn replay(&mut self, server: &ServerRecord, on_corruption: OnCorruption) -> Result<Recovered> {
        let tablets: BTreeMap<u64, Arc<Tablet>> = self
            .tablets()
            .into_iter()
            .map(|(_, tablet)| (tablet.id, tablet))
            .collect();
        let flushed: BTreeMap<u64, u64> = tablets
            .iter()
            .map(|(id, tablet)| (*id, tablet.flushed_sequence()))
            .collect();
        let (start, mut bytes, mut read) = (Instant::now(), 0, 0);
        let recovered = replay(
            &self.disk,
            server.log,
            server.segment,
            on_corruption,
            |record| {
                read += record.bytes() as u64;
                let Some(tablet) = tablets.get(&record.tablet) else {
                    return;
                };
                tablet.saw_timestamp(record.server_timestamp);
                if record.first_sequence > flushed[&record.tablet] {
                    bytes += tablet.state().active.apply(&record);
                }
            },
        )?;
        self.activity.replayed(read, start.elapsed());
        if let Some(corruption) = &recovered.corruption {
            tracing::warn!(
                corruption,
                "the store is open read-only up to a corruption of its log"
            );
        }
        self.memtable_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.recovered_sequence = flushed
            .into_values()
            .fold(recovered.last_sequence, u64::max);
        Ok(recovered)
    }

    /// Starts a new segment and epoch, flushes what was replayed, removes what is over.
    fn begin_epoch(&mut self, recovered: &Recovered) -> Result<()> {
        let last = recovered.segments.last().copied().unwrap_or(0);
        // A spare that was not written to is as good as new; making another at each start would fill a full disk.
        let segment = match recovered.untouched {
            Some(_) => last,
            None => last + 1,
        };
        self.log = Some(Arc::new(CommitLog::start(
            self.disk.clone(),
            log::Start {
                log: self.log_id,
                segment,
                present: recovered.untouched,
                first_group: recovered.next_group,
                last_sequence: self.recovered_sequence,
                segment_bytes: self.options.segment_bytes,
            },
        )?));
        self.objects.create_numbered(
            SERVERS,
            self.epoch,
            &ServerRecord {
                log: self.log_id,
                segment,
            },
        )?;
        for (table, tablet) in self.tablets() {
            self.flush(&table, &tablet)?;
        }
        for old in recovered.segments.iter().filter(|old| **old != segment) {
            remove_segment(self.disk.as_ref(), self.log_id, *old)?;
        }
        self.remove_garbage()
    }

    /// Removes what nothing names: records that were replaced, tables that were never finished or are dropped, files of
    /// earlier starts that no manifest took. While the store is held, tables and files wait for its release.
    fn remove_garbage(&self) -> Result<()> {
        let (number, catalog) = self.admin.lock().clone();
        self.objects
            .clean_numbered(CATALOG, number.saturating_sub(1));
        self.objects.clean_numbered(SERVERS, self.epoch - 1);
        let uids: BTreeSet<String> = catalog
            .tables
            .values()
            .map(|table| table.uid.to_string())
            .collect();
        let mut live = BTreeSet::new();
        let mut folders = BTreeSet::new();
        for (_, tablet) in self.tablets() {
            folders.insert(format!("{:08}", tablet.id));
            live.extend(
                tablet
                    .state()
                    .files
                    .values()
                    .flatten()
                    .map(|file| file.meta.path.clone()),
            );
        }
        let name = |path: &str, folder: &str| {
            path.strip_prefix(folder)?
                .split('/')
                .nth(1)
                .map(str::to_owned)
        };
        let mut garbage = Vec::new();
        for (path, _) in self.objects.list(TABLES)? {
            if !name(&path, TABLES).is_some_and(|uid| uids.contains(&uid)) {
                garbage.push(path);
            }
        }
        for (path, _) in self.objects.list(TABLETS)? {
            let known = name(&path, TABLETS).is_some_and(|id| folders.contains(&id));
            let old_file =
                path.contains("/sst/") && sst_epoch(&path).is_some_and(|epoch| epoch < self.epoch);
            if !known || (old_file && !live.contains(&path)) {
                garbage.push(path);
            }
        }
        self.dropped.lock().extend(garbage);
        self.remove_dropped()?;
        self.remove_other_logs()?;
        for folder in folders {
            self.remove_staged(&format!("{TABLETS}/{folder}/manifest"))?;
            let files = format!("{TABLETS}/{folder}/sst");
            for family in self
                .disk
                .list(&files)
                .map_err(|error| Error::Io(format!("list {files}: {error}")))?
            {
                self.remove_staged(&format!("{files}/{family}"))?;
            }
        }
        Ok(())
    }

    /// Removes logs of creations that did not come to their end.
    fn remove_other_logs(&self) -> Result<()> {
        let failed = |error| Error::Io(format!("clean logs: {error}"));
        let own = self.log_id.to_string();
        for other in self
            .disk
            .list("logs")
            .map_err(failed)?
            .iter()
            .filter(|name| **name != own)
        {
            for segment in self.disk.list(&format!("logs/{other}")).map_err(failed)? {
                self.disk
                    .remove(&format!("logs/{other}/{segment}"))
                    .map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Removes what the object store was writing when a crash came: it names such files `<object>#<n>`, and lists none of them.
    fn remove_staged(&self, folder: &str) -> Result<()> {
        let failed = |error| Error::Io(format!("clean {folder}: {error}"));
        let names = self.disk.list(folder).map_err(failed)?;
        let mut staged = names.iter().filter(|name| name.contains('#'));
        staged.try_for_each(|name| {
            self.disk
                .remove(&format!("{folder}/{name}"))
                .map_err(failed)
        })
    }
}
