//! `tablemount path`: where in a mount a table, row, column or version is.

use std::io::Write as _;
use std::path::PathBuf;

use tablemount_api::name::encode;
use tablemount_api::{FamilyName, RowKey, TableName, Timestamp};

use crate::column::row_key;
use crate::output;
use crate::range::micros;

/// Print the path of a table, row, column or version in a mount
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount path blogtable TT20080702120000 info author
  tablemount path --mount /mnt/tables users 'a/b' info %empty
  cat \"/mnt/tables/$(tablemount path map aaaaa A foo 15)\"

ROW and QUALIFIER are in the path encoding, in any spelling; what is printed is the canonical one. The empty qualifier is
%empty. `tablemount key` is the way back.")]
pub(crate) struct Args {
    /// The table.
    table: TableName,
    /// The row key.
    #[arg(value_parser = row_key)]
    row: Option<RowKey>,
    /// The column family.
    family: Option<FamilyName>,
    /// The qualifier.
    qualifier: Option<String>,
    /// Microseconds since 1970.
    #[arg(value_parser = micros)]
    timestamp: Option<Timestamp>,
    /// Where the tables are mounted; absent: the path is relative.
    #[arg(long, value_name = "DIR")]
    mount: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let path = args.mount.clone().unwrap_or_default().join(relative(args)?);
    let mut out = output::stdout();
    writeln!(out, "{}", path.display())?;
    Ok(out.flush()?)
}

fn relative(args: &Args) -> anyhow::Result<String> {
    let mut parts = vec![args.table.to_string()];
    parts.extend(args.row.as_ref().map(|row| encode(row.bytes())));
    parts.extend(
        args.family
            .as_ref()
            .map(|family| encode(family.as_str().as_bytes())),
    );
    if let Some(qualifier) = &args.qualifier {
        parts.push(encode(crate::column::qualifier(qualifier)?.bytes()));
    }
    parts.extend(
        args.timestamp
            .map(|timestamp| encode(timestamp.to_string().as_bytes())),
    );
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn paths_are_canonical() {
        let check = |line: &[&str], expected: &str| {
            let parsed = Line::try_parse_from([&["path"], line].concat()).expect("arguments");
            assert_eq!(relative(&parsed.args).expect("path"), expected);
        };
        check(&["t"], "t");
        check(&["map", "aaaaa", "A", "foo", "15"], "map/aaaaa/A/foo/15");
        check(&["t", "a/b", "f", "", "0"], "t/a%2Fb/f/%empty/0");
        check(&["t", "%61", "f", "%empty"], "t/a/f/%empty");
        check(&["t", "%00%00", "f"], "t/%x0000/f");
    }
}
