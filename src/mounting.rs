//! Mounts of this machine, as the kernel lists them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Where tables are mounted.
pub(crate) fn mount_points() -> io::Result<Vec<PathBuf>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

/// The mount points of type `fuse.tablemount`; a line is `id parent device root MOUNTPOINT options … - TYPE source options`.
fn parse(mountinfo: &[u8]) -> Vec<PathBuf> {
    let mount_point = |line: &[u8]| {
        let fields: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        let dash = fields.iter().position(|field| *field == b"-")?;
        (*fields.get(dash + 1)? == b"fuse.tablemount").then(|| unescape(fields.get(4)?))?
    };
    mountinfo
        .split(|b| *b == b'\n')
        .filter_map(mount_point)
        .collect()
}

/// Undoes the kernel's `\ooo` for space, tab, newline and backslash.
fn unescape(field: &[u8]) -> Option<PathBuf> {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, tail)) = rest.split_first() {
        rest = tail;
        if *byte != b'\\' {
            path.push(*byte);
            continue;
        }
        let (digits, tail) = rest.split_at_checked(3)?;
        path.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?);
        rest = tail;
    }
    Some(OsStr::from_bytes(&path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_tables_are_found() {
        let list = b"22 1 0:21 / /proc rw - proc proc rw\n\
            36 22 0:40 / /mnt/my\\040tables ro,nosuid shared:1 - fuse.tablemount http://127.0.0.1:8080 ro\n\
            broken\n";
        assert_eq!(parse(list), [PathBuf::from("/mnt/my tables")]);
    }
}
