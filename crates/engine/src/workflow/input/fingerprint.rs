//! A 64-bit fingerprint of a value: FNV-1a over its canonical text.
//!
//! Written out here because stored identities depend on every bit of it, and the hashes of the standard
//! library may change. It is not secure: two contents may share a fingerprint, and callers must cope.

use std::fmt;

use serde_json::Value;

use super::canonical::write_canonical;

/// Equal contents have equal fingerprints, now and in every later version.
pub(super) fn fingerprint(value: &Value) -> u64 {
    let mut hash = Fnv1a::default();
    // `Fnv1a` never returns an error.
    let _ = write_canonical(value, &mut hash);
    hash.0
}

struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl fmt::Write for Fnv1a {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fmt::Write;
    use serde_json::json;

    #[test]
    fn the_hash_is_fnv_1a() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut fnv = Fnv1a::default();
            fnv.write_str(text).unwrap();
            assert_eq!(fnv.0, hash, "{text}");
        }
    }

    #[test]
    fn fingerprints_never_change() {
        for (value, print) in [
            (json!(null), "5b9bc4ba528108e4"),
            (json!("a"), "d4272417d7c77eea"),
            (
                json!({"url": "https://example.org/ä", "n": [1, 2.5, 1e20, true]}),
                "2c9c279820423d69",
            ),
        ] {
            assert_eq!(format!("{:016x}", fingerprint(&value)), print);
        }
    }
}
