//! A 64-bit fingerprint of a value: the hash of its canonical text.

use serde_json::Value;

use super::canonical::write_canonical;
use crate::fnv::Fnv1a;

/// Equal contents have equal fingerprints, now and in every later version.
pub(super) fn fingerprint(value: &Value) -> u64 {
    let mut hash = Fnv1a::default();
    // `Fnv1a` never returns an error.
    let _ = write_canonical(value, &mut hash);
    hash.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fingerprints_never_change() {
        for (value, print) in [
            (json!(null), "5b9bc4ba528108e4"),
            (json!("a"), "d4272417d7c77eea"),
            (json!({"url": "https://example.org/ä", "n": [1, 2.5, 1e20, true]}), "2c9c279820423d69"),
        ] {
            assert_eq!(format!("{:016x}", fingerprint(&value)), print);
        }
    }
}
