//! One engine for all tests of a suite; each uses tables of its own.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use super::{Outcome, Server};

struct Shared {
    server: Server,
    _data: TempDir,
    _end: Child,
}

/// The suite's engine. A static is never dropped, so a process of its own ends the engine when this one has ended.
pub fn server() -> &'static Server {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let data = TempDir::new().expect("temporary folder");
        let server = Server::engine(data.path(), &[]);
        let end = end_with_us(server.process.id(), data.path());
        Shared {
            server,
            _data: data,
            _end: end,
        }
    });
    &shared.server
}

/// Reads from a pipe that closes when this process ends; then kills the engine and removes its folder.
fn end_with_us(engine: u32, data: &Path) -> Child {
    Command::new("sh")
        .args(["-c", "read _; kill -KILL \"$1\"; rm -rf -- \"$2\"", "end"])
        .arg(engine.to_string())
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh")
}

/// Runs the command against the shared engine.
pub fn tm(args: &[&str]) -> Outcome {
    server().run(args)
}

/// Makes a table.
pub fn create(table: &str, families: &[&str]) {
    let families: Vec<&str> = families
        .iter()
        .flat_map(|family| ["--family", family])
        .collect();
    tm(&[&["tables", "create", table], families.as_slice()].concat()).ok();
}
