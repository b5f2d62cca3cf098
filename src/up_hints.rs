//! What `tablemount up` prints on a terminal when everything is there: what to type next.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::Path;

use tablemount_api::TableName;

use crate::output::say;

/// Where there is a terminal, says what to type next.
pub(crate) fn print(url: &str, mount: Option<&Path>, tables: Vec<TableName>) {
    if std::io::stdout().is_terminal() {
        say(&hints(url, mount, &tables));
    }
}

fn hints(url: &str, mount: Option<&Path>, tables: &[TableName]) -> String {
    let Some(table) = tables.first() else {
        return "No table is declared; add one to the files and send SIGHUP.".to_owned();
    };
    let server = match url {
        "http://127.0.0.1:8080" => String::new(),
        url => format!(" --server {url}"),
    };
    let mut text = "\nIn another terminal:\n".to_owned();
    let _ = writeln!(text, "  tablemount tables {table}{server}");
    let _ = writeln!(text, "  tablemount scan {table} --limit 10{server}");
    if let Some(mount) = mount {
        let _ = writeln!(text, "  ls {}", mount.join(table.as_str()).display());
        let _ = writeln!(text, "  cat {}", mount.join("@help").display());
    }
    text.push_str("Ctrl-C ends it; nothing is lost.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_can_be_typed() {
        let tables = [TableName::new("map").expect("name")];
        assert_eq!(
            hints("http://127.0.0.1:8080", Some(Path::new("/mnt/t")), &tables),
            "\nIn another terminal:\n  tablemount tables map\n  tablemount scan map --limit 10\n  ls /mnt/t/map\n  \
             cat /mnt/t/@help\nCtrl-C ends it; nothing is lost."
        );
        assert!(
            hints("http://127.0.0.1:1", None, &tables)
                .contains("tables map --server http://127.0.0.1:1\n")
        );
        assert!(hints("u", None, &[]).starts_with("No table is declared"));
    }
}
