//! The comparison: the same steps on each subject, in turns, so that what else the machine does meets all alike.
//!
//! A round runs every step on one subject after the other before the next step; each round starts with another subject. Steps
//! that load for themselves get a fresh process and folder.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::child::{self, Arguments, Child};
use crate::report;
use crate::subject::{Compression, Kind, Result, Setup};
use crate::workload::{Load, Step};

/// Steps that share a process and a folder.
const GROUPS: &[&[Step]] = &[
    &[
        Step::LoadBurst,
        Step::Settle,
        Step::Reopen,
        Step::Warm,
        Step::Get1,
        Step::Get16,
        Step::GetAbsent,
        Step::Scan100,
        Step::ScanAll,
        Step::ScanReverse,
        Step::Puts64,
    ],
    &[Step::LoadBurstSynced],
    &[Step::LoadSustained],
    &[Step::LoadSustainedSynced],
];

/// What to compare, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Whom; ratios refer to rocksdb, if it is among them
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Kind::ALL)]
    pub subjects: Vec<Kind>,
    /// Compression of blocks; several are compared one after the other
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Compression::None, Compression::Lz4])]
    pub compressions: Vec<Compression>,
    /// Rounds; the table has their mean
    #[arg(long, default_value_t = 2)]
    pub rounds: usize,
    /// Only these steps; what they need before them is run too
    #[arg(long, value_enum, value_delimiter = ',')]
    pub steps: Vec<Step>,
    /// Where stores are made, in a temporary folder
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub folder: PathBuf,
    /// Write compare.md and compare.json here too
    #[arg(long)]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub setup: Setup,
    #[command(flatten)]
    pub load: Load,
}

/// What one step measured of one subject.
#[derive(Debug, Clone)]
pub struct Measurement {
    pub round: usize,
    pub subject: Kind,
    pub compression: Compression,
    pub step: Step,
    /// As the child answered.
    pub answer: Value,
}

/// Runs the comparison; prints the table.
pub fn run(options: &Options) -> Result<()> {
    let mut all = Vec::new();
    for round in 0..options.rounds {
        for compression in &options.compressions {
            for group in GROUPS {
                let steps = chosen(group, &options.steps);
                if !steps.is_empty() {
                    run_group(options, round, *compression, &steps, &mut all)?;
                }
            }
        }
    }
    let table = report::markdown(options, &all);
    println!("{table}");
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out)?;
        std::fs::write(out.join("compare.md"), table)?;
        std::fs::write(out.join("compare.json"), format!("{:#}\n", json(&all)))?;
    }
    Ok(())
}

/// The steps of a group up to the last one that is wanted, without those that only measure.
fn chosen(group: &[Step], wanted: &[Step]) -> Vec<Step> {
    let needed = |step: &Step| matches!(step, Step::LoadBurst | Step::Settle | Step::Warm);
    let is_wanted = |step: &Step| wanted.is_empty() || wanted.contains(step);
    let Some(last) = group.iter().rposition(is_wanted) else {
        return Vec::new();
    };
    let steps = group[..=last].iter();
    steps
        .filter(|step| is_wanted(step) || needed(step))
        .copied()
        .collect()
}

fn run_group(
    options: &Options,
    round: usize,
    compression: Compression,
    steps: &[Step],
    all: &mut Vec<Measurement>,
) -> Result<()> {
    let folder = TempDir::with_prefix_in("tablemount-bench-", &options.folder)?;
    let mut subjects = options.subjects.clone();
    let first = round % subjects.len().max(1);
    subjects.rotate_left(first);
    let (mut children, mut told) = (Vec::new(), Vec::new());
    for subject in subjects {
        let arguments = arguments(options, subject, compression, folder.path());
        children.push(Some(Child::start(&arguments)?.0));
        told.push(arguments);
    }
    for step in steps {
        for (child, arguments) in children.iter_mut().zip(&told) {
            let answer = take_step(child, arguments, *step);
            let subject = arguments.subject;
            let measurement = Measurement {
                round,
                subject,
                compression,
                step: *step,
                answer: answer.map_err(|error| format!("{}: {error}", subject.name()))?,
            };
            eprintln!("{}", line(&measurement));
            all.push(measurement);
        }
    }
    children.into_iter().flatten().try_for_each(Child::end)
}

/// Runs a step; to reopen, the child ends and another takes its place.
fn take_step(child: &mut Option<Child>, arguments: &Arguments, step: Step) -> Result<Value> {
    if step == Step::Reopen {
        child.take().map_or(Ok(()), Child::end)?;
        let (another, opened) = Child::start(arguments)?;
        *child = Some(another);
        return Ok(opened);
    }
    child.as_mut().ok_or("it has ended")?.run(step)
}

fn arguments(
    options: &Options,
    subject: Kind,
    compression: Compression,
    folder: &Path,
) -> Arguments {
    Arguments {
        subject,
        folder: folder.join(subject.name()),
        compression,
        setup: options.setup.clone(),
        load: options.load.clone(),
    }
}

/// One measurement as a line, to see how far a run is.
fn line(measurement: &Measurement) -> String {
    let number = |name: &str| measurement.answer[name].as_f64().unwrap_or(0.0);
    format!(
        "round {} {:4} {:22} {:10} {:>12.0}/s {:8.2} s, cpu {:7.2} s, {:5.0} MiB",
        measurement.round + 1,
        measurement.compression.name(),
        child::name(measurement.step),
        measurement.subject.name(),
        number("operations") / number("seconds"),
        number("seconds"),
        number("cpuSeconds"),
        number("memoryBytes") / f64::from(1 << 20),
    )
}

fn json(all: &[Measurement]) -> Value {
    all.iter()
        .map(|measurement| {
            let mut value = json!({
                "round": measurement.round + 1,
                "subject": measurement.subject.name(),
                "compression": measurement.compression.name(),
                "step": child::name(measurement.step),
            });
            if let (Value::Object(value), Value::Object(answer)) = (&mut value, &measurement.answer)
            {
                value.extend(answer.clone());
            }
            value
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wanted_step_brings_what_it_needs() {
        let check = |wanted: &[Step], expected: &[Step]| {
            assert_eq!(chosen(GROUPS[0], wanted), expected, "{wanted:?}");
        };
        check(&[], GROUPS[0]);
        check(&[Step::LoadSustained], &[]);
        check(&[Step::LoadBurst], &[Step::LoadBurst]);
        check(
            &[Step::Get1],
            &[Step::LoadBurst, Step::Settle, Step::Warm, Step::Get1],
        );
    }
}
