//! `tablemount completions`: what a shell needs to complete subcommands and flags.

use std::io::Write as _;

use clap_complete::Shell;

use crate::{cli, output};

/// Print a shell's completions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(tablemount completions bash)
  tablemount completions zsh > ~/.zfunc/_tablemount
  tablemount completions fish > ~/.config/fish/completions/tablemount.fish")]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "tablemount", &mut script);
    let mut out = output::stdout();
    out.write_all(&script)?;
    Ok(out.flush()?)
}
