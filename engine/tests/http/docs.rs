//! Runs the examples of docs/http.md, in their order, against a real server, and compares what they print.

use std::path::Path;

use crate::support::*;

/// A command and what it is said to print, where `…` stands for anything.
struct Example {
    command: String,
    output: String,
}

fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().expect("the block's end");
        let mut quoted = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                examples.push(Example {
                    command: command.to_owned(),
                    output: String::new(),
                });
                quoted = command.matches('\'').count() % 2 == 1;
                continue;
            }
            let example = examples.last_mut().expect("a block starts with a command");
            if quoted {
                example.command += "\n";
                example.command += line;
                quoted ^= line.matches('\'').count() % 2 == 1;
            } else {
                example.output += line;
                example.output += "\n";
            }
        }
    }
    examples
}

fn matches(pattern: &str, found: &str) -> bool {
    let mut parts = pattern.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = found.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn a_pattern_matches_the_whole() {
    assert!(
        matches("a", "a") && matches("a…c", "abbc") && matches("…b…", "abc") && matches("a…", "a")
    );
    assert!(
        !matches("a", "ab")
            && !matches("a…c", "ab")
            && !matches("…b", "abc")
            && !matches("a…b…b", "ab")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_prints_what_the_page_says() {
    let server = Server::start().await;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/http.md");
    let examples = examples(&std::fs::read_to_string(page).expect("the page"));
    assert!(examples.len() > 15);
    for Example { command, output } in examples {
        let mut shell = std::process::Command::new("bash");
        shell
            .args(["-c", &command])
            .env("SERVER", format!("http://{}", server.address));
        let run = tokio::task::spawn_blocking(move || shell.output())
            .await
            .expect("run")
            .expect("bash and curl");
        let found = String::from_utf8(run.stdout)
            .expect("text")
            .replace('\r', "");
        let found = if found.is_empty() || found.ends_with('\n') {
            found
        } else {
            found + "\n"
        };
        assert!(
            matches(&output, &found),
            "{command}\nsays\n{output}\nprints\n{found}"
        );
    }
}
