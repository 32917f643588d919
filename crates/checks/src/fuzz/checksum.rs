//! The checksum of logs and archives, so that a mutant can have the right one.
//!
//! Without it every mutant would be refused for its checksum, and nothing behind that would be tried.
//! Written down here once more rather than asked of the product: a checksum that is computed the same
//! wrong way twice would look right.

/// The CRC-32 of IEEE 802.3.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 * (sum & 1));
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step));
    !sum
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn the_checksum_of_the_digits_is_the_one_in_every_table() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
