//! One engine for all tests of a suite; each uses tables of its own.

use std::sync::OnceLock;

use tempfile::TempDir;

use super::{Outcome, Server};

struct Shared {
    server: Server,
    _data: TempDir,
}

pub fn server() -> &'static Server {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let data = TempDir::new().expect("temporary folder");
        Shared {
            server: Server::engine(data.path(), &[]),
            _data: data,
        }
    });
    &shared.server
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
