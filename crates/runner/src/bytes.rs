//! Values as bytes, for the log and for the socket.
//!
//! Both sides are the same program, so the encoding is plain: little-endian numbers, lengths before
//! bytes, a number before each variant. Reading trusts nothing: a length is compared with what is
//! there before memory is taken for it, and what is left over is an error.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub(crate) &'static str);

/// A value that can be written as bytes and read again.
pub(crate) trait Bytes: Sized {
    fn put(&self, to: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Result<Self, Malformed>;
}

/// The value as bytes.
pub(crate) fn encode<T: Bytes>(value: &T) -> Vec<u8> {
    let mut to = vec![];
    value.put(&mut to);
    to
}

/// The value that these bytes, all of them, stand for.
pub(crate) fn decode<T: Bytes>(mut from: &[u8]) -> Result<T, Malformed> {
    let value = T::take(&mut from)?;
    if from.is_empty() {
        Ok(value)
    } else {
        Err(Malformed("bytes are left over"))
    }
}

/// The number of a variant, or of anything else that has few.
pub(crate) fn take_tag(from: &mut &[u8]) -> Result<u8, Malformed> {
    u8::take(from)
}

fn take_slice<'a>(from: &mut &'a [u8], length: usize) -> Result<&'a [u8], Malformed> {
    let (taken, rest) = from
        .split_at_checked(length)
        .ok_or(Malformed("bytes are missing"))?;
    *from = rest;
    Ok(taken)
}

macro_rules! number {
    ($($kind:ty),*) => {$(
        impl Bytes for $kind {
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
                let (taken, rest) = from
                    .split_first_chunk()
                    .ok_or(Malformed("bytes are missing"))?;
                *from = rest;
                Ok(Self::from_le_bytes(*taken))
            }
        }
    )*};
}
number!(u8, u32, u64, i32);

impl Bytes for OsString {
    fn put(&self, to: &mut Vec<u8>) {
        put_length(self.len(), to);
        to.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        let length = take_length(from)?;
        Ok(Self::from_vec(take_slice(from, length)?.to_vec()))
    }
}

impl Bytes for PathBuf {
    fn put(&self, to: &mut Vec<u8>) {
        put_length(self.as_os_str().len(), to);
        to.extend_from_slice(self.as_os_str().as_bytes());
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        OsString::take(from).map(Self::from)
    }
}

impl Bytes for String {
    fn put(&self, to: &mut Vec<u8>) {
        put_length(self.len(), to);
        to.extend_from_slice(self.as_bytes());
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        let length = take_length(from)?;
        let text = std::str::from_utf8(take_slice(from, length)?);
        text.map(str::to_owned)
            .map_err(|_| Malformed("text is not UTF-8"))
    }
}

impl<T: Bytes> Bytes for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        put_length(self.len(), to);
        for each in self {
            each.put(to);
        }
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        // Grows as it reads: a length alone takes no memory.
        let length = take_length(from)?;
        (0..length).map(|_| T::take(from)).collect()
    }
}

impl<A: Bytes, B: Bytes> Bytes for (A, B) {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
        self.1.put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Ok((A::take(from)?, B::take(from)?))
    }
}

impl<T: Bytes> Bytes for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(self.is_some()).put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        match take_tag(from)? {
            0 => Ok(None),
            1 => T::take(from).map(Some),
            _ => Err(Malformed("neither there nor absent")),
        }
    }
}

/// Whole nanoseconds; longer than 584 years is 584 years.
impl Bytes for Duration {
    fn put(&self, to: &mut Vec<u8>) {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        u64::take(from).map(Self::from_nanos)
    }
}

/// Whole nanoseconds since 1970; earlier is 1970.
impl Bytes for SystemTime {
    fn put(&self, to: &mut Vec<u8>) {
        let since = self.duration_since(Self::UNIX_EPOCH);
        since.unwrap_or_default().put(to);
    }

    fn take(from: &mut &[u8]) -> Result<Self, Malformed> {
        Self::UNIX_EPOCH
            .checked_add(Duration::take(from)?)
            .ok_or(Malformed("a time is out of range"))
    }
}

fn put_length(length: usize, to: &mut Vec<u8>) {
    // Nothing of four gigabytes is ever encoded; a frame ends long before.
    u32::try_from(length).unwrap_or(u32::MAX).put(to);
}

fn take_length(from: &mut &[u8]) -> Result<usize, Malformed> {
    let length = usize::try_from(u32::take(from)?).unwrap_or(usize::MAX);
    // Everything encoded takes a byte at least, so no honest length passes what is there.
    if length > from.len() {
        return Err(Malformed("a length passes the end"));
    }
    Ok(length)
}
