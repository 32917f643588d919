//! Refuses stores on network file systems.
//!
//! SQLite's WAL needs memory shared between processes, and ownership needs locks that end with a process.
//! Across machines neither is reliable. Linux identifies a file system by a number; all FUSE file systems share
//! one, so their names are looked up in the mount table.

use std::path::Path;

use crate::StoreError;

const KNOWN: [(u64, &str); 11] = [
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x517b, "smb"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x7375_7245, "coda"),
    (0x0bd0_0bd0, "lustre"),
    (0x564c, "ncp"),
    (0x786f_4256, "vboxsf"),
];
const FUSE: u64 = 0x6573_5546;
/// Network file systems that are mounted with FUSE.
const OVER_FUSE: [&str; 14] = [
    "sshfs",
    "rclone",
    "s3fs",
    "gcsfuse",
    "glusterfs",
    "cephfs",
    "davfs",
    "curlftpfs",
    "smbnetfs",
    "juicefs",
    "moosefs",
    "seaweedfs",
    "blobfuse2",
    "goofys",
];

pub(super) fn refuse(folder: &Path) -> Result<(), StoreError> {
    // An unknown file system counts as local.
    let Some(number) = number(folder) else {
        return Ok(());
    };
    let mounted = || {
        let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        mount_kind(&table, folder)
    };
    match name(number, mounted) {
        None => Ok(()),
        Some(name) => Err(StoreError::NetworkFileSystem { path: folder.to_owned(), name }),
    }
}

#[cfg(target_os = "linux")]
fn number(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statfs(folder).ok()?;
    // `f_type` is signed on some machines and has 32 bits on others; the numbers all fit in 32 bits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as said above")]
    let number = found.f_type as u32;
    Some(u64::from(number))
}

#[cfg(not(target_os = "linux"))]
fn number(_folder: &Path) -> Option<u64> {
    None
}

/// The name of a network file system; `None` for a local one.
fn name(number: u64, mounted: impl FnOnce() -> Option<String>) -> Option<String> {
    if number == FUSE {
        let mounted = mounted()?;
        let kind = mounted.strip_prefix("fuse.").unwrap_or(&mounted);
        return OVER_FUSE.contains(&kind).then_some(mounted);
    }
    let known = KNOWN.iter().find(|(known, _)| *known == number)?;
    Some(known.1.to_owned())
}

/// How the file system of a path was mounted, from `/proc/self/mountinfo`.
fn mount_kind(table: &str, path: &Path) -> Option<String> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts = table.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        // The table escapes a space in a path; no other escape matters to us.
        let point = before.split(' ').nth(4)?.replace("\\040", " ");
        let kind = after.split(' ').next()?;
        path.starts_with(&point).then_some((point.len(), kind))
    });
    // The later of two mounts on one point is on top, and `max_by_key` returns the last maximum.
    let (_, kind) = mounts.max_by_key(|(length, _)| *length)?;
    Some(kind.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{FUSE, mount_kind, name, refuse};

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / /srv rw shared:2 - nfs4 server:/srv rw
41 22 0:41 / /srv/my\\040data rw - fuse.sshfs me@there: rw
42 22 0:42 / /data rw - ext4 /dev/sdb rw
43 42 0:43 / /data rw - fuse.rclone far: rw
";

    #[test]
    fn network_file_systems_are_known_by_number() {
        let none = || None;
        assert_eq!(name(0x6969, none).as_deref(), Some("nfs"));
        assert_eq!(name(0xff53_4d42, none).as_deref(), Some("cifs"));
        assert_eq!(name(0x0102_1997, none).as_deref(), Some("9p"));
        for local in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x794c_7630] {
            assert_eq!(name(local, none), None);
        }
    }

    #[test]
    fn fuse_is_judged_by_what_is_mounted() {
        let mounted = |kind: &'static str| name(FUSE, || Some(kind.to_owned()));
        assert_eq!(mounted("fuse.sshfs").as_deref(), Some("fuse.sshfs"));
        assert_eq!(mounted("fuse.ntfs-3g"), None);
        assert_eq!(mounted("fuseblk"), None);
        assert_eq!(name(FUSE, || None), None);
    }

    #[test]
    fn the_innermost_and_latest_mount_counts() {
        let kind = |path| mount_kind(TABLE, Path::new(path));
        assert_eq!(kind("/nowhere/x").as_deref(), Some("ext4"));
        assert_eq!(kind("/srv/x").as_deref(), Some("nfs4"));
        assert_eq!(kind("/srv/my data/x").as_deref(), Some("fuse.sshfs"));
        assert_eq!(kind("/srvx").as_deref(), Some("ext4"));
        assert_eq!(kind("/data/x").as_deref(), Some("fuse.rclone"));
    }

    #[test]
    fn a_local_folder_is_accepted() {
        refuse(&std::env::temp_dir()).unwrap();
    }
}
