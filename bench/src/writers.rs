//! Writers side by side: threads where a write holds its thread, tasks where it does not.

use tokio::runtime::Handle;

use crate::subject::{Result, Subject};

/// Runs `count` writers to their ends; the first failure is the answer.
pub async fn run<S: Subject, T: Send + 'static, F>(
    count: usize,
    writer: impl Fn(usize) -> F,
) -> Result<Vec<T>>
where
    F: Future<Output = Result<T>> + Send + 'static,
{
    let start = |writer: F| {
        if S::WRITES_BLOCK {
            let runtime = Handle::current();
            tokio::task::spawn_blocking(move || runtime.block_on(writer))
        } else {
            tokio::spawn(writer)
        }
    };
    let writers: Vec<_> = (0..count).map(|number| start(writer(number))).collect();
    let mut results = Vec::with_capacity(count);
    for writer in writers {
        results.push(writer.await??);
    }
    Ok(results)
}
