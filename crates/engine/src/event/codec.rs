//! CBOR of types from other crates.
//!
//! Instants and durations are nanoseconds. Words are stored as text, so that a record can be read without a
//! table of numbers. A value that does not fit is stored as the largest that does.

#![expect(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "the derive passes every field by reference"
)]

use minicbor::decode::Error as Unread;
use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

use super::record::RecordError;

pub(crate) type Encoded<W> = Result<(), minicbor::encode::Error<<W as Write>::Error>>;
pub(crate) type Decoded<T> = Result<T, Unread>;

pub fn put(value: &impl Encode<()>, to: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = minicbor::encode(value, to);
}

/// Decodes a value that must use all bytes.
pub fn read<T>(bytes: &[u8]) -> Result<T, RecordError>
where
    T: for<'b> Decode<'b, ()>,
{
    let mut decoder = minicbor::Decoder::new(bytes);
    let malformed = |what| RecordError::Malformed { what };
    let value = decoder.decode().map_err(|error| malformed(error.to_string()))?;
    if decoder.position() == bytes.len() { Ok(value) } else { Err(malformed("trailing bytes".to_owned())) }
}

pub(crate) mod time {
    use undaunted_policy::Timestamp;

    use super::{Decoded, Decoder, Encoded, Encoder, Write};

    pub(crate) fn encode<C, W: Write>(at: &Timestamp, to: &mut Encoder<W>, _: &mut C) -> Encoded<W> {
        to.u64(at.as_nanos())?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Decoded<Timestamp> {
        from.u64().map(Timestamp::from_nanos)
    }
}

pub mod span {
    use std::time::Duration;

    use super::{Decoded, Decoder, Encoded, Encoder, Write};

    pub fn encode<C, W: Write>(span: &Duration, to: &mut Encoder<W>, _: &mut C) -> Encoded<W> {
        to.u64(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))?.ok()
    }

    pub fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Decoded<Duration> {
        from.u64().map(Duration::from_nanos)
    }
}

pub(crate) mod reason {
    use undaunted_policy::Reason;

    use super::{Decoded, Decoder, Encoded, Encoder, Unread, Write};

    pub(crate) fn encode<C, W: Write>(why: &Reason, to: &mut Encoder<W>, _: &mut C) -> Encoded<W> {
        to.str(why.word())?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Decoded<Reason> {
        let word = from.str()?;
        word.parse().map_err(|_| Unread::message("unknown reason"))
    }
}

pub(crate) mod class {
    use undaunted_policy::FailureClass;

    use super::{Decoded, Decoder, Encoded, Encoder, Unread, Write};

    pub(crate) fn encode<C, W: Write>(class: &FailureClass, to: &mut Encoder<W>, _: &mut C) -> Encoded<W> {
        to.str(word(*class))?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Decoded<FailureClass> {
        let found = from.str()?;
        let all = [FailureClass::Transient, FailureClass::Throttled, FailureClass::Permanent];
        let class = all.into_iter().find(|class| word(*class) == found);
        class.ok_or_else(|| Unread::message("unknown failure class"))
    }

    pub(crate) const fn word(class: FailureClass) -> &'static str {
        match class {
            FailureClass::Transient => "transient",
            FailureClass::Throttled => "throttled",
            FailureClass::Permanent => "permanent",
        }
    }
}

pub(crate) mod cause {
    use undaunted_policy::{FailureCause, FailureClass};

    use super::{Decoded, Decoder, Encoded, Encoder, Unread, Write};

    pub(crate) fn encode<C, W: Write>(cause: &FailureCause, to: &mut Encoder<W>, _: &mut C) -> Encoded<W> {
        let (word, number) = parts(*cause);
        to.array(2)?.str(word)?.i32(number)?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Decoded<FailureCause> {
        if from.array()? != Some(2) {
            return Err(Unread::message("a cause needs a word and a number"));
        }
        let (word, number) = (from.str()?, from.i32()?);
        Ok(match word {
            "exit" => FailureCause::Exit(number),
            "signal" => FailureCause::Signal(number),
            "timeout" => FailureCause::Timeout,
            "network" => FailureCause::Network,
            "status" => FailureCause::Status(
                u16::try_from(number).map_err(|_| Unread::message("HTTP status out of range"))?,
            ),
            "refused" => FailureCause::Refused,
            "unreadable" => FailureCause::Unreadable,
            "interrupted" => FailureCause::Interrupted,
            "transient" => FailureCause::Other(FailureClass::Transient),
            "throttled" => FailureCause::Other(FailureClass::Throttled),
            "permanent" => FailureCause::Other(FailureClass::Permanent),
            _ => return Err(Unread::message("unknown cause")),
        })
    }

    pub(crate) fn parts(cause: FailureCause) -> (&'static str, i32) {
        match cause {
            FailureCause::Exit(code) => ("exit", code),
            FailureCause::Signal(signal) => ("signal", signal),
            FailureCause::Timeout => ("timeout", 0),
            FailureCause::Network => ("network", 0),
            FailureCause::Status(status) => ("status", i32::from(status)),
            FailureCause::Refused => ("refused", 0),
            FailureCause::Unreadable => ("unreadable", 0),
            FailureCause::Interrupted => ("interrupted", 0),
            FailureCause::Other(class) => (super::class::word(class), 0),
            // `FailureCause` may grow, but this release makes no cause that it does not know.
            _ => ("permanent", 0),
        }
    }
}

/// An array: retries (null is unlimited), first delay, longest delay, growth.
pub(crate) mod work {
    use undaunted_policy::Attempts;
    use undaunted_policy::spelling::{BackoffType, WorkDefaults};

    use super::{Decoded, Decoder, Encoded, Encoder, Unread, Write, span};

    /// Stored by position.
    const GROWTHS: [BackoffType; 3] = [BackoffType::Fixed, BackoffType::Linear, BackoffType::Exponential];

    pub(crate) fn encode<C, W: Write>(
        work: &WorkDefaults,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Encoded<W> {
        to.array(4)?.encode(work.max_retries.retries())?;
        span::encode(&work.backoff, to, context)?;
        span::encode(&work.max_backoff, to, context)?;
        let growth = (0_u8..).zip(GROWTHS).find(|(_, it)| *it == work.backoff_type);
        to.u8(growth.map_or(0, |(number, _)| number))?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, context: &mut C) -> Decoded<WorkDefaults> {
        if from.array()? != Some(4) {
            return Err(Unread::message("retry defaults need four values"));
        }
        let retries: Option<u32> = from.decode()?;
        let (backoff, max_backoff) = (span::decode(from, context)?, span::decode(from, context)?);
        let growth = GROWTHS.get(usize::from(from.u8()?)).copied();
        Ok(WorkDefaults {
            max_retries: retries.map_or(Attempts::Unlimited, Attempts::AtMost),
            backoff,
            max_backoff,
            backoff_type: growth.ok_or_else(|| Unread::message("unknown backoff type"))?,
        })
    }
}

/// An absent value is stored as null, or omitted at the end.
macro_rules! optional {
    ($name:ident, $of:ident, $type:ty) => {
        pub(crate) mod $name {
            use super::{Decoded, Decoder, Encoded, Encoder, Write, $of};

            pub(crate) fn encode<C, W: Write>(
                value: &Option<$type>,
                to: &mut Encoder<W>,
                context: &mut C,
            ) -> Encoded<W> {
                match value {
                    Some(value) => $of::encode(value, to, context),
                    None => to.null()?.ok(),
                }
            }

            pub(crate) fn decode<C>(from: &mut Decoder<'_>, context: &mut C) -> Decoded<Option<$type>> {
                if from.datatype()? == minicbor::data::Type::Null {
                    from.null()?;
                    return Ok(None);
                }
                $of::decode(from, context).map(Some)
            }

            pub(crate) fn nil() -> Option<Option<$type>> {
                Some(None)
            }

            pub(crate) fn is_nil(value: &Option<$type>) -> bool {
                value.is_none()
            }
        }
    };
}

optional!(maybe_time, time, undaunted_policy::Timestamp);
optional!(maybe_span, span, std::time::Duration);
optional!(maybe_reason, reason, undaunted_policy::Reason);
optional!(maybe_cause, cause, undaunted_policy::FailureCause);
optional!(maybe_work, work, undaunted_policy::spelling::WorkDefaults);
