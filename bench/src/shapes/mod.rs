//! Shapes of data that only a wide-column store has, on Tablemount alone.
//!
//! Each shape has a phase that loads and one that measures, in processes of their own: what loading left in memory would hide
//! what reading needs.

mod listing;
mod opening;
mod versions;
mod wide_row;
mod world;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::subject::{Result, Setup};

/// Which shapes, and how large.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Which; absent: all
    #[arg(value_enum)]
    pub shapes: Vec<Shape>,
    /// Wide row: its qualifiers
    #[arg(long, default_value_t = 10_000_000)]
    pub qualifiers: u64,
    /// Wide row: pages read of each kind
    #[arg(long, default_value_t = 1000)]
    pub pages: u64,
    /// Wide row: block cache while pages are read, so that growth of memory is the reader's
    #[arg(long, value_name = "MIB", default_value_t = 32)]
    pub page_cache_mib: u64,
    /// Versions: cells
    #[arg(long, default_value_t = 100_000)]
    pub cells: u64,
    /// Versions of each cell
    #[arg(long, default_value_t = 10)]
    pub versions: u64,
    /// Listing: rows
    #[arg(long, default_value_t = 10_000)]
    pub listing_rows: u64,
    /// Listing: cells of a row
    #[arg(long, default_value_t = 1000)]
    pub listing_cells: u64,
    /// Opening: the store's size
    #[arg(long, value_name = "MIB", default_value_t = 10 << 10)]
    pub open_mib: u64,
    /// Opening: how much of it is only in the log
    #[arg(long, value_name = "MIB", default_value_t = 60)]
    pub log_mib: u64,
    /// Where stores are made, in a temporary folder
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub folder: PathBuf,
    /// Write shapes.md and shapes.json here too
    #[arg(long)]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub setup: Setup,
    /// One phase on a store: what this command starts
    #[arg(long, value_enum, hide = true, requires = "store")]
    pub phase: Option<Phase>,
    /// The store of a phase
    #[arg(long, hide = true)]
    pub store: Option<PathBuf>,
}

/// A shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// Pages of a row with very many qualifiers
    WideRow,
    /// The newest of many versions
    Versions,
    /// Row keys of rows with many cells
    Listing,
    /// Opening a large store with records in its log
    Opening,
}

impl Shape {
    const ALL: [Self; 4] = [Self::WideRow, Self::Versions, Self::Listing, Self::Opening];

    fn phases(self) -> &'static [Phase] {
        match self {
            Self::WideRow => &[Phase::LoadWideRow, Phase::ReadPages],
            Self::Versions => &[Phase::LoadVersions, Phase::ScanVersions],
            Self::Listing => &[Phase::LoadListing, Phase::ListRows],
            Self::Opening => &[Phase::LoadOpening, Phase::OpenWithLog, Phase::OpenClosed],
        }
    }
}

/// What one process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Phase {
    LoadWideRow,
    ReadPages,
    LoadVersions,
    ScanVersions,
    LoadListing,
    ListRows,
    LoadOpening,
    OpenWithLog,
    OpenClosed,
}

/// What a phase measured.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What.
    pub text: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// What it is to be, in words.
    pub goal: &'static str,
}

impl Figure {
    /// A figure without a goal.
    pub fn new(text: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            text: text.into(),
            value,
            unit,
            goal: "",
        }
    }

    /// The same with a goal.
    pub fn goal(mut self, goal: &'static str) -> Self {
        self.goal = goal;
        self
    }
}

/// Runs the shapes, or one phase of one.
pub fn run(options: &Options) -> Result<()> {
    match (options.phase, &options.store) {
        (Some(phase), Some(store)) => {
            let figures = crate::runtime()?.block_on(run_phase(phase, options, store))?;
            println!("{}", json(&figures));
            Ok(())
        }
        _ => run_all(options),
    }
}

fn run_all(options: &Options) -> Result<()> {
    let shapes = match options.shapes.as_slice() {
        [] => &Shape::ALL,
        shapes => shapes,
    };
    let mut all = Vec::new();
    for shape in shapes {
        let folder = TempDir::with_prefix_in("tablemount-bench-", &options.folder)?;
        for phase in shape.phases() {
            let figures = start(*phase, &folder.path().join("store"))?;
            for figure in &figures {
                eprintln!("{}", line(figure));
            }
            all.extend(figures);
        }
    }
    let lines: Vec<_> = all.iter().map(line).collect();
    let table = format!(
        "| | measured | goal |\n| --- | ---: | --- |\n{}\n",
        lines.join("\n")
    );
    println!("{table}");
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out)?;
        std::fs::write(out.join("shapes.md"), table)?;
        std::fs::write(out.join("shapes.json"), format!("{:#}\n", Value::from(all)))?;
    }
    Ok(())
}

/// Runs a phase in a process of its own, with this process's arguments.
fn start(phase: Phase, store: &Path) -> Result<Vec<Value>> {
    let name = clap::ValueEnum::to_possible_value(&phase).ok_or("a phase without a name")?;
    let output = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .arg("--phase")
        .arg(name.get_name())
        .arg("--store")
        .arg(store)
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("phase {} ended with {}", name.get_name(), output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

async fn run_phase(phase: Phase, options: &Options, store: &Path) -> Result<Vec<Figure>> {
    match phase {
        Phase::LoadWideRow => wide_row::load(options, store).await,
        Phase::ReadPages => wide_row::read(options, store).await,
        Phase::LoadVersions => versions::load(options, store).await,
        Phase::ScanVersions => versions::scan(options, store).await,
        Phase::LoadListing => listing::load(options, store).await,
        Phase::ListRows => listing::list(options, store).await,
        Phase::LoadOpening => opening::load(options, store).await,
        Phase::OpenWithLog => opening::open(options, store, "with this log").await,
        Phase::OpenClosed => opening::open(options, store, "after a clean end").await,
    }
}

fn json(figures: &[Figure]) -> Value {
    figures
        .iter()
        .map(|figure| {
            json!({
                "text": figure.text,
                "value": figure.value,
                "unit": figure.unit,
                "goal": figure.goal,
            })
        })
        .collect()
}

/// A figure as a line of the table.
fn line(figure: &Value) -> String {
    let text = |name: &str| figure[name].as_str().unwrap_or_default().to_owned();
    let value = figure["value"].as_f64().unwrap_or(f64::NAN);
    format!(
        "| {} | {value:.2} {} | {} |",
        text("text"),
        text("unit"),
        text("goal")
    )
}
