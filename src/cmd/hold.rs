//! `tablemount hold`: stop clean-up and collection of the whole store, or let them go on.

use tablemount_api::Hold;
use tablemount_api::time::rfc3339;

use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::output::{self, Output, say};

/// Keep everything that is stored, whatever GC rules and deletes say, until it is released
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  tablemount hold on --reason 'maxVersions of blogtable was set to 1 by mistake'
  tablemount hold                          whether the store is held, since when and why
  tablemount hold off

For a night when a GC rule was wrong: while the store is held, no file is removed and nothing is collected, over restarts too.
What readers see does not change: set the rule right, and versions that are still stored show again. Files gather meanwhile,
so look at the disk's room. Releasing the hold lets clean-up go on, also of what gathered."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Hold the store
    On(On),
    /// Release it
    Off(Off),
    /// Print whether it is held
    Status(Status),
}

#[derive(Debug, clap::Args)]
struct On {
    /// Why, for those who come later; at most 1,000 bytes.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
struct Off {
    #[command(flatten)]
    client: ClientArgs,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let set = match args.action {
        None => return print(&args.client, args.output).await,
        Some(Action::Status(status)) => return print(&status.client, status.output).await,
        Some(Action::On(On { reason, client })) => (true, reason, client),
        Some(Action::Off(Off { client })) => (false, None, client),
    };
    let (held, reason, client) = set;
    let hold = Hold {
        held,
        reason,
        since: None,
    };
    hold.validate()
        .map_err(|error| Failure::usage(error.to_string()))?;
    say(&describe(&client.client()?.set_hold(&hold).await?));
    Ok(())
}

async fn print(client: &ClientArgs, form: Output) -> anyhow::Result<()> {
    let hold = client.client()?.hold().await?;
    match form {
        Output::Table => say(&describe(&hold)),
        form => output::print(&hold, form == Output::Json)?,
    }
    Ok(())
}

fn describe(hold: &Hold) -> String {
    let since = hold.since.and_then(rfc3339);
    let since = since.map_or_else(String::new, |since| format!(" since {since}"));
    let reason = hold.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    match hold.held {
        true => format!("held{since}{reason}"),
        false => format!("not held{since}"),
    }
}

#[cfg(test)]
mod tests {
    use tablemount_api::Timestamp;

    use super::*;

    #[test]
    fn a_hold_is_one_line() {
        let hold = |held, reason: Option<&str>, since: Option<i64>| Hold {
            held,
            reason: reason.map(str::to_owned),
            since: since.map(Timestamp),
        };
        let check = |hold: Hold, expected: &str| assert_eq!(describe(&hold), expected);
        check(Hold::default(), "not held");
        check(
            hold(false, None, Some(0)),
            "not held since 1970-01-01T00:00:00Z",
        );
        check(
            hold(true, Some("wrong rule"), Some(1_215_000_000_000_000)),
            "held since 2008-07-02T12:00:00Z: wrong rule",
        );
        check(hold(true, None, None), "held");
    }
}
