//! The comparison's tables, in Markdown.

mod figures;

use std::fmt::Write;

use serde_json::Value;

use self::figures::{Figure, ROWS};
use crate::compare::{Measurement, Options};
use crate::subject::{Compression, Kind};
use crate::workload::Step;

fn cpu_micros(value: &Value) -> Option<f64> {
    Some(value["cpuSecondsWithBusyAfter"].as_f64()? * 1e6 / value["operations"].as_f64()?)
}

/// All tables.
pub fn markdown(options: &Options, all: &[Measurement]) -> String {
    let mut text = conditions(options);
    for compression in &options.compressions {
        let mine: Vec<_> = all
            .iter()
            .filter(|measurement| measurement.compression == *compression)
            .collect();
        let name = compression_name(*compression);
        text += &format!("\n### {name}\n{}", figures(options, &mine));
        text += &format!(
            "\nProcessor time, µs an operation, the store's own threads included:\n\n{}",
            processor(options, &mine)
        );
        text += &windows(options, &mine);
    }
    text
}

fn compression_name(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "No compression",
        Compression::Lz4 => "LZ4",
    }
}

fn conditions(options: &Options) -> String {
    let (setup, load) = (&options.setup, &options.load);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{} rows of 24-byte keys and 100-byte values, one family; block cache {} MiB, memtables of {} MiB, blocks of 4 KiB, blooms of 10 bits; \
         {} loaders with batches of 100; {} s a step of reads or puts, {} s of sustained load; {} cores; mean of {} interleaved rounds.\n\
         A ratio above 1 is better than RocksDB.\n\n\
         ¹ RocksDB and fjall hand each batch to the operating system and do not sync it; Tablemount, which has no such mode, answers after fdatasync in every row.\n",
        load.rows,
        setup.cache_mib,
        setup.write_buffer_mib,
        load.loaders,
        load.seconds,
        load.sustained_seconds,
        cores,
        options.rounds
    )
}

fn heading(options: &Options, first: &str, ratios: bool) -> String {
    let mut text = format!("| {first} |");
    let mut line = "| --- |".to_owned();
    for subject in &options.subjects {
        let _ = write!(text, " {} |", subject.name());
        line += " ---: |";
    }
    for subject in compared(options).filter(|_| ratios) {
        let _ = write!(text, " {} : rocksdb |", subject.name());
        line += " ---: |";
    }
    format!("{text}\n{line}\n")
}

/// The subjects that have a ratio to RocksDB.
fn compared(options: &Options) -> impl Iterator<Item = Kind> {
    let is_there = options.subjects.contains(&Kind::Rocksdb);
    let others = options.subjects.iter().copied();
    others.filter(move |subject| is_there && *subject != Kind::Rocksdb)
}

fn figures(options: &Options, all: &[&Measurement]) -> String {
    let mut text = format!("\n{}", heading(options, "", true));
    for row in ROWS {
        let figure = |subject| mean(all, subject, row.step, |answer| row.figure.of(answer));
        if options
            .subjects
            .iter()
            .all(|subject| figure(*subject).is_none())
        {
            continue;
        }
        let _ = write!(text, "| {} |", row.text);
        for subject in &options.subjects {
            let _ = write!(text, " {} |", shown(figure(*subject)));
        }
        for subject in compared(options) {
            let ratio = figure(subject)
                .zip(figure(Kind::Rocksdb))
                .map(|(own, rocksdb)| match row.figure {
                    Figure::Rate => own / rocksdb,
                    Figure::Cost(_) => rocksdb / own,
                });
            let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
            let _ = write!(
                text,
                " {} |",
                ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
            );
        }
        text.push('\n');
    }
    text
}

fn processor(options: &Options, all: &[&Measurement]) -> String {
    let mut text = heading(options, "", false);
    for row in ROWS.iter().filter(|row| matches!(row.figure, Figure::Rate)) {
        let figure = |subject| mean(all, subject, row.step, cpu_micros);
        if options
            .subjects
            .iter()
            .all(|subject| figure(*subject).is_none())
        {
            continue;
        }
        let name = row
            .text
            .rsplit_once(", ")
            .map_or(row.text, |(name, _)| name);
        let _ = write!(text, "| {name} |");
        for subject in &options.subjects {
            let _ = write!(text, " {} |", shown(figure(*subject)));
        }
        text.push('\n');
    }
    text
}

/// How sustained loads went: a line a subject and round, a column every ten seconds.
fn windows(options: &Options, all: &[&Measurement]) -> String {
    let mut text = String::new();
    for step in [Step::LoadSustained, Step::LoadSustainedSynced] {
        for measurement in all.iter().filter(|measurement| measurement.step == step) {
            let Some(windows) = measurement.answer["windows"].as_array() else {
                continue;
            };
            let each = |name: &str, unit: f64| -> String {
                let shown = windows.iter().map(|window| match window[name].as_f64() {
                    Some(value) => format!("{:.0}", value / unit),
                    None => "–".to_owned(),
                });
                shown.collect::<Vec<_>>().join(" ")
            };
            let kind = if step == Step::LoadSustained {
                "unsynced¹"
            } else {
                "synced"
            };
            let _ = writeln!(
                text,
                "| {kind} | {} | {} | {} | {} | {} |",
                measurement.round + 1,
                measurement.subject.name(),
                each("rowsPerSecond", 1e3),
                each("files", 1.0),
                each("debtBytes", f64::from(1 << 20)),
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    let seconds = options.load.sustained_seconds;
    format!(
        "\nThe sustained load of {seconds} s, every ten seconds:\n\n\
         | | round | | thousand rows/s | SSTs | debt, MiB |\n| --- | ---: | --- | --- | --- | --- |\n{text}"
    )
}

fn mean(
    all: &[&Measurement],
    subject: Kind,
    step: Step,
    figure: impl Fn(&Value) -> Option<f64>,
) -> Option<f64> {
    let mine = all
        .iter()
        .filter(|measurement| measurement.subject == subject && measurement.step == step);
    let figures: Vec<_> = mine
        .filter_map(|measurement| figure(&measurement.answer))
        .collect();
    (!figures.is_empty()).then(|| figures.iter().sum::<f64>() / figures.len() as f64)
}

/// Three digits that count.
fn shown(figure: Option<f64>) -> String {
    match figure {
        None => "–".to_owned(),
        Some(figure) if figure >= 1e6 => format!("{:.2}M", figure / 1e6),
        Some(figure) if figure >= 1e4 => format!("{:.0}k", figure / 1e3),
        Some(figure) if figure >= 1e3 => format!("{:.1}k", figure / 1e3),
        Some(figure) if figure >= 100.0 => format!("{figure:.0}"),
        Some(figure) if figure >= 10.0 => format!("{figure:.1}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let check = |figure: f64, expected: &str| assert_eq!(shown(Some(figure)), expected);
        check(5_254_000.0, "5.25M");
        check(296_400.0, "296k");
        check(4_100.0, "4.1k");
        check(251.4, "251");
        check(1.234, "1.23");
        assert_eq!(shown(None), "–");
    }
}
