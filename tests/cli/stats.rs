//! Statistics for people and programs.

use serde_json::Value;

use crate::support::shared::{create, tm};

/// The lines after the one that starts with `heading`, up to an empty one, by columns of two spaces or more.
fn section(text: &str, heading: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|line| !line.starts_with(heading));
    lines
        .take_while(|line| !line.is_empty())
        .map(|line| {
            let fields = line.split("   ").map(str::trim);
            fields
                .filter(|field| !field.is_empty())
                .map(str::to_owned)
                .collect()
        })
        .collect()
}

#[test]
fn stats_of_a_table_show_families_and_tablets() {
    tm(&[
        "tables",
        "create",
        "counted",
        "--family",
        "f",
        "--family",
        "m:inMemory",
        "--split",
        "m%2F",
    ])
    .ok();
    tm(&["put", "counted", "a", "f:q=value", "f:r=value", "m:q=value"]).ok();
    tm(&["put", "counted", "z", "f:q=value"]).ok();
    let printed = tm(&["stats", "counted"]);
    let text = printed.ok();
    assert!(
        text.starts_with("Table:       counted\nOn disk:     0 B in 0 files"),
        "{text}"
    );
    let families = section(text, "FAMILY");
    assert_eq!(
        families[0],
        [
            "FAMILY",
            "ROWS",
            "DISK",
            "RAW",
            "FILES",
            "ENTRIES",
            "MEMTABLES",
            "CACHED",
            "DEBT",
            "WRITTEN",
            "IN MEMORY"
        ]
    );
    assert_eq!(families[1][9..], ["3", "-"]);
    assert_eq!(
        (families[2][0].as_str(), &families[2][9..]),
        ("m", ["1", "all"].map(str::to_owned).as_slice())
    );
    let tablets = section(text, "TABLET");
    assert_eq!(tablets.len(), 3, "{text}");
    assert_eq!(
        (tablets[1][1].as_str(), tablets[2][1].as_str()),
        ("-", "m%2F")
    );

    let json: Value =
        serde_json::from_str(tm(&["stats", "counted", "-o", "json"]).ok()).expect("JSON");
    assert_eq!(json["families"][0]["cellsWritten"], 3);
    assert_eq!(json["tablets"][1]["writes"], 1);
    assert!(
        tm(&["stats", "counted", "-o", "yaml"])
            .ok()
            .starts_with("table: counted\n")
    );
    assert_eq!(tm(&["stats", "nowhere"]).code, 3);
}

#[test]
fn stats_of_the_server_list_its_tables() {
    create("listed", &["f"]);
    let printed = tm(&["stats"]);
    let text = printed.ok();
    for field in [
        "Store:",
        "Up:",
        "On disk:",
        "Memtables:",
        "Commit log:",
        "Log syncs:",
        "Replay:",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(field)),
            "{field} in {text}"
        );
    }
    let tables = section(text, "TABLE ");
    assert!(tables.iter().any(|table| table[0] == "listed"), "{text}");
    let json: Value = serde_json::from_str(tm(&["stats", "-o", "json"]).ok()).expect("JSON");
    assert_eq!(json["held"], false);
    assert!(json["memtableBudgetBytes"].as_u64().expect("a number") > 0);
    assert!(json["logSync"]["p99Micros"].as_u64() <= json["logSync"]["maxMicros"].as_u64());
}
