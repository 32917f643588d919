//! CBOR of types from other crates in a snapshot.

use std::convert::Infallible;

use minicbor::decode::Error as Unread;

use crate::event::codec;

pub(super) type StateEncoder<'b> = minicbor::Encoder<&'b mut Vec<u8>>;
/// Writing to memory cannot fail.
pub(super) type PutResult = Result<(), minicbor::encode::Error<Infallible>>;
pub(super) type TakeResult<T> = Result<T, minicbor::decode::Error>;

codec::foreign! {
    pub(in crate::job) json_map: std::collections::BTreeMap<String, serde_json::Value> {
        encode(values, to) {
            let texts = values.iter().map(|(name, value)| (name, value.to_string()));
            to.encode(texts.collect::<std::collections::BTreeMap<_, _>>())?.ok()
        }
        decode(from) {
            let texts: std::collections::BTreeMap<String, String> = from.decode()?;
            let values = texts.into_iter().map(|(name, text)| {
                let value = serde_json::from_str(&text);
                Ok((name, value.map_err(|_| super::Unread::message("a value is not JSON"))?))
            });
            values.collect()
        }
    }

    pub(in crate::job) progress: undaunted_policy::RetryProgress {
        encode(progress, to) {
            to.array(3)?.u32(progress.retries)?;
            super::codec::span::encode(&progress.spent, to, &mut ())?;
            super::codec::maybe_span::encode(&progress.previous, to, &mut ())
        }
        decode(from) {
            if from.array()? != Some(3) {
                return Err(super::Unread::message("progress needs three numbers"));
            }
            Ok(undaunted_policy::RetryProgress {
                retries: from.u32()?,
                spent: super::codec::span::decode(from, &mut ())?,
                previous: super::codec::maybe_span::decode(from, &mut ())?,
            })
        }
    }
}
