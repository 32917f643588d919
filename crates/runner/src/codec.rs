//! System types in the messages of a keeper and in the log of its spool, for `#[cbor(with = "codec")]`.
//!
//! An OS string is bytes, which need not be UTF-8; an instant is nanoseconds since 1970. Decoding
//! allocates only for data that is present, never for a claimed length.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{Decoder, Encoder};
use undaunted_engine::event::codec::span;

/// A type that minicbor does not support, or encodes differently.
pub(crate) trait CborSystemType: Sized {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>>;
    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}

pub(crate) fn encode<T: CborSystemType, C, W: Write>(
    value: &T,
    to: &mut Encoder<W>,
    _: &mut C,
) -> Result<(), EncodeError<W::Error>> {
    value.put(to)
}

pub(crate) fn decode<T: CborSystemType, C>(from: &mut Decoder<'_>, _: &mut C) -> Result<T, DecodeError> {
    T::take(from)
}

impl CborSystemType for OsString {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>> {
        to.bytes(self.as_bytes())?.ok()
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        from.bytes().map(|bytes| Self::from_vec(bytes.to_vec()))
    }
}

impl CborSystemType for PathBuf {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>> {
        to.bytes(self.as_os_str().as_bytes())?.ok()
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        OsString::take(from).map(Self::from)
    }
}

impl CborSystemType for Duration {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>> {
        span::encode(self, to, &mut ())
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        span::decode(from, &mut ())
    }
}

impl CborSystemType for SystemTime {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>> {
        self.duration_since(Self::UNIX_EPOCH).unwrap_or_default().put(to)
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::UNIX_EPOCH
            .checked_add(Duration::take(from)?)
            .ok_or_else(|| DecodeError::message("a time is out of range"))
    }
}

impl<T: CborSystemType> CborSystemType for Option<T> {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>> {
        match self {
            Some(value) => value.put(to),
            None => to.null()?.ok(),
        }
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if from.datatype()? == minicbor::data::Type::Null {
            from.null()?;
            return Ok(None);
        }
        T::take(from).map(Some)
    }
}

impl<A: CborSystemType, B: CborSystemType> CborSystemType for (A, B) {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>> {
        to.array(2)?;
        self.0.put(to)?;
        self.1.put(to)
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        match from.array()? {
            Some(2) => Ok((A::take(from)?, B::take(from)?)),
            _ => Err(DecodeError::message("two values are expected")),
        }
    }
}

impl<T: CborSystemType> CborSystemType for Vec<T> {
    fn put<W: Write>(&self, to: &mut Encoder<W>) -> Result<(), EncodeError<W::Error>> {
        to.array(u64::try_from(self.len()).unwrap_or(u64::MAX))?;
        self.iter().try_for_each(|each| each.put(to))
    }

    fn take(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let length = from.array()?;
        let length = length.ok_or_else(|| DecodeError::message("a list without a length"))?;
        (0..length).map(|_| T::take(from)).collect()
    }
}
