//! This boot of the machine, this pid namespace, and random names.

use std::io;
use std::os::unix::fs::MetadataExt;

/// Nothing that ran in another boot runs now.
pub(crate) fn boot() -> io::Result<String> {
    #[cfg(feature = "failpoints")]
    if let Ok(other) = std::env::var("UNDAUNTED_TEST_BOOT_ID") {
        return Ok(other);
    }
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// The pid namespace; in another container a number means another process.
pub(crate) fn pid_space() -> io::Result<u64> {
    std::fs::metadata("/proc/self/ns/pid").map(|found| found.ino())
}

/// 32 random hexadecimal digits.
pub fn random_name() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().replace('-', ""))
}

/// 64 random bits.
pub fn random_number() -> io::Result<u64> {
    let name = random_name()?;
    let digits = name.get(16..).unwrap_or_default();
    Ok(u64::from_str_radix(digits, 16).unwrap_or_default())
}
