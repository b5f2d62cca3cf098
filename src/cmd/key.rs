//! `tablemount key`: what a path in a mount stands for.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use tablemount_api::name::{decode_bytes, encode_whole};
use tablemount_api::{FamilyName, Qualifier, RowKey, TableName};

use crate::mounting;
use crate::output::{self, Output};
use crate::range::micros;

/// Print what a path in a mount stands for: table, row, family, qualifier, timestamp
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount key blogtable/TT20080702120000/info/author
  tablemount key /mnt/tables/users/%x000000000000002a
  tablemount key --raw users/a%2Fb                        the row key's bytes

An absolute path must lie in a mount of this machine. The parts are printed in the path encoding; with --output json, bytes
that are not UTF-8 are in base64.")]
pub(crate) struct Args {
    /// The path, absolute or from the mount point on.
    path: String,
    /// The bytes of the last part and nothing else.
    #[arg(long, conflicts_with = "output")]
    raw: bool,
    /// The form of the output.
    #[arg(long, short, value_enum, default_value_t = Output::Table)]
    output: Output,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let parts = parts(&inside_mount(&args.path)?)?;
    match (args.raw, args.output) {
        (true, _) => {
            let mut out = output::stdout();
            out.write_all(
                parts
                    .last()
                    .map(|part| part.bytes.as_slice())
                    .unwrap_or_default(),
            )?;
            Ok(out.flush()?)
        }
        (false, Output::Table) => {
            let rows: Vec<_> = parts
                .iter()
                .map(|part| vec![part.name.to_owned(), encode_whole(&part.bytes)])
                .collect();
            output::print_columns(&rows)
        }
        (false, output) => output::print(&as_json(&parts), output == Output::Json),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Part {
    name: &'static str,
    bytes: Vec<u8>,
}

const NAMES: [&str; 5] = ["table", "row", "family", "qualifier", "timestamp"];

/// The path from the mount point on.
fn inside_mount(path: &str) -> anyhow::Result<PathBuf> {
    if !path.starts_with('/') {
        return Ok(path.into());
    }
    let mounts = mounting::mount_points().context("read the list of mounts")?;
    let inside = mounts
        .iter()
        .filter_map(|mount| Path::new(path).strip_prefix(mount).ok());
    match inside.min_by_key(|rest| rest.as_os_str().len()) {
        Some(rest) => Ok(rest.to_owned()),
        None => bail!("{path} lies in no mount of tables; give the path from the mount point on"),
    }
}

fn parts(path: &Path) -> anyhow::Result<Vec<Part>> {
    let mut parts = Vec::new();
    for component in path.components() {
        let text = component
            .as_os_str()
            .to_str()
            .context("the path is not UTF-8")?;
        let Some(name) = NAMES.get(parts.len()) else {
            bail!(
                "{} has more than {} parts: {}",
                path.display(),
                NAMES.len(),
                NAMES.join("/")
            );
        };
        if text.starts_with('@') || text == "latest" && *name == "timestamp" {
            bail!(
                "{text:?} is a view, not a part of a key; its way into the table is the path without it"
            );
        }
        let bytes = decode_bytes(text).with_context(|| format!("{name} of {}", path.display()))?;
        check(name, &bytes).with_context(|| format!("{name} of {}", path.display()))?;
        parts.push(Part { name, bytes });
    }
    if parts.is_empty() {
        bail!("the path is empty; it is TABLE/ROW/FAMILY/QUALIFIER/TIMESTAMP or a start of it");
    }
    Ok(parts)
}

fn check(name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let text = || str::from_utf8(bytes).context("it is not UTF-8");
    match name {
        "table" => drop(TableName::new(text()?)?),
        "row" => drop(RowKey::new(bytes.to_vec())?),
        "family" => drop(FamilyName::new(text()?)?),
        "qualifier" => drop(Qualifier::new(bytes.to_vec())?),
        _ => drop(micros(text()?)?),
    }
    Ok(())
}

fn as_json(parts: &[Part]) -> serde_json::Value {
    let fields = parts
        .iter()
        .map(|part| match (part.name, str::from_utf8(&part.bytes)) {
            ("timestamp", Ok(text)) => (
                "timestamp".to_owned(),
                text.parse::<i64>().map_or(text.into(), Into::into),
            ),
            (name, Ok(text)) => (name.to_owned(), text.into()),
            (name, Err(_)) => (format!("{name}Base64"), json_base64(&part.bytes)),
        });
    serde_json::Value::Object(fields.collect())
}

fn json_base64(bytes: &[u8]) -> serde_json::Value {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD
        .encode(bytes)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_apart() {
        let check = |path: &str, expected: &[&[u8]]| {
            let parts = parts(Path::new(path)).expect("parts");
            assert_eq!(
                parts
                    .iter()
                    .map(|part| part.bytes.as_slice())
                    .collect::<Vec<_>>(),
                expected,
                "{path}"
            );
        };
        check("t", &[b"t"]);
        check("t/a%2Fb/f/%empty/15", &[b"t", b"a/b", b"f", b"", b"15"]);
        check("t/%xff00/", &[b"t", b"\xff\0"]);
    }

    #[test]
    fn what_is_no_key_is_named() {
        let check = |path: &str, expected: &str| {
            assert_eq!(
                format!("{:#}", parts(Path::new(path)).expect_err("no key")),
                expected
            );
        };
        check(
            "",
            "the path is empty; it is TABLE/ROW/FAMILY/QUALIFIER/TIMESTAMP or a start of it",
        );
        check(
            "t/r/f/q/1/x",
            "t/r/f/q/1/x has more than 5 parts: table/row/family/qualifier/timestamp",
        );
        check(
            "t/%zz",
            "row of t/%zz: \"%zz\" is not a name: after % come two hex digits, or x, l, empty",
        );
        check(
            "t/%empty",
            "row of t/%empty: row key is empty; a row key has 1 to 65536 bytes",
        );
        check(
            "t/@latest",
            "\"@latest\" is a view, not a part of a key; its way into the table is the path without it",
        );
    }

    #[test]
    fn json_holds_any_bytes() {
        let parts = parts(Path::new("t/%FF/f/q/15")).expect("parts");
        assert_eq!(
            as_json(&parts).to_string(),
            r#"{"family":"f","qualifier":"q","rowBase64":"/w==","table":"t","timestamp":15}"#
        );
    }
}
