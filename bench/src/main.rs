//! Benchmarks of Tablemount's engine: beside RocksDB and fjall, and of the shapes that only a wide-column store has.
//!
//! `docs/performance.md` says how to run it and what is measured. It is a workspace of its own and no part of the default build.

mod child;
mod compare;
mod plot;
mod process;
mod report;
mod rows;
mod shapes;
mod subject;
mod svg;
mod workload;
mod writers;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::subject::Result;

#[derive(Debug, Parser)]
#[command(about = "Benchmarks of Tablemount's engine", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Tablemount, RocksDB and fjall in turns
    Compare(compare::Options),
    /// Shapes of data that only a wide-column store has, on Tablemount
    Shapes(shapes::Options),
    /// The cost of a get over the number of rows
    Plot(plot::Options),
    /// One store, with steps from standard input: what `compare` starts
    #[command(hide = true)]
    Subject(child::Arguments),
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tablemount-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Compare(options) => compare::run(&options),
        Command::Shapes(options) => shapes::run(&options),
        Command::Plot(options) => plot::run(&options),
        Command::Subject(arguments) => runtime()?.block_on(child::serve(&arguments)),
    }
}

/// As many threads as cores.
fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}
