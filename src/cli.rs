//! The command line: subcommands, the names the binary goes by, and usage errors in one line.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::cmd;
use crate::exit::{self, Failure};

#[derive(Parser)]
#[command(
    name = "tablemount",
    version,
    about = "A wide-column store for Kubernetes that mounts as a filesystem",
    after_help = exit::CODES,
    subcommand_required = true,
    arg_required_else_help = true,
    max_term_width = 100
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Up(cmd::up::Args),
    Engine(cmd::engine::Args),
    Operator(cmd::operator::Args),
    Crds(cmd::crds::Args),
    Mount(cmd::mount::Args),
    Tables(cmd::tables::Args),
    Stats(cmd::stats::Args),
    Compact(cmd::compact::Args),
    Hold(cmd::hold::Args),
    Get(cmd::get::Args),
    Scan(cmd::scan::Args),
    Put(cmd::put::Args),
    Delete(cmd::delete::Args),
    Import(cmd::import::Args),
    Export(cmd::export::Args),
    Path(cmd::path::Args),
    Key(cmd::key::Args),
    Verify(cmd::verify::Args),
    Sst(cmd::sst::Args),
    Log(cmd::log::Args),
    Completions(cmd::completions::Args),
    Healthcheck(cmd::healthcheck::Args),
}

/// The whole command, for completions and the tests of the documentation.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Parses `args` and does what they say.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<()> {
    let args: Vec<OsString> = args.into_iter().collect();
    let program = args
        .first()
        .and_then(|name| Path::new(name).file_name())
        .unwrap_or_default();
    let parsed = match program.to_str() {
        Some("mount.tablemount") => return cmd::mount::helper(&args[1..]),
        Some("kubectl-tablemount") => Cli::command()
            .bin_name("kubectl tablemount")
            .try_get_matches_from(&args),
        _ => Cli::command().try_get_matches_from(&args),
    };
    match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => execute(cli.command),
        Err(error) => usage(&error),
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Up(args) => block_on(cmd::up::run(args)),
        Command::Engine(args) => block_on(cmd::engine::run(args)),
        Command::Operator(args) => block_on(cmd::operator::run(args)),
        Command::Crds(args) => cmd::crds::run(&args),
        Command::Mount(args) => cmd::mount::run(args),
        Command::Tables(args) => block_on(cmd::tables::run(args)),
        Command::Stats(args) => block_on(cmd::stats::run(args)),
        Command::Compact(args) => block_on(cmd::compact::run(args)),
        Command::Hold(args) => block_on(cmd::hold::run(args)),
        Command::Get(args) => block_on(cmd::get::run(args)),
        Command::Scan(args) => block_on(cmd::scan::run(args)),
        Command::Put(args) => block_on(cmd::put::run(args)),
        Command::Delete(args) => block_on(cmd::delete::run(args)),
        Command::Import(args) => block_on(cmd::import::run(args)),
        Command::Export(args) => block_on(cmd::export::run(args)),
        Command::Path(args) => cmd::path::run(&args),
        Command::Key(args) => cmd::key::run(&args),
        Command::Verify(args) => cmd::verify::run(&args),
        Command::Sst(args) => cmd::sst::run(&args),
        Command::Log(args) => cmd::log::run(&args),
        Command::Completions(args) => cmd::completions::run(&args),
        Command::Healthcheck(args) => block_on(cmd::healthcheck::run(args)),
    }
}

/// Runs `future` to its end on a runtime of its own.
pub(crate) fn block_on(future: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // More than an engine has requests in flight: each may hold a thread that waits for a disk, and flushes need one too.
        .max_blocking_threads(2048)
        .build()?;
    let result = runtime.block_on(future);
    // A thread that is blocked in a read of stdin must not hold up the end.
    runtime.shutdown_background();
    result
}

/// Help goes out as clap writes it; an error becomes one line with code 2.
fn usage(error: &clap::Error) -> anyhow::Result<()> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(error.print()?),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            error.print()?;
            Err(Failure::usage("a subcommand is missing"))
        }
        _ => Err(Failure::usage(one_line(&error.to_string()))),
    }
}

/// Clap's message without its frame: the first paragraph, and the tips, if there are any.
fn one_line(rendered: &str) -> String {
    let mut paragraphs = rendered
        .split("\n\n")
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut message = paragraphs.next().unwrap_or_default();
    if let Some(rest) = message.strip_prefix("error: ") {
        message = rest.to_owned();
    }
    message = shorten(&message);
    for tip in paragraphs.filter(|text| text.starts_with("tip: ")) {
        message = format!("{message}; {tip}");
    }
    message
}

/// Clap repeats a refused value in full, however long: 64 KiB of a row key tell nobody anything.
fn shorten(message: &str) -> String {
    const SHOWN: usize = 60;
    let value = message
        .strip_prefix("invalid value '")
        .and_then(|rest| rest.split("' for '").next());
    match value.and_then(|value| Some((value, value.char_indices().nth(SHOWN)?.0))) {
        Some((value, cut)) => message.replacen(value, &format!("{}…", &value[..cut]), 1),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_subcommand_says_what_it_does() {
        for subcommand in command().get_subcommands() {
            assert!(
                subcommand.get_about().is_some(),
                "{}",
                subcommand.get_name()
            );
            for argument in subcommand.get_arguments() {
                assert!(
                    argument.get_help().is_some(),
                    "{} {}",
                    subcommand.get_name(),
                    argument.get_id()
                );
            }
        }
    }

    #[test]
    fn the_documentation_names_every_subcommand_and_flag() {
        fn check(command: &clap::Command, documentation: &str, missing: &mut Vec<String>) {
            for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
                if !documentation.contains(&format!("--{flag}")) {
                    missing.push(format!("{} --{flag}", command.get_name()));
                }
            }
            command
                .get_subcommands()
                .for_each(|subcommand| check(subcommand, documentation, missing));
        }
        let documentation = include_str!("../docs/cli.md");
        let mut missing = Vec::new();
        for subcommand in command().get_subcommands() {
            if !documentation.contains(&format!("`tablemount {}`", subcommand.get_name())) {
                missing.push(subcommand.get_name().to_owned());
            }
            check(subcommand, documentation, &mut missing);
        }
        assert!(missing.is_empty(), "not in docs/cli.md: {missing:?}");
    }

    #[test]
    fn usage_errors_are_one_line() {
        let check = |args: &[&str], expected: &str| {
            let error = run(args.iter().map(OsString::from)).expect_err("usage error");
            assert_eq!(error.to_string(), expected);
        };
        check(
            &["tablemount", "get", "map"],
            "the following required arguments were not provided: <ROW>",
        );
        check(
            &["tablemount", "scan", "a/b"],
            "invalid value 'a/b' for '<TABLE>': table name \"a/b\" is not 1 to 50 of letters, digits, '-', '_' and '.', \
             starting with a letter, a digit or '_'",
        );
        check(
            &["tablemount", "scan", "t", "--limitt", "3"],
            "unexpected argument '--limitt' found; tip: a similar argument exists: '--limit'",
        );
        let long = "k".repeat(65_537);
        let shown = format!(
            "invalid value '{}…' for '<ROW>': row key is 65537 bytes; limit is 65536",
            "k".repeat(60)
        );
        check(&["tablemount", "get", "t", &long], &shown);
    }
}
