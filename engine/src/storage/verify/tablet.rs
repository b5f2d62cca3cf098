//! Checking a tablet: its newest manifest and the files that it names.
//!
//! **Invariants**: a file is checked once. One that is not there is missing only if the newest manifest, read after that was
//! seen, still names it, in a table and family that are still there: files go after what drops them was published.

use std::collections::BTreeSet;

use super::file::{self, Checked};
use super::{Newest, Rows, Verifier};
use crate::Result;
use crate::storage::catalog::{
    CatalogTable, Manifest, SchemaRecord, manifest_folder, schema_folder,
};
use crate::storage::objects::numbered;
use crate::storage::sst::FileMeta;

/// How often a manifest is read anew because a compaction removed a file that it named.
const ROUNDS: usize = 1000;

impl Verifier<'_> {
    pub(super) fn tablet(
        &mut self,
        name: &str,
        table: &CatalogTable,
        id: u64,
        rows: &Rows,
    ) -> Result<()> {
        let folder = manifest_folder(id);
        let mut checked = BTreeSet::new();
        let mut gone: Option<FileMeta> = None;
        for _ in 0..ROUNDS {
            let manifest = match self.newest::<Manifest>(&folder)? {
                Newest::Sound(number, manifest) => (numbered(&folder, number), manifest),
                Newest::Damaged => {
                    self.unknown.insert(format!("{id:08}"));
                    return Ok(());
                }
                Newest::Absent => {
                    if self.has_table(name, table)? {
                        self.damage(&folder, None, "is missing");
                    }
                    self.unknown.insert(format!("{id:08}"));
                    return Ok(());
                }
            };
            let files = self.files(table, &manifest.1)?;
            if let Some(meta) = gone.take_if(|gone| files.iter().any(|file| file.path == gone.path))
            {
                if !self.has_table(name, table)? {
                    return Ok(());
                }
                self.damage(
                    &meta.path,
                    None,
                    format!("is missing; {} names it", manifest.0),
                );
                checked.insert(meta.path);
            }
            gone = self.check_files(&manifest, files, rows, &mut checked);
            if gone.is_none() {
                return Ok(());
            }
        }
        self.note(
            &folder,
            "changes too fast to be checked to the end".to_owned(),
        );
        Ok(())
    }

    /// The manifest's files of families that the schema, read after it, still has.
    fn files(&mut self, table: &CatalogTable, manifest: &Manifest) -> Result<Vec<FileMeta>> {
        let named = manifest.files.values().flatten();
        self.named.extend(named.map(|file| file.path.clone()));
        let families = match self.newest::<SchemaRecord>(&schema_folder(table.uid))? {
            Newest::Sound(_, schema) => Some(schema.families),
            Newest::Damaged | Newest::Absent => None,
        };
        let has = |id: u64| {
            let families = families.as_ref();
            families.is_none_or(|families| families.iter().any(|family| family.id == id))
        };
        let files = manifest.files.iter().filter(|(family, _)| has(**family));
        Ok(files.flat_map(|(_, files)| files).cloned().collect())
    }

    /// Checks files; returns the first that is not there.
    fn check_files(
        &mut self,
        (path, manifest): &(String, Manifest),
        files: Vec<FileMeta>,
        rows: &Rows,
        checked: &mut BTreeSet<String>,
    ) -> Option<FileMeta> {
        for meta in files {
            if checked.contains(&meta.path) {
                continue;
            }
            let newest = meta.properties.max_sequence;
            if newest > manifest.flushed_sequence {
                let what = format!(
                    "{} holds sequence number {newest}; the tablet is flushed up to {}",
                    meta.path, manifest.flushed_sequence
                );
                self.damage(path, Some(0), what);
            }
            let shared = self.shared.clone();
            let mut told = |offset, what| self.damage(&meta.path, offset, what);
            match file::check(&shared, &meta, rows, &mut told) {
                Checked::Gone => return Some(meta),
                Checked::Here { blocks, entries } => {
                    self.summary.files += 1;
                    self.summary.blocks += blocks;
                    self.summary.entries += entries;
                    checked.insert(meta.path);
                }
            }
        }
        None
    }
}
