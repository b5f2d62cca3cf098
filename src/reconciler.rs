//! The reconciler of `tablemount up`: manifests from files, and the engine's tables made so.
//!
//! **Invariants**: nothing is applied from files of which one cannot be read; a table is dropped only if its object was in the
//! files that this process read before, said `deletionPolicy: Delete`, and owns the table.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tablemount_api::{DropTable, ErrorCode, TableName};
use tablemount_client::Client;
use tablemount_operator::crd::{DeletionPolicy, Table};
use tablemount_operator::manifest::{self, Object};
use tablemount_operator::{Reason, reconcile};

use crate::output::say;

/// Names this place in owner markers.
const CLUSTER: &str = "up";
/// The longest manifest file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The objects of the files.
pub(crate) struct Manifests {
    files: Vec<PathBuf>,
    /// What came on stdin, which can be read only once.
    stdin: Option<String>,
    tables: Vec<Table>,
}

impl Manifests {
    /// Reads `files`; an error names the file, the object and the field.
    pub(crate) fn read(files: Vec<PathBuf>) -> anyhow::Result<Self> {
        let stdin = match files.iter().any(|file| file == Path::new("-")) {
            true => Some(bounded(std::io::stdin().lock()).context("read manifests from stdin")?),
            false => None,
        };
        let mut manifests = Self {
            files,
            stdin,
            tables: Vec::new(),
        };
        manifests.tables = manifests.parse()?;
        Ok(manifests)
    }

    fn parse(&self) -> anyhow::Result<Vec<Table>> {
        let mut tables: Vec<Table> = Vec::new();
        for file in &self.files {
            for (text, source) in self.texts(file)? {
                for object in manifest::parse(&text, &source)? {
                    let Object::Table(table) = object else {
                        continue;
                    };
                    if tables
                        .iter()
                        .any(|other| identity(other) == identity(&table))
                    {
                        bail!(
                            "{source}: Table \"{}\" stands in another file too",
                            identity(&table)
                        );
                    }
                    tables.push(*table);
                }
            }
        }
        Ok(tables)
    }

    /// The texts of a file, or of all files of a directory, with their names.
    fn texts(&self, file: &Path) -> anyhow::Result<Vec<(String, String)>> {
        if let (Some(text), true) = (&self.stdin, file == Path::new("-")) {
            return Ok(vec![(text.clone(), "stdin".to_owned())]);
        }
        let files = match file.is_dir() {
            true => manifests_of(file)?,
            false => vec![file.to_owned()],
        };
        files
            .into_iter()
            .map(|file| Ok((read(&file)?, file.display().to_string())))
            .collect()
    }
}

fn manifests_of(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let name = directory.display();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| name.to_string())? {
        let path = entry.with_context(|| name.to_string())?.path();
        let is_manifest = path
            .extension()
            .is_some_and(|ext| ["yaml", "yml", "json"].iter().any(|known| ext == *known));
        if is_manifest && path.is_file() {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!("{name}: no manifests (*.yaml, *.yml, *.json) in this directory");
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> anyhow::Result<String> {
    let opened = std::fs::File::open(file).with_context(|| file.display().to_string())?;
    bounded(opened).with_context(|| file.display().to_string())
}

fn bounded(input: impl std::io::Read) -> anyhow::Result<String> {
    let mut text = String::new();
    input.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        bail!("over {MAX_FILE_BYTES} bytes, the limit of a manifest file");
    }
    Ok(text)
}

/// `namespace/name`.
fn identity(table: &Table) -> String {
    let owner = reconcile::owner(CLUSTER, table);
    format!("{}/{}", owner.namespace, owner.name)
}

/// Makes the engine's tables what the manifests say.
pub(crate) struct Reconciler {
    client: Client,
    manifests: Manifests,
    /// Tables that left the manifests and could not be dealt with yet.
    leaving: Vec<Table>,
}

impl Reconciler {
    pub(crate) fn new(client: Client, manifests: Manifests) -> Self {
        Self {
            client,
            manifests,
            leaving: Vec::new(),
        }
    }

    /// Applies the manifests; what no table can be ends the start.
    pub(crate) async fn start(&self) -> anyhow::Result<()> {
        for table in &self.manifests.tables {
            if let Some(message) = self.apply(table).await? {
                bail!("table \"{}\": {message}", identity(table));
            }
        }
        self.tell_of_undeclared().await
    }

    /// Reads the files again and applies what changed. What fails is tried again the next time.
    pub(crate) async fn read_again(&mut self) -> anyhow::Result<()> {
        let unchanged = "the manifests were not applied, the tables stay as they are";
        let tables = self.manifests.parse().context(unchanged)?;
        let before = std::mem::replace(&mut self.manifests.tables, tables);
        let mut failure = None;
        for table in &self.manifests.tables {
            failure = self.apply(table).await.err().or(failure);
        }
        let declared = |old: &Table| {
            self.manifests
                .tables
                .iter()
                .any(|new| identity(new) == identity(old))
        };
        let gone = before
            .into_iter()
            .chain(std::mem::take(&mut self.leaving))
            .filter(|old| !declared(old));
        for table in gone.collect::<Vec<_>>() {
            if let Err(error) = self.removed(&table).await {
                failure = Some(error);
                self.leaving.push(table);
            }
        }
        let partly = "not all of the manifests was applied; SIGHUP tries again";
        failure.map_or(Ok(()), Err).context(partly)
    }

    /// The tables that are declared, by their names in the engine.
    pub(crate) fn table_names(&self) -> Vec<TableName> {
        self.manifests
            .tables
            .iter()
            .filter_map(|table| table.table_name().ok())
            .collect()
    }

    /// Applies one and tells how it is; what no table can be is returned too.
    async fn apply(&self, table: &Table) -> anyhow::Result<Option<String>> {
        let outcome =
            reconcile::table(&self.client, table, &reconcile::owner(CLUSTER, table)).await;
        let state = if outcome.ready { "Ready" } else { "not Ready" };
        say(&format!(
            "table \"{}\": {state} ({:?}): {}",
            identity(table),
            outcome.reason,
            outcome.message
        ));
        Ok((outcome.reason == Reason::InvalidSpec).then_some(outcome.message))
    }

    async fn removed(&self, table: &Table) -> anyhow::Result<()> {
        let name = table.table_name()?;
        if table.spec.deletion_policy == DeletionPolicy::Retain {
            say(&format!(
                "table \"{}\": no longer declared; \"{name}\" stays with its data",
                identity(table)
            ));
            return Ok(());
        }
        let observed = match self.client.table(&name).await {
            Ok(observed) => observed,
            Err(error) if error.code() == Some(ErrorCode::NotFound) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if observed.owner != Some(reconcile::owner(CLUSTER, table)) {
            say(&format!(
                "table \"{}\": no longer declared; \"{name}\" belongs to another, and stays",
                identity(table)
            ));
            return Ok(());
        }
        self.client
            .drop_table(
                &name,
                &DropTable {
                    if_uid: Some(observed.uid),
                },
            )
            .await?;
        say(&format!(
            "table \"{}\": no longer declared; \"{name}\" was dropped (deletionPolicy: Delete)",
            identity(table)
        ));
        Ok(())
    }

    /// Tables of former manifests stay; that they do is said once.
    async fn tell_of_undeclared(&self) -> anyhow::Result<()> {
        let declared: Vec<_> = self
            .manifests
            .tables
            .iter()
            .map(|table| reconcile::owner(CLUSTER, table))
            .collect();
        for table in self.client.tables().await? {
            if let Some(owner) = &table.owner
                && owner.cluster == CLUSTER
                && !declared.contains(owner)
            {
                say(&format!(
                    "table \"{}/{}\": not declared in these files; \"{}\" stays with its data",
                    owner.namespace, owner.name, table.name
                ));
            }
        }
        Ok(())
    }
}
