//! An event with its time, as bytes.
//!
//! The first byte is the version of the format, the rest is CBOR with numbered fields. Fields that were
//! added later are optional, and each says what its absence means. A record of a newer format is refused.
//! The store, not this module, notices torn or altered bytes.

use minicbor::decode::Error as Unread;
use minicbor::{Decode, Decoder, Encode};
use undaunted_policy::Timestamp;

use super::codec::{self, Decoded};
use super::fact::Event;

/// The version of the format that is written.
pub const FORMAT: u8 = 1;

#[derive(Clone, Debug, PartialEq, Encode)]
pub struct Record {
    #[cbor(n(0), with = "codec::time")]
    pub at: Timestamp,
    #[n(1)]
    pub event: Event,
}

/// Written by hand because recovery decodes every record: a derived decoder moves the event once more.
impl<'b, C> Decode<'b, C> for Record {
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Decoded<Self> {
        // The usual header, an array of two, is read without a call.
        let fields = match from.input().get(from.position()) {
            Some(0x82) => {
                from.set_position(from.position().saturating_add(1));
                2
            }
            _ => from.array()?.unwrap_or_default(),
        };
        if fields < 2 {
            return Err(Unread::message("a record needs a time and an event"));
        }
        let record = Self { at: codec::time::decode(from, context)?, event: Event::decode(from, context)? };
        // Fields that a later release has added.
        for _ in 2..fields {
            from.skip()?;
        }
        Ok(record)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    #[error("its format {found} is newer than format {known}, the newest that this release reads")]
    Newer { found: u8, known: u8 },
    #[error("it cannot be read: {what}")]
    Malformed { what: String },
}

/// The names and values of a record of [`StepEvent::ItemsRead`](super::StepEvent::ItemsRead), without
/// copying them: a record holds up to a mebibyte, of which a reader needs a few. `None` for any other record.
pub fn items_of<'b>(record: &'b [u8]) -> Option<Vec<(&'b str, &'b str)>> {
    const ITEMS_READ: u32 = 3;
    let mut from = Decoder::new(record.strip_prefix(&[FORMAT])?);
    let walk = |from: &mut Decoder<'_>| -> Decoded<Option<u64>> {
        from.array()?;
        from.skip()?;
        from.array()?;
        if from.u32()? != ITEMS_READ {
            return Ok(None);
        }
        from.array()?;
        from.skip()?;
        from.array()
    };
    let count = walk(&mut from).ok()??;
    let item = |from: &mut Decoder<'b>| -> Decoded<(&'b str, &'b str)> {
        let fields = from.array()?.unwrap_or_default();
        let item = (from.str()?, from.str()?);
        (2..fields).try_for_each(|_| from.skip())?;
        Ok(item)
    };
    (0..count).map(|_| item(&mut from).ok()).collect()
}

impl Record {
    pub fn encode(&self) -> Vec<u8> {
        versioned(self)
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, RecordError> {
        read_versioned(bytes)
    }
}

pub(crate) fn versioned(record: &impl Encode<()>) -> Vec<u8> {
    versioned_as(FORMAT, record)
}

pub(crate) fn versioned_as(format: u8, record: &impl Encode<()>) -> Vec<u8> {
    // Most records are shorter, so nothing is moved while they are written.
    let mut bytes = Vec::with_capacity(64);
    bytes.push(format);
    codec::put(record, &mut bytes);
    bytes
}

pub(crate) fn read_versioned<R>(bytes: &[u8]) -> Result<R, RecordError>
where
    R: for<'b> Decode<'b, ()>,
{
    read_versioned_as(FORMAT, bytes)
}

pub(crate) fn read_versioned_as<R>(format: u8, bytes: &[u8]) -> Result<R, RecordError>
where
    R: for<'b> Decode<'b, ()>,
{
    match bytes.split_first() {
        Some((&found, rest)) if found == format => codec::read(rest),
        Some((&found, _)) if found > format => Err(RecordError::Newer { found, known: format }),
        _ => Err(RecordError::Malformed { what: "it has no known format".to_owned() }),
    }
}
