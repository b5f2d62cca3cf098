//! SIGKILL under load: whatever was acknowledged is read back, many times in a row, from one store.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures::StreamExt as _;
use support::Server;
use tablemount_api::{
    Base64, FamilyName, MutateRequest, Mutation, Qualifier, ReadRequest, RowKey, RowMutation,
    TableName, Timestamp,
};
use tablemount_client::Client;
use tempfile::TempDir;

/// SIGKILLs of a plain run; `TABLEMOUNT_CRASHES` sets another number.
const CRASHES: u64 = 20;
const WRITERS: u64 = 8;
/// How much each life acknowledges before it ends.
const WRITES_PER_LIFE: u64 = 400;

/// A small memtable budget and log, so that crashes meet flushes, compactions and new segments too.
const FLAGS: [&str; 4] = ["--memtable-budget", "1MiB", "--log-budget", "4MiB"];

fn table() -> TableName {
    TableName::new("t").unwrap()
}

/// Writer `writer`'s cell number `number`: known from the two, so that nothing needs to be kept to check it.
fn cells(writer: u64, number: u64) -> RowMutation {
    let put = |family: &str| Mutation::Put {
        family: FamilyName::new(family).unwrap(),
        qualifier: Qualifier::new(format!("q{}", number % 3)).unwrap(),
        timestamp: Some(Timestamp(number as i64)),
        value: Base64(value(family, writer, number).into()),
    };
    let row = RowKey::new(format!("w{writer}-{:05}", number / 3)).unwrap();
    RowMutation {
        row,
        check: None,
        mutations: vec![put("a"), put("b")],
    }
}

fn value(family: &str, writer: u64, number: u64) -> String {
    format!("{family}{writer}.{number}.").repeat(1 + (number % 40) as usize)
}

/// Writes one after the other until the server is gone; returns how many were acknowledged since number 0.
async fn write(
    client: Client,
    writer: u64,
    from: u64,
    acknowledged: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> u64 {
    let mut number = from;
    while !stop.load(Relaxed) {
        let request = MutateRequest {
            rows: vec![cells(writer, number)],
        };
        match client.mutate(&table(), &request).await {
            Ok(_) => {
                number += 1;
                acknowledged.fetch_add(1, Relaxed);
            }
            Err(tablemount_client::Error::Refused(error)) => panic!("refused: {error}"),
            Err(_) => break,
        }
    }
    number
}

/// All that was acknowledged is there with its value; what is there beyond is whole rows that were under way.
async fn check(client: &Client, acknowledged: &[u64], life: u64) {
    let mut found = vec![0; acknowledged.len()];
    let mut rows = client.read_all(&table(), ReadRequest::default());
    while let Some(chunk) = rows.next().await {
        let chunk = chunk.unwrap();
        let key = std::str::from_utf8(chunk.row.bytes()).unwrap();
        let writer: u64 = key[1..].split('-').next().unwrap().parse().unwrap();
        for cell in &chunk.cells {
            let number = cell.timestamp.0 as u64;
            let expected = value(cell.family.as_str(), writer, number);
            assert_eq!(
                cell.value.as_ref().unwrap().0,
                expected,
                "life {life}: {key} {number}"
            );
            assert!(
                number <= acknowledged[writer as usize],
                "life {life}: {key} {number} was never sent"
            );
            found[writer as usize] += 1;
        }
    }
    for (writer, acknowledged) in acknowledged.iter().enumerate() {
        // Two families a write; the one under way at the crash is there in both or in none.
        let whole = [2 * acknowledged, 2 * (acknowledged + 1)];
        assert!(
            whole.contains(&found[writer]),
            "life {life}: writer {writer}: {} cells of {whole:?}",
            found[writer]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_by_sigkill() {
    let crashes = match std::env::var("TABLEMOUNT_CRASHES") {
        Ok(number) => number.parse().unwrap(),
        Err(_) => CRASHES,
    };
    let data = TempDir::new().unwrap();
    let mut numbers = vec![0; WRITERS as usize];
    for life in 0..=crashes {
        let mut server = Server::engine(data.path(), &FLAGS);
        let client = server.client().with_timeout(Duration::from_secs(20));
        if life == 0 {
            server
                .run(&[
                    "tables", "create", "t", "--family", "a", "--family", "b", "--split", "w3",
                    "--split", "w5",
                ])
                .ok();
        } else {
            check(&client, &numbers, life).await;
        }
        if life == crashes {
            assert!(server.process.terminate().success());
            break;
        }
        let (acknowledged, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let from = numbers[writer as usize];
                tokio::spawn(write(
                    client.clone(),
                    writer,
                    from,
                    Arc::clone(&acknowledged),
                    Arc::clone(&stop),
                ))
            })
            .collect();
        let enough = || (acknowledged.load(Relaxed) >= WRITES_PER_LIFE + life).then_some(());
        tokio::task::block_in_place(|| support::eventually("writes", enough));
        // In the middle of everything.
        server.process.kill();
        stop.store(true, Relaxed);
        for (number, writer) in numbers.iter_mut().zip(writers) {
            *number = writer.await.unwrap();
        }
    }
    let total: u64 = numbers.iter().sum();
    assert!(total >= crashes * WRITES_PER_LIFE, "{total}");
    println!("{total} acknowledged writes survived {crashes} SIGKILLs");
}
