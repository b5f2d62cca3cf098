//! Compaction on demand and the hold, as typed.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::Server;
use crate::support::shared::{create, tm};

#[test]
fn compact_says_what_it_read_and_wrote() {
    create("compacted", &["f", "g"]);
    tm(&["put", "compacted", "r", "f:q=value"]).ok();
    let printed = tm(&["compact", "compacted"]);
    let text = printed.ok();
    assert!(
        text.starts_with("read ") && text.contains(" B, wrote "),
        "{text}"
    );
    let stats: Value =
        serde_json::from_str(tm(&["stats", "compacted", "-o", "json"]).ok()).expect("JSON");
    assert_eq!(
        (&stats["files"], &stats["memtableBytes"]),
        (&Value::from(1), &Value::from(0))
    );
    tm(&["compact", "compacted", "--family", "g"]).ok();
    assert_eq!(tm(&["compact", "nowhere"]).code, 3);
    assert_eq!(tm(&["compact", "compacted", "--family", "h"]).code, 3);
}

/// On a server of its own: a hold is of the whole store.
#[test]
fn a_hold_outlives_the_server() {
    let data = TempDir::new().expect("temporary folder");
    let mut server = Server::engine(data.path(), &[]);
    assert_eq!(server.run(&["hold"]).ok(), "not held\n");
    let held = server.run(&["hold", "on", "--reason", "wrong rule"]);
    assert!(
        held.ok().starts_with("held since ") && held.ok().ends_with(": wrong rule\n"),
        "{held:?}"
    );
    assert_eq!(server.process.terminate().code(), Some(0));
    let server = Server::engine(data.path(), &[]);
    assert_eq!(server.run(&["hold", "status"]).ok(), held.ok());
    let json: Value = serde_json::from_str(server.run(&["hold", "-o", "json"]).ok()).expect("JSON");
    assert_eq!(
        (&json["held"], &json["reason"]),
        (&Value::from(true), &Value::from("wrong rule"))
    );
    assert!(
        server
            .run(&["stats"])
            .ok()
            .contains(" held: no file goes and nothing is collected\n")
    );
    assert!(
        server
            .run(&["hold", "off"])
            .ok()
            .starts_with("not held since ")
    );
    server
        .run(&["hold", "on", "--reason", &"x".repeat(1001)])
        .failed(2, "reason of a hold is 1001 bytes; limit is 1000");
}
