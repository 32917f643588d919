//! Messages on a stream: a length, then so many bytes.

use std::io::{self, Read};

use minicbor::Encode;
use undaunted_engine::event::codec::put;

/// The longest message. A command's arguments and environment are a few mebibytes at most.
const LONGEST: usize = 16 << 20;

/// A message ready to be sent; none if it is too long for any reader.
pub(crate) fn framed(message: &impl Encode<()>) -> Option<Vec<u8>> {
    // Most are shorter, so that nothing is moved while they are written.
    let mut framed = Vec::with_capacity(128);
    framed.extend_from_slice(&[0; 4]);
    put(message, &mut framed);
    let (length, payload) = framed.split_first_chunk_mut()?;
    *length = u32::try_from(payload.len()).ok()?.to_le_bytes();
    (payload.len() <= LONGEST).then_some(framed)
}

/// What a stream brings next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Message(Vec<u8>),
    /// A length no message has; what follows cannot be told apart any more.
    TooLong,
    /// The other side has closed, or has died in the middle of a message.
    Closed,
}

/// The next message of a stream.
pub(crate) fn next_frame(from: &mut impl Read) -> io::Result<Frame> {
    let mut length = [0; 4];
    if !fill(from, &mut length)? {
        return Ok(Frame::Closed);
    }
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Ok(Frame::TooLong);
    }
    // Grows with what arrives: a length alone takes no memory.
    let mut payload = vec![];
    let most = u64::try_from(length).unwrap_or(u64::MAX);
    match from.take(most).read_to_end(&mut payload) {
        Ok(read) if read == length => Ok(Frame::Message(payload)),
        Ok(_) => Ok(Frame::Closed),
        Err(error) if is_close(&error) => Ok(Frame::Closed),
        Err(error) => Err(error),
    }
}

/// The messages of a stream, up to its end or to what is none. For fuzzing.
#[doc(hidden)]
pub fn messages(mut from: impl Read) -> io::Result<Vec<Vec<u8>>> {
    let mut messages = vec![];
    while let Frame::Message(message) = next_frame(&mut from)? {
        messages.push(message);
    }
    Ok(messages)
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if is_close(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_close(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}
