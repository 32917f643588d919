//! How types of other crates stand in a saved job.

/// JSON values by name, as texts.
pub(in crate::job) mod json_map {
    use std::collections::BTreeMap;

    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};
    use serde_json::Value;

    pub(in crate::job) fn encode<C, W: Write>(
        values: &BTreeMap<String, Value>,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        let texts = values.iter().map(|(name, value)| (name, value.to_string()));
        to.encode(texts.collect::<BTreeMap<_, _>>())?.ok()
    }

    pub(in crate::job) fn decode<C>(
        from: &mut Decoder<'_>,
        _: &mut C,
    ) -> Result<BTreeMap<String, Value>, Unread> {
        let texts: BTreeMap<String, String> = from.decode()?;
        let values = texts.into_iter().map(|(name, text)| {
            let value = serde_json::from_str(&text);
            Ok((
                name,
                value.map_err(|_| Unread::message("a value that is not JSON"))?,
            ))
        });
        values.collect()
    }
}

/// What attempts have used up.
pub(in crate::job) mod progress {
    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};
    use undaunted_policy::Progress;

    use crate::event::codec::{maybe_span, span};

    pub(in crate::job) fn encode<C, W: Write>(
        progress: &Progress,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        to.array(3)?.u32(progress.retries)?;
        span::encode(&progress.spent, to, context)?;
        maybe_span::encode(&progress.previous, to, context)
    }

    pub(in crate::job) fn decode<C>(
        from: &mut Decoder<'_>,
        context: &mut C,
    ) -> Result<Progress, Unread> {
        if from.array()? != Some(3) {
            return Err(Unread::message("progress is three numbers"));
        }
        Ok(Progress {
            retries: from.u32()?,
            spent: span::decode(from, context)?,
            previous: maybe_span::decode(from, context)?,
        })
    }
}
