//! What the end-to-end suites share: the binary as a process, servers on free ports, waiting for what they say.
//!
//! A suite uses a part of this.
#![allow(dead_code, unreachable_pub, missing_docs)]

pub mod shared;

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Nothing here takes this long on a machine that works.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The binary with `args`, without the caller's settings.
pub fn tablemount<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tablemount"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TABLEMOUNT_"))
    {
        command.env_remove(name);
    }
    command.args(args);
    command
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Outcome {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Outcome {
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text on stdout")
    }

    /// Stdout of a command that must have succeeded.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        self.text()
    }

    /// The command must have failed so, with one line.
    #[track_caller]
    pub fn failed(&self, code: i32, message: &str) {
        assert_eq!(
            (self.code, self.stderr.as_str()),
            (code, format!("tablemount: {message}\n").as_str()),
            "{self:?}"
        );
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("text on stderr"),
        }
    }
}

/// Runs the binary to its end.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    tablemount(args)
        .stdin(Stdio::null())
        .output()
        .expect("run")
        .into()
}

/// Runs the binary with `input` on its stdin.
pub fn run_with<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Outcome {
    let mut child = tablemount(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("run");
    let mut stdin = child.stdin.take().expect("stdin");
    let input = input.to_vec();
    // The command may end without having read all.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("run");
    writer.join().expect("writer");
    output.into()
}

/// Waits until `condition` gives something.
#[track_caller]
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {DEADLINE:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The lines that a process has printed so far.
#[derive(Clone, Default)]
pub struct Lines {
    printed: Arc<Mutex<Printed>>,
    changed: Arc<Condvar>,
}

#[derive(Default)]
struct Printed {
    lines: Vec<String>,
    ended: bool,
}

impl Lines {
    fn follow(input: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let follower = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(input).lines().map_while(Result::ok) {
                follower.update(|printed| printed.lines.push(line));
            }
            follower.update(|printed| printed.ended = true);
        });
        lines
    }

    fn update(&self, change: impl FnOnce(&mut Printed)) {
        change(&mut self.printed.lock().expect("lines"));
        self.changed.notify_all();
    }

    /// What `find` makes of the first line that it takes, from line `from` on.
    #[track_caller]
    pub fn wait<T>(&self, from: usize, find: impl Fn(&str) -> Option<T>) -> T {
        let end = Instant::now() + DEADLINE;
        let mut printed = self.printed.lock().expect("lines");
        loop {
            if let Some(found) = printed.lines.iter().skip(from).find_map(|line| find(line)) {
                return found;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !printed.ended && !left.is_zero(),
                "not among {:#?}",
                printed.lines
            );
            printed = self.changed.wait_timeout(printed, left).expect("lines").0;
        }
    }

    pub fn count(&self) -> usize {
        self.printed.lock().expect("lines").lines.len()
    }

    /// All lines of a process that has ended.
    pub fn all(&self) -> Vec<String> {
        eventually("the last line", || {
            let printed = self.printed.lock().expect("lines");
            printed.ended.then(|| printed.lines.clone())
        })
    }
}

/// A process that runs on: `engine`, `up`, `mount`. Killed when dropped.
pub struct Process {
    child: Child,
    pub stdout: Lines,
    pub stderr: Lines,
}

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self::start_with(command, Stdio::null())
    }

    pub fn start_with(command: &mut Command, stdin: Stdio) -> Self {
        let mut child = command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        let stdout = Lines::follow(child.stdout.take().expect("stdout"));
        let stderr = Lines::follow(child.stderr.take().expect("stderr"));
        Self {
            child,
            stdout,
            stderr,
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal");
    }

    /// Ends the process as `kubectl delete pod` does.
    #[track_caller]
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Ends the process as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        eventually("end of the process", || {
            self.child.try_wait().expect("wait")
        })
    }

    /// The field of the first JSON log line with this message.
    #[track_caller]
    pub fn logged(&self, message: &str, field: &str) -> String {
        self.stderr.wait(0, |line| {
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            let fields = line.get("fields")?;
            (fields.get("message")? == message).then(|| match fields.get(field) {
                Some(serde_json::Value::String(text)) => text.clone(),
                other => other.map(ToString::to_string).unwrap_or_default(),
            })
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An engine on free ports, or an `up`.
pub struct Server {
    pub process: Process,
    pub url: String,
}

const PORTS: [&str; 6] = [
    "--http",
    "127.0.0.1:0",
    "--grpc",
    "127.0.0.1:0",
    "--log-format",
    "json",
];

impl Server {
    /// `tablemount engine` on `data`, ready.
    pub fn engine(data: &Path, flags: &[&str]) -> Self {
        Self::start("engine", data, flags)
    }

    /// `tablemount up` on `data`; its tables may still be on their way.
    pub fn up(data: &Path, flags: &[&str]) -> Self {
        Self::start("up", data, flags)
    }

    fn start(subcommand: &str, data: &Path, flags: &[&str]) -> Self {
        let mut command = tablemount([subcommand]);
        command.arg("--data").arg(data).args(PORTS).args(flags);
        let process = Process::start(&mut command);
        let url = format!("http://{}", process.logged("serving HTTP", "address"));
        process.logged("ready", "data");
        Self { process, url }
    }

    /// The binary, told to talk to this server.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = tablemount(args);
        command.env("TABLEMOUNT_SERVER", &self.url);
        command
    }

    /// Runs a subcommand against this server.
    pub fn run(&self, args: &[&str]) -> Outcome {
        self.command(args)
            .stdin(Stdio::null())
            .output()
            .expect("run")
            .into()
    }

    pub fn client(&self) -> tablemount_client::Client {
        tablemount_client::Client::new(tablemount_client::Config::new(self.url.clone()))
            .expect("client")
    }
}

/// Unmounts when dropped, whatever became of the process.
pub struct Mountpoint(pub PathBuf);

impl Mountpoint {
    pub fn new(directory: &Path) -> Self {
        std::fs::create_dir_all(directory).expect("mount point");
        Self(directory.to_owned())
    }
}

impl Drop for Mountpoint {
    fn drop(&mut self) {
        // It says so when nothing is mounted any more.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.0)
            .stderr(Stdio::null())
            .status();
    }
}

/// Whether this machine lets us mount; said once where not.
pub fn can_mount() -> bool {
    let can = Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    assert!(
        can || std::env::var_os("CI").is_none(),
        "mounting takes root and /dev/fuse"
    );
    if !can {
        eprintln!("skipped: mounting takes root and /dev/fuse");
    }
    can
}
