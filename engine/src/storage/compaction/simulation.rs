//! Strategies compared: what each writes, how many files a scan merges, how much disk it takes, on three loads.
//!
//! Keys are numbers below [`KEYS`], files are sets of them, so that overwrites and deletes are counted exactly. All files are
//! whole runs: a leveled strategy's merge rewrites the whole next level.

use super::*;

const KEYS: usize = 1 << 16;
/// Operations of a flush: a load over all keys fills this part of them.
const FLUSH: usize = KEYS / 256;
const FLUSHES: usize = 2500;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Puts at keys drawn evenly.
    Overwrites,
    /// Puts at keys never used before.
    Growth,
    /// As many deletes as puts, at keys drawn evenly.
    Deletes,
}

/// A set of keys.
#[derive(Clone)]
struct Keys(Vec<u64>);

impl Keys {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, key: usize, there: bool) {
        let bit = 1 << (key % 64);
        match there {
            true => self.0[key / 64] |= bit,
            false => self.0[key / 64] &= !bit,
        }
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[derive(Clone)]
struct File {
    puts: Keys,
    deletes: Keys,
}

impl File {
    fn new(keys: usize) -> Self {
        Self {
            puts: Keys::new(keys),
            deletes: Keys::new(keys),
        }
    }

    fn entries(&self) -> u64 {
        self.puts.count() + self.deletes.count()
    }

    fn facts(&self) -> FileFacts {
        FileFacts {
            bytes: self.entries(),
            entries: self.entries(),
            dead: self.deletes.count(),
            expired: false,
        }
    }

    /// Lays a newer file over this one.
    fn cover(&mut self, newer: &Self) {
        for word in 0..self.puts.0.len() {
            let (puts, deletes) = (newer.puts.0[word], newer.deletes.0[word]);
            self.puts.0[word] = (self.puts.0[word] & !deletes) | puts;
            self.deletes.0[word] = (self.deletes.0[word] & !puts) | deletes;
        }
    }
}

/// What a strategy did.
#[derive(Default, Clone, Copy)]
struct Figures {
    flushed: u64,
    written: u64,
    largest: u64,
    files_max: usize,
    files_sum: usize,
    samples: usize,
    space_peak: f64,
    space_sum: f64,
}

impl Figures {
    fn write_amplification(&self) -> f64 {
        self.written as f64 / self.flushed as f64
    }

    fn files(&self) -> f64 {
        self.files_sum as f64 / self.samples as f64
    }

    fn space(&self) -> f64 {
        self.space_sum / self.samples as f64
    }
}

type Strategy = Box<dyn Fn(&[FileFacts]) -> Option<Choice>>;

fn run(load: Load, strategy: &Strategy) -> Figures {
    let keys = match load {
        Load::Growth => FLUSH * FLUSHES,
        _ => KEYS,
    };
    let mut random = crate::storage::random::Random::new(1);
    let (mut files, mut live) = (Vec::<File>::new(), Keys::new(keys));
    let mut figures = Figures::default();
    for flush in 0..FLUSHES {
        let mut file = File::new(keys);
        for i in 0..FLUSH {
            let delete = load == Load::Deletes && random.chance(50);
            let key = match load {
                Load::Growth => flush * FLUSH + i,
                _ => random.below(keys as u64) as usize,
            };
            file.puts.set(key, !delete);
            file.deletes.set(key, delete && !files.is_empty());
            live.set(key, !delete);
        }
        figures.flushed += file.entries();
        figures.written += file.entries();
        files.push(file);
        let live = live.count() as f64;
        // The first loads of all keys are no steady state.
        let steady = flush > FLUSHES / 4;
        let mut peak = files.iter().map(File::entries).sum::<u64>();
        loop {
            let facts: Vec<FileFacts> = files.iter().map(File::facts).collect();
            let Some(choice) = strategy(&facts) else {
                break;
            };
            let before = files.iter().map(File::entries).sum::<u64>();
            let merged = merge(&files[choice.files.clone()], choice.files.start == 0);
            figures.written += merged.entries();
            figures.largest = figures.largest.max(merged.entries());
            peak = peak.max(before + merged.entries());
            files.splice(choice.files, [merged]);
        }
        if steady {
            figures.samples += 1;
            figures.files_sum += files.len();
            figures.files_max = figures.files_max.max(files.len());
            figures.space_peak = figures.space_peak.max(peak as f64 / live);
            figures.space_sum += files.iter().map(File::entries).sum::<u64>() as f64 / live;
        }
    }
    figures
}

fn merge(files: &[File], bottom: bool) -> File {
    let mut merged = files[0].clone();
    files[1..].iter().for_each(|newer| merged.cover(newer));
    if bottom {
        merged.deletes.0.fill(0);
    }
    merged
}

/// Size-tiered: the newest run of similar files.
fn tiered(run: usize, similar: u64, files: &[FileFacts]) -> Option<Choice> {
    let shape = Shape {
        tier_files: run,
        similar,
        max_files: 16,
        ..SHAPE
    };
    let mut start = files.len();
    let mut total = 0;
    while start > 0 && (total == 0 || files[start - 1].bytes <= total * shape.similar) {
        start -= 1;
        total += files[start].bytes;
    }
    if files.len() - start >= shape.tier_files {
        return Choice::some(start..files.len(), Reason::Tier);
    }
    (files.len() > shape.max_files).then_some(Choice {
        files: 0..files.len(),
        reason: Reason::Files,
    })
}

/// Leveled: four flushes go into the first level, and a level goes into the next once the next is less than `ratio` times it.
fn leveled(ratio: u64, files: &[FileFacts]) -> Option<Choice> {
    let small = |file: &&FileFacts| file.bytes <= FLUSH as u64;
    let fresh = files.iter().rev().take_while(small).count();
    let mut start = files.len() - fresh;
    if fresh < 4 && start + fresh > 0 && files.len() > 1 {
        return None;
    }
    let mut total = sum(&files[start..], |file| file.bytes);
    while start > 0 && files[start - 1].bytes < total * ratio {
        start -= 1;
        total += files[start].bytes;
    }
    (files.len() - start > 1).then_some(Choice {
        files: start..files.len(),
        reason: Reason::Tier,
    })
}

fn hybrid(base_parts: u64, files: &[FileFacts]) -> Option<Choice> {
    let shape = Shape {
        base_parts,
        ..SHAPE
    };
    choose_by(&shape, files)
}

/// `cargo test -p tablemount-engine --lib -- --ignored --nocapture strategies_compared` prints the table of
/// docs/architecture.md.
#[test]
#[ignore = "prints a table; takes a minute"]
fn strategies_compared() {
    let mut strategies: Vec<(String, Strategy)> = Vec::new();
    for (run, similar) in [(4, 2), (8, 2)] {
        let name = format!("tiered, runs of {run}");
        strategies.push((name, Box::new(move |files| tiered(run, similar, files))));
    }
    for ratio in [4, 10] {
        let name = format!("leveled, ratio {ratio}");
        strategies.push((name, Box::new(move |files| leveled(ratio, files))));
    }
    for parts in [1, 2, 3, 4, 8] {
        let name = format!("hybrid, base at 1/{parts}");
        strategies.push((name, Box::new(move |files| hybrid(parts, files))));
    }
    println!(
        "| load | strategy | write amplification | files, mean | files, most | space, mean | space, peak | largest merge |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (load, text) in [
        (Load::Overwrites, "overwrites"),
        (Load::Growth, "growth"),
        (Load::Deletes, "deletes"),
    ] {
        for (name, strategy) in &strategies {
            let figures = run(load, strategy);
            println!(
                "| {text} | {name} | {:.1} | {:.1} | {} | {:.2} | {:.2} | {} |",
                figures.write_amplification(),
                figures.files(),
                figures.files_max,
                figures.space(),
                figures.space_peak,
                figures.largest / FLUSH as u64,
            );
        }
    }
}
