//! Encoder and result types of a saved job.

use std::convert::Infallible;

pub(super) type To<'b> = minicbor::Encoder<&'b mut Vec<u8>>;
/// Writing to memory cannot fail.
pub(super) type Put = Result<(), minicbor::encode::Error<Infallible>>;
pub(super) type Take<T> = Result<T, minicbor::decode::Error>;
