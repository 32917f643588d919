//! Values generated from bytes.
//!
//! Reads from the front and gives zeros past the end, so that every input is valid and a small change of the
//! input is a small change of the values. Half of the values are at the ends of their range, where mistakes
//! are likely.

use std::time::Duration;

use undaunted_policy::Timestamp;

/// The longest duration a policy accepts.
pub(super) const LONGEST: Duration = Duration::from_nanos(u64::MAX);

/// The part of the input that is not read yet.
pub(super) struct ByteSource<'a>(&'a [u8]);

impl<'a> ByteSource<'a> {
    pub(super) const fn of(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    pub(super) fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes([(); 2].map(|()| self.byte()))
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes([(); 4].map(|()| self.byte()))
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.byte()))
    }

    pub(super) fn one_of<T: Clone>(&mut self, first: T, others: &[T]) -> T {
        let index = usize::from(self.byte()) % (others.len() + 1);
        let other = index.checked_sub(1).and_then(|index| others.get(index));
        other.cloned().unwrap_or(first)
    }

    /// At most `most` values of `read`.
    pub(super) fn few<T>(&mut self, most: u8, mut read: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let number = self.byte() % (most + 1);
        (0..number).map(|_| read(self)).collect()
    }

    pub(super) fn maybe<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| read(self))
    }

    /// A count, mostly small or near the maximum.
    pub(super) fn count(&mut self) -> u32 {
        match self.byte() {
            0..=15 => u32::MAX,
            16..=31 => u32::MAX - 1,
            32..=47 => self.u32(),
            48..=111 => u32::from(self.byte()),
            small => u32::from(small % 16),
        }
    }

    pub(super) fn setting(&mut self) -> Duration {
        match self.byte() {
            0..=15 => Duration::ZERO,
            16..=31 => Duration::from_nanos(1),
            32..=47 => LONGEST,
            48..=95 => Duration::from_nanos(self.u64()),
            96..=143 => Duration::from_micros(self.u16().into()),
            _ => Duration::from_millis(self.u16().into()),
        }
    }

    pub(super) fn duration(&mut self) -> Duration {
        match self.byte() {
            0..=15 => Duration::MAX,
            16..=31 => Duration::new(self.u64(), self.u32() % 1_000_000_000),
            _ => self.setting(),
        }
    }

    pub(super) fn instant(&mut self) -> Timestamp {
        match self.byte() {
            0..=15 => Timestamp::MAX,
            16..=31 => Timestamp::from_nanos(u64::MAX - 1),
            32..=47 => Timestamp::from_nanos(self.u64()),
            _ => Timestamp::from_millis(self.u32().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_its_end_an_input_is_all_zeros() {
        let mut bytes = ByteSource::of(&[7]);
        assert_eq!((bytes.byte(), bytes.byte(), bytes.u64()), (7, 0, 0));
        assert_eq!(bytes.one_of('a', &['b']), 'a');
        assert!(bytes.is_empty() && bytes.few(9, ByteSource::byte).is_empty());
    }

    #[test]
    fn a_read_byte_is_consumed() {
        let mut bytes = ByteSource::of(&[1, 0, 2, 255, 255, 255]);
        assert_eq!((bytes.u16(), bytes.byte()), (1, 2));
        assert!(bytes.flag());
        assert_eq!(bytes.few(1, ByteSource::byte), [255]);
        assert!(bytes.is_empty());
    }
}
