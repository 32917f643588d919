//! CBOR of types from other crates in a snapshot.

use std::convert::Infallible;

pub(super) type StateEncoder<'b> = minicbor::Encoder<&'b mut Vec<u8>>;
/// Writing to memory cannot fail.
pub(super) type PutResult = Result<(), minicbor::encode::Error<Infallible>>;
pub(super) type TakeResult<T> = Result<T, minicbor::decode::Error>;

pub(in crate::job) mod json_map {
    use std::collections::BTreeMap;

    use minicbor::decode::Error as Unread;
    use minicbor::encode::Write;
    use minicbor::{Decoder, Encoder};
    use serde_json::Value;

    use crate::event::codec::{Decoded, Encoded};

    pub(in crate::job) fn encode<C, W: Write>(
        values: &BTreeMap<String, Value>,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Encoded<W> {
        let texts = values.iter().map(|(name, value)| (name, value.to_string()));
        to.encode(texts.collect::<BTreeMap<_, _>>())?.ok()
    }

    pub(in crate::job) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Decoded<BTreeMap<String, Value>> {
        let texts: BTreeMap<String, String> = from.decode()?;
        let values = texts.into_iter().map(|(name, text)| {
            let value = serde_json::from_str(&text);
            let value = value.map_err(|_| Unread::message("a value is not JSON"))?;
            Ok((name, value))
        });
        values.collect()
    }
}

pub(in crate::job) mod progress {
    use minicbor::decode::Error as Unread;
    use minicbor::encode::Write;
    use minicbor::{Decoder, Encoder};
    use undaunted_policy::RetryUsage;

    use crate::event::codec::{Decoded, Encoded, maybe_span, span};

    pub(in crate::job) fn encode<C, W: Write>(
        progress: &RetryUsage,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Encoded<W> {
        to.array(3)?.u32(progress.retries)?;
        span::encode(&progress.spent, to, context)?;
        maybe_span::encode(&progress.previous, to, context)
    }

    pub(in crate::job) fn decode<C>(from: &mut Decoder<'_>, context: &mut C) -> Decoded<RetryUsage> {
        if from.array()? != Some(3) {
            return Err(Unread::message("progress needs three numbers"));
        }
        Ok(RetryUsage {
            retries: from.u32()?,
            spent: span::decode(from, context)?,
            previous: maybe_span::decode(from, context)?,
        })
    }
}
