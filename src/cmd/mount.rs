//! `tablemount mount`, and `mount.tablemount`, by which mount(8) and fstab call it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail};
use tablemount_fusefs::MountConfig;

use crate::cli::block_on;
use crate::connect::ClientArgs;
use crate::exit::Failure;
use crate::logging::{self, LogArgs};
use crate::output;
use crate::signals;

/// Mount the tables of an engine as a filesystem, until SIGTERM, SIGINT or umount
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tablemount mount /mnt/tables
  tablemount mount --server http://main.default.svc:8080 --background /mnt/tables
  ls /mnt/tables/blogtable; cat /mnt/tables/@help; umount /mnt/tables

In /etc/fstab, with a link named mount.tablemount to this binary in /sbin:
  http://127.0.0.1:8080  /mnt/tables  tablemount  allow_other,_netdev,nofail  0 0

Needs root, or fusermount3.")]
pub(crate) struct Args {
    /// An empty directory.
    mountpoint: PathBuf,
    /// Let other users in.
    #[arg(long)]
    allow_other: bool,
    /// How many names a directory lists before it ends in @more; 0 for all.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// The user that owns everything; absent: you.
    #[arg(long)]
    uid: Option<u32>,
    /// The group that owns everything; absent: yours.
    #[arg(long)]
    gid: Option<u32>,
    /// Return as soon as it is mounted; `umount` ends it.
    #[arg(long)]
    background: bool,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn run(args: Args) -> anyhow::Result<()> {
    match args.background {
        true => in_background(
            std::env::args_os()
                .skip(1)
                .filter(|arg| arg != "--background"),
        ),
        false => block_on(serve(args)),
    }
}

async fn serve(args: Args) -> anyhow::Result<()> {
    logging::init(&args.log)?;
    let stop = signals::stop_token()?;
    let client = args.client.client()?;
    let mut config = MountConfig::new(client, &args.mountpoint);
    config.allow_other = args.allow_other;
    config.listing_limit = args.limit.unwrap_or(config.listing_limit);
    config.uid = args.uid.unwrap_or(config.uid);
    config.gid = args.gid.unwrap_or(config.gid);
    // A terminal that closes must not leave a dead mount behind.
    let mut hangups = signals::hangups()?;
    let mount = tablemount_fusefs::mount(config).await?;
    signals::detach_at_second(&args.mountpoint);
    output::say(&format!(
        "mounted {} on {}",
        args.client.url(),
        args.mountpoint.display()
    ));
    tokio::select! {
        // It is a normal end that somebody called umount.
        () = mount.wait() => Ok(()),
        () = stop.cancelled() => Ok(mount.unmount().await?),
        _ = hangups.recv() => Ok(mount.unmount().await?),
    }
}

/// Starts this program again, without the terminal, and returns when it has mounted.
fn in_background(args: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("find this program")?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("start in the background")?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .context("wait for the mount")?;
    }
    if line.is_empty() {
        let status = child.wait().context("wait for the mount")?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        return Err(Failure::told(code.unwrap_or(1)));
    }
    Ok(())
}

/// `mount.tablemount SERVER MOUNTPOINT [-sfnv] [-o OPTIONS]`, as mount(8) calls it.
pub(crate) fn helper(args: &[OsString]) -> anyhow::Result<()> {
    let args =
        helper_args(args).map_err(|error| Failure::usage(format!("mount.tablemount: {error}")))?;
    match args {
        Some(args) => in_background(args.into_iter().map(OsString::from)),
        None => Ok(()),
    }
}

/// The arguments of `tablemount mount`; none if mount(8) only wants to see what would be done (`-f`).
fn helper_args(args: &[OsString]) -> anyhow::Result<Option<Vec<String>>> {
    let mut places = Vec::new();
    let mut flags = Vec::new();
    let mut fake = false;
    let mut rest = args
        .iter()
        .map(|arg| arg.to_str().ok_or_else(|| anyhow!("{arg:?} is not UTF-8")));
    while let Some(arg) = rest.next().transpose()? {
        match arg {
            "-o" => flags.extend(options(
                rest.next().transpose()?.context("-o needs options")?,
            )?),
            _ if arg.starts_with("-o") => flags.extend(options(&arg[2..])?),
            _ if arg.len() > 1 && arg.starts_with('-') => {
                match arg.chars().skip(1).find(|c| !"sfnv".contains(*c)) {
                    Some(unknown) => bail!("unknown flag -{unknown}"),
                    None => fake |= arg.contains('f'),
                }
            }
            place => places.push(place.to_owned()),
        }
    }
    let [server, mountpoint] = places.as_slice() else {
        bail!("usage: mount.tablemount SERVER MOUNTPOINT [-o OPTIONS]");
    };
    let fixed = ["mount".to_owned(), format!("--server={server}")];
    let place = ["--".to_owned(), mountpoint.clone()];
    Ok((!fake).then(|| [fixed.to_vec(), flags, place.to_vec()].concat()))
}

/// What of `-o` there is a flag for. What mount(8) itself understands is passed over, and so is `x-…`.
fn options(text: &str) -> anyhow::Result<Vec<String>> {
    const PASSED_OVER: [&str; 18] = [
        "defaults", "ro", "rw", "auto", "noauto", "user", "nouser", "users", "_netdev", "nofail",
        "suid", "nosuid", "dev", "nodev", "exec", "noexec", "noatime", "relatime",
    ];
    let mut flags = Vec::new();
    for option in text.split(',').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            _ if PASSED_OVER.contains(&option) || option.starts_with("x-") => {}
            None if option == "allow_other" => flags.push("--allow-other".to_owned()),
            Some((name @ ("uid" | "gid" | "limit"), value)) => {
                flags.push(format!("--{name}={value}"))
            }
            Some(("token_file", value)) => flags.push(format!("--token-file={value}")),
            _ => bail!(
                "unknown option {option:?} (options: allow_other, uid, gid, limit, token_file)"
            ),
        }
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> anyhow::Result<Option<Vec<String>>> {
        helper_args(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn fstab_lines_become_flags() {
        let check = |line: &str, expected: &str| {
            assert_eq!(
                parsed(line)
                    .expect("arguments")
                    .expect("not fake")
                    .join(" "),
                expected
            );
        };
        check("http://h:1 /mnt", "mount --server=http://h:1 -- /mnt");
        check(
            "h:1 /mnt -n -o rw,_netdev,nofail,x-systemd.automount,allow_other,uid=5,limit=0,token_file=/t",
            "mount --server=h:1 --allow-other --uid=5 --limit=0 --token-file=/t -- /mnt",
        );
        assert_eq!(parsed("h:1 /mnt -f").expect("arguments"), None);
    }

    #[test]
    fn what_mount_may_not_ask_is_named() {
        let check = |line: &str, expected: &str| {
            assert_eq!(parsed(line).expect_err("refused").to_string(), expected)
        };
        check(
            "h:1",
            "usage: mount.tablemount SERVER MOUNTPOINT [-o OPTIONS]",
        );
        check("h /m -x", "unknown flag -x");
        check(
            "h /m -o sync",
            "unknown option \"sync\" (options: allow_other, uid, gid, limit, token_file)",
        );
    }
}
