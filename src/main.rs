//! The `tablemount` command: assembles engine, operator, filesystem and client.
//!
//! Owns the command line: arguments, output forms, exit codes, signals and logs. What the parts do is theirs.
//!
//! **Invariants**: an error is one line on stderr that starts with `tablemount: `; the exit code says its kind ([`exit`]); a
//! reader that goes away (`tablemount export t | head`) ends the command quietly.

mod cli;
mod cmd;
mod column;
mod connect;
mod exit;
mod import;
mod logging;
mod mounting;
mod output;
mod range;
mod reconciler;
mod record;
mod serve;
mod signals;
mod up_hints;

use std::process::ExitCode;

fn main() -> ExitCode {
    exit::code(cli::run(std::env::args_os()))
}
