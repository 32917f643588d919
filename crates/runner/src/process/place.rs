//! Where and when we are: this boot of the machine, this space of process numbers.

use std::io;
use std::os::unix::fs::MetadataExt;

/// The id of this boot. Another one: nothing that ran then runs now.
pub(crate) fn boot() -> io::Result<String> {
    #[cfg(feature = "failpoints")]
    if let Ok(other) = std::env::var("UNDAUNTED_TEST_BOOT_ID") {
        return Ok(other);
    }
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// The space our process numbers belong to; in another container a number means another process.
pub(crate) fn pid_space() -> io::Result<u64> {
    std::fs::metadata("/proc/self/ns/pid").map(|found| found.ino())
}

/// A name that nobody else has: 32 digits, drawn by the system.
pub fn random_name() -> io::Result<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(text.trim().replace('-', ""))
}

/// A number that nobody can guess.
pub fn random_number() -> io::Result<u64> {
    let name = random_name()?;
    let digits = name.get(16..).unwrap_or_default();
    Ok(u64::from_str_radix(digits, 16).unwrap_or_default())
}
