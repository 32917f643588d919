//! Bytes that look like nothing, quickly.

/// So many bytes; a seed always gives the same ones.
pub(super) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length.saturating_add(8));
    // A state of zero would stay zero.
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
