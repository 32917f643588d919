//! Framing of messages on a stream: a length, then so many bytes.

use std::io::{self, Read};

use minicbor::Encode;
use undaunted_engine::event::codec::put;

/// In bytes. The arguments and environment of a command are a few mebibytes at most.
const LONGEST: usize = 16 << 20;

/// None if the message is too long for any reader.
pub(crate) fn framed(message: &impl Encode<()>) -> Option<Vec<u8>> {
    // Enough for most messages without reallocation.
    let mut framed = Vec::with_capacity(128);
    framed.extend_from_slice(&[0; 4]);
    put(message, &mut framed);
    let (length, payload) = framed.split_first_chunk_mut()?;
    *length = u32::try_from(payload.len()).ok()?.to_le_bytes();
    (payload.len() <= LONGEST).then_some(framed)
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeeperFrame {
    Message(Vec<u8>),
    /// No message has this length; the stream cannot be split into messages any more.
    TooLong,
    /// The other side has closed the stream, or died in the middle of a message.
    Closed,
}

pub(crate) fn next_frame(from: &mut impl Read) -> io::Result<KeeperFrame> {
    let mut length = [0; 4];
    match from.read_exact(&mut length) {
        Err(error) if is_close(&error) => return Ok(KeeperFrame::Closed),
        read => read?,
    }
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > LONGEST {
        return Ok(KeeperFrame::TooLong);
    }
    // Grows with what arrives: a length alone allocates nothing.
    let mut payload = vec![];
    let most = u64::try_from(length).unwrap_or(u64::MAX);
    match from.take(most).read_to_end(&mut payload) {
        Ok(read) if read == length => Ok(KeeperFrame::Message(payload)),
        Ok(_) => Ok(KeeperFrame::Closed),
        Err(error) if is_close(&error) => Ok(KeeperFrame::Closed),
        Err(error) => Err(error),
    }
}

/// For fuzzing: the messages of a stream, up to its end or to what is not a message.
#[doc(hidden)]
pub fn messages(mut from: impl Read) -> io::Result<Vec<Vec<u8>>> {
    let mut messages = vec![];
    while let KeeperFrame::Message(message) = next_frame(&mut from)? {
        messages.push(message);
    }
    Ok(messages)
}

fn is_close(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}
