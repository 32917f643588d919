//! What the parts of a saved job are written to, and what comes of it.

use std::convert::Infallible;

pub(super) type To<'b> = minicbor::Encoder<&'b mut Vec<u8>>;
/// What writing to memory comes to: it cannot fail.
pub(super) type Put = Result<(), minicbor::encode::Error<Infallible>>;
/// What reading comes to.
pub(super) type Take<T> = Result<T, minicbor::decode::Error>;
