//! FNV-1a, in 64 bits.
//!
//! Written out here because stored identities depend on every bit of the hash, and the hashes of the standard
//! library may change. It is not secure: two contents may share a hash, which callers must allow for.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fnv1a(pub(crate) u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    pub(crate) fn of(bytes: impl IntoIterator<Item = u8>) -> u64 {
        let mut hash = Self::default();
        for byte in bytes {
            hash.put(byte);
        }
        hash.0
    }

    const fn put(&mut self, byte: u8) {
        self.0 = (self.0 ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
    }
}

impl fmt::Write for Fnv1a {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.put(byte);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Fnv1a;

    #[test]
    fn the_hash_is_fnv_1a() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(Fnv1a::of(text.bytes()), hash, "{text}");
        }
    }
}
