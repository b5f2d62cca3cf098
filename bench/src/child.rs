//! One subject in a process of its own, so that its memory and processor time are its own.
//!
//! The child opens its store and tells in one line of JSON what that took. Then the parent writes a step's name a line; the child
//! runs it and answers in a line. When its input ends it closes the store and ends.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::process::{self, Span};
use crate::subject::{
    Compression, Fjall, Kind, Place, Result, RocksDb, Setup, Subject, Tablemount,
};
use crate::workload::{Load, Step, Workload};

/// What a child is told on its command line.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The store
    #[arg(long, value_enum)]
    pub subject: Kind,
    /// Its folder
    #[arg(long)]
    pub folder: PathBuf,
    /// How blocks are compressed
    #[arg(long, value_enum)]
    pub compression: Compression,
    #[command(flatten)]
    pub setup: Setup,
    #[command(flatten)]
    pub load: Load,
}

impl Arguments {
    fn place(&self) -> Place {
        Place {
            folder: self.folder.clone(),
            compression: self.compression,
            setup: self.setup.clone(),
        }
    }

    /// The words that say this.
    fn words(&self) -> Vec<String> {
        let (setup, load) = (&self.setup, &self.load);
        [
            ("subject", self.subject.name().to_owned()),
            ("folder", self.folder.display().to_string()),
            ("compression", self.compression.name().to_owned()),
            ("cache-mib", setup.cache_mib.to_string()),
            ("write-buffer-mib", setup.write_buffer_mib.to_string()),
            ("rows", load.rows.to_string()),
            ("seconds", load.seconds.to_string()),
            ("sustained-seconds", load.sustained_seconds.to_string()),
            ("loaders", load.loaders.to_string()),
        ]
        .into_iter()
        .map(|(name, value)| format!("--{name}={value}"))
        .collect()
    }
}

/// A running child. Dropped, it is killed.
pub struct Child {
    process: Process,
    steps: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program as a child; returns also what the opening of its store took.
    pub fn start(arguments: &Arguments) -> Result<(Self, Value)> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("subject")
            .args(arguments.words())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (steps, answers) = (process.stdin.take(), process.stdout.take());
        let mut child = Self {
            process,
            steps,
            answers: BufReader::new(answers.ok_or("a child without output")?),
        };
        let opened = child.answer("opening")?;
        Ok((child, opened))
    }

    /// Runs a step and returns what it measured.
    pub fn run(&mut self, step: Step) -> Result<Value> {
        let steps = self.steps.as_mut().ok_or("a child that was ended")?;
        writeln!(steps, "{}", name(step))?;
        self.answer(&name(step))
    }

    fn answer(&mut self, step: &str) -> Result<Value> {
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        if answer.is_empty() {
            return Err(format!("{step} failed").into());
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// Lets it close its store and end.
    pub fn end(mut self) -> Result<()> {
        self.steps = None;
        let status = self.process.wait()?;
        if !status.success() {
            return Err(format!("a child ended with {status}").into());
        }
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            // It may have ended since: nothing is lost by that.
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }
}

/// A step's name on the wire and in results.
pub fn name(step: Step) -> String {
    let value = step.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The child's side: runs steps from standard input until it ends.
pub async fn serve(arguments: &Arguments) -> Result<()> {
    match arguments.subject {
        Kind::Rocksdb => serve_subject::<RocksDb>(arguments).await,
        Kind::Fjall => serve_subject::<Fjall>(arguments).await,
        Kind::Tablemount => serve_subject::<Tablemount>(arguments).await,
    }
}

async fn serve_subject<S: Subject>(arguments: &Arguments) -> Result<()> {
    let span = Span::start()?;
    let work = Workload {
        subject: Arc::new(S::open(&arguments.place()).await?),
        load: arguments.load.clone(),
    };
    let memory = process::memory()?;
    say(&json!({
        "operations": 1,
        "seconds": span.elapsed().as_secs_f64(),
        "cpuSeconds": span.cpu()?.as_secs_f64(),
        "memoryBytes": memory.now,
        "peakMemoryBytes": memory.peak,
    }))?;
    for line in std::io::stdin().lines() {
        let step = Step::from_str(line?.trim(), false)?;
        say(&work.run(step).await?)?;
    }
    alone(work.subject)?.close().await
}

fn say(answer: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}

/// The store, when no writer or reader holds it any more.
pub fn alone<S>(subject: Arc<S>) -> Result<S> {
    Arc::into_inner(subject).ok_or_else(|| "the store is still in use".into())
}
