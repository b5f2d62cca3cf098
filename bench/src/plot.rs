//! The cost of a get over the number of rows, in cache and out of it: CSV and a plot.
//!
//! *In cache*: a block cache of three times the rows' bytes, every row read once before. *Out of it*: a small block cache; the
//! files are in the operating system's page cache, so what is measured is the work and not the disk.

use std::fmt::Write;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::child::{Arguments, Child};
use crate::rows::ROW_BYTES;
use crate::subject::{Compression, Kind, Result, Setup};
use crate::svg::{self, Line};
use crate::workload::{Load, Step};

/// What to plot.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Whose gets
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Kind::ALL)]
    pub subjects: Vec<Kind>,
    /// At how many rows
    #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000, 10_000_000])]
    pub sizes: Vec<u64>,
    /// Rounds at each point; the plot has their mean
    #[arg(long, default_value_t = 2)]
    pub rounds: usize,
    /// How long each round of gets runs
    #[arg(long, value_name = "SECONDS", default_value_t = 4)]
    pub seconds: u64,
    /// The block cache that does not hold the rows
    #[arg(long, value_name = "MIB", default_value_t = 8)]
    pub small_cache_mib: u64,
    /// Where stores are made, in a temporary folder
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub folder: PathBuf,
    /// Where gets.csv and gets.svg go
    #[arg(long)]
    pub out: PathBuf,
}

/// Whether the cache holds all rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    Whole,
    Small,
}

/// The mean cost of a get.
#[derive(Debug, Clone, Copy)]
struct Point {
    subject: Kind,
    cache: Cache,
    rows: u64,
    micros: f64,
    cpu_micros: f64,
}

/// Measures and writes both files.
pub fn run(options: &Options) -> Result<()> {
    let mut points = Vec::new();
    for rows in &options.sizes {
        let folder = TempDir::with_prefix_in("tablemount-bench-", &options.folder)?;
        for subject in &options.subjects {
            load(&arguments(options, *subject, *rows, Cache::Whole, &folder))?;
        }
        for cache in [Cache::Whole, Cache::Small] {
            points.extend(measure(options, *rows, cache, &folder)?);
        }
    }
    std::fs::create_dir_all(&options.out)?;
    std::fs::write(options.out.join("gets.csv"), csv(&points))?;
    std::fs::write(options.out.join("gets.svg"), plot(options, &points))?;
    print!("{}", csv(&points));
    Ok(())
}

fn arguments(
    options: &Options,
    subject: Kind,
    rows: u64,
    cache: Cache,
    folder: &TempDir,
) -> Arguments {
    let cache_mib = match cache {
        Cache::Whole => ((3 * rows * ROW_BYTES) >> 20) + 64,
        Cache::Small => options.small_cache_mib,
    };
    Arguments {
        subject,
        folder: folder.path().join(subject.name()),
        compression: Compression::None,
        setup: Setup {
            cache_mib,
            write_buffer_mib: 64,
        },
        load: Load {
            rows,
            seconds: options.seconds,
            sustained_seconds: 0,
            loaders: 4,
        },
    }
}

fn load(arguments: &Arguments) -> Result<()> {
    let (mut child, _) = Child::start(arguments)?;
    child.run(Step::LoadBurst)?;
    child.run(Step::Settle)?;
    eprintln!(
        "{} rows in {}",
        arguments.load.rows,
        arguments.subject.name()
    );
    child.end()
}

/// The subjects in turns, each warmed once.
fn measure(options: &Options, rows: u64, cache: Cache, folder: &TempDir) -> Result<Vec<Point>> {
    let mut children = Vec::new();
    for subject in &options.subjects {
        let (mut child, _) = Child::start(&arguments(options, *subject, rows, cache, folder))?;
        if cache == Cache::Whole {
            child.run(Step::Warm)?;
        }
        let point = Point {
            subject: *subject,
            cache,
            rows,
            micros: 0.0,
            cpu_micros: 0.0,
        };
        children.push((child, point));
    }
    for _ in 0..options.rounds {
        for (child, point) in &mut children {
            let answer = child.run(Step::Get1)?;
            let figure = |name: &str| answer[name].as_f64().unwrap_or(f64::NAN);
            let gets = figure("operations") * options.rounds as f64;
            point.micros += figure("seconds") * 1e6 / gets;
            point.cpu_micros += figure("cpuSeconds") * 1e6 / gets;
        }
    }
    let mut points = Vec::new();
    for (child, point) in children {
        child.end()?;
        points.push(point);
    }
    Ok(points)
}

fn csv(points: &[Point]) -> String {
    let mut text = "subject,cache,rows,micros_per_get,cpu_micros_per_get\n".to_owned();
    for point in points {
        let _ = writeln!(
            text,
            "{},{},{},{:.3},{:.3}",
            point.subject.name(),
            cache_name(point.cache),
            point.rows,
            point.micros,
            point.cpu_micros
        );
    }
    text
}

fn cache_name(cache: Cache) -> &'static str {
    match cache {
        Cache::Whole => "in cache",
        Cache::Small => "out of cache",
    }
}

fn plot(options: &Options, points: &[Point]) -> String {
    let mut lines = Vec::new();
    for subject in &options.subjects {
        for cache in [Cache::Whole, Cache::Small] {
            let mine = points
                .iter()
                .filter(|point| point.subject == *subject && point.cache == cache);
            lines.push(Line {
                text: format!("{}, {}", subject.name(), cache_name(cache)),
                color: match subject {
                    Kind::Rocksdb => "#0072b2",
                    Kind::Fjall => "#009e73",
                    Kind::Tablemount => "#d55e00",
                },
                dashed: cache == Cache::Small,
                points: mine
                    .map(|point| (point.rows as f64, point.micros))
                    .collect(),
            });
        }
    }
    svg::plot("Cost of a get", "rows", "µs a get, 1 task", &lines)
}
