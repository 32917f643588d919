//! The encoding of records in a row.
//!
//! Many records share a row. Each has its length and a checksum over aggregate, version, length and bytes, so
//! that a record that was altered, cut short or moved is detected, and the records before it can be read.

use crc32fast::Hasher;

use crate::{AggregateId, Version};

/// Length and checksum, four bytes each, little-endian.
const HEADER: usize = 8;

/// How a record is damaged, as a clause for people.
pub(super) type Damage = &'static str;

/// Encodes and decodes the records of one aggregate. It holds the part of the checksum that is the same for
/// all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordCodec(u32);

impl RecordCodec {
    pub(super) fn of(aggregate: &AggregateId) -> Self {
        let mut hasher = Hasher::new();
        for part in [aggregate.family(), aggregate.id()] {
            hasher.update(part.as_bytes());
            hasher.update(&[0]);
        }
        Self(hasher.finalize())
    }

    pub(super) fn checksum(self, version: Version, bytes: &[u8]) -> u32 {
        let mut hasher = Hasher::new_with_initial(self.0);
        let mut header = [0; 12];
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let (at, long) = header.split_at_mut(8);
        at.copy_from_slice(&version.0.to_le_bytes());
        long.copy_from_slice(&length.to_le_bytes());
        hasher.update(&header);
        hasher.update(bytes);
        hasher.finalize()
    }

    pub(super) fn write(self, row: &mut Vec<u8>, version: Version, bytes: &[u8]) {
        // `LARGEST_RECORD` is far below 4 GiB. A longer record would fail its own checksum.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        row.reserve(bytes.len().saturating_add(HEADER));
        row.extend_from_slice(&length.to_le_bytes());
        row.extend_from_slice(&self.checksum(version, bytes).to_le_bytes());
        row.extend_from_slice(bytes);
    }

    /// Takes the next record, which must have this version, from the front of a row.
    pub(super) fn read<'a>(self, row: &mut &'a [u8], version: Version) -> Result<&'a [u8], Damage> {
        let truncate_log = "it is cut short";
        let (length, rest) = row.split_first_chunk::<4>().ok_or(truncate_log)?;
        let (checksum, rest) = rest.split_first_chunk::<4>().ok_or(truncate_log)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| truncate_log)?;
        let (bytes, rest) = rest.split_at_checked(length).ok_or(truncate_log)?;
        if self.checksum(version, bytes) != u32::from_le_bytes(*checksum) {
            return Err("its checksum does not match");
        }
        *row = rest;
        Ok(bytes)
    }
}

/// Skips the next record of a row without checking it. If the skipped length was damaged, the next record
/// that is read fails its checksum.
pub(super) fn skip(row: &mut &[u8]) -> Result<(), Damage> {
    let truncate_log = "it is cut short";
    let (length, rest) = row.split_first_chunk::<4>().ok_or(truncate_log)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| truncate_log)?;
    let behind = length.saturating_add(HEADER.saturating_sub(4));
    *row = rest.get(behind..).ok_or(truncate_log)?;
    Ok(())
}

/// The length of a record in a row.
pub(super) fn encoded_len(record: &[u8]) -> usize {
    record.len().saturating_add(HEADER)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::RecordCodec;
    use crate::aggregate::AggregateId;
    use crate::aggregate::Version;

    fn codec(id: &str) -> RecordCodec {
        RecordCodec::of(&AggregateId::new("job", id).unwrap())
    }

    fn row(records: &[Vec<u8>]) -> Vec<u8> {
        let mut row = vec![];
        for (version, record) in (1..).map(Version).zip(records) {
            codec("a").write(&mut row, version, record);
        }
        row
    }

    /// The records of a row before the first damaged one.
    fn readable(codec: RecordCodec, mut row: &[u8], first: u64) -> Vec<Vec<u8>> {
        let mut found = vec![];
        let mut version = Version(first);
        while let Ok(record) = codec.read(&mut row, version) {
            found.push(record.to_vec());
            version = version.next();
        }
        found
    }

    fn records() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..12)
    }

    proptest! {
        #[test]
        fn a_written_row_is_read_back(records in records()) {
            prop_assert_eq!(readable(codec("a"), &row(&records), 1), records);
        }

        #[test]
        fn an_altered_row_gives_only_the_records_before_the_damage(
            records in records(), place in any::<prop::sample::Index>(), flip in 1_u8..,
        ) {
            let mut row = row(&records);
            let place = place.index(row.len());
            row[place] ^= flip;
            let found = readable(codec("a"), &row, 1);
            prop_assert!(found.len() < records.len());
            prop_assert_eq!(&found[..], &records[..found.len()]);
        }

        #[test]
        fn a_row_that_is_cut_short_gives_whole_records(
            records in records(), place in any::<prop::sample::Index>(),
        ) {
            let row = row(&records);
            let found = readable(codec("a"), &row[..place.index(row.len())], 1);
            prop_assert_eq!(&found[..], &records[..found.len()]);
        }

        #[test]
        fn a_row_in_the_wrong_place_gives_nothing(records in records(), first in 2_u64..) {
            prop_assert!(readable(codec("a"), &row(&records), first).is_empty());
            prop_assert!(readable(codec("b"), &row(&records), 1).is_empty());
        }
    }
}
