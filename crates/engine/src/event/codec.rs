//! CBOR of types from other crates.
//!
//! Instants and durations are nanoseconds. Words are stored as text, so that a record can be read without a
//! table of numbers. A value that does not fit is stored as the largest that does.

#![expect(clippy::ref_option, reason = "the derive passes every field by reference")]

use minicbor::decode::Error as Unread;
use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};
use undaunted_policy::spelling::{BackoffType, WorkDefaults};
use undaunted_policy::{Attempts, FailureCause, FailureClass};

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

/// Codecs of types from other crates, for fields of stored types: `with "codec::NAME"`.
macro_rules! foreign {
    ($(
        $(#[$doc:meta])*
        $vis:vis $name:ident: $type:ty {
            encode($value:ident, $to:ident) $encode:block
            decode($from:ident) $decode:block
        }
    )*) => {$(
        $(#[$doc])*
        $vis mod $name {
            $vis fn encode<C, W: minicbor::encode::Write>(
                $value: &$type,
                $to: &mut minicbor::Encoder<W>,
                _: &mut C,
            ) -> $crate::event::codec::Encoded<W> $encode

            $vis fn decode<C>(
                $from: &mut minicbor::Decoder<'_>,
                _: &mut C,
            ) -> $crate::event::codec::Decoded<$type> $decode
        }
    )*};
}

pub(crate) use foreign;

foreign! {
    pub(crate) time: undaunted_policy::Timestamp {
        encode(at, to) { to.u64(at.as_nanos())?.ok() }
        decode(from) { from.u64().map(undaunted_policy::Timestamp::from_nanos) }
    }

    pub span: std::time::Duration {
        encode(span, to) { to.u64(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))?.ok() }
        decode(from) { from.u64().map(std::time::Duration::from_nanos) }
    }

    pub(crate) reason: undaunted_policy::Reason {
        encode(why, to) { to.str(why.word())?.ok() }
        decode(from) { from.str()?.parse().map_err(|_| super::Unread::message("unknown reason")) }
    }

    pub(crate) class: undaunted_policy::FailureClass {
        encode(class, to) { to.str(super::class_word(*class))?.ok() }
        decode(from) {
            let class = super::class_of(from.str()?);
            class.ok_or_else(|| super::Unread::message("unknown failure class"))
        }
    }

    pub(crate) cause: undaunted_policy::FailureCause {
        encode(cause, to) {
            let (word, number) = super::cause_parts(*cause);
            to.array(2)?.str(word)?.i32(number)?.ok()
        }
        decode(from) { super::decode_cause(from) }
    }

    /// An array: retries (null is unlimited), first delay, longest delay, growth.
    pub(crate) work: undaunted_policy::spelling::WorkDefaults {
        encode(work, to) {
            to.array(4)?.encode(work.max_retries.retries())?;
            super::span::encode(&work.backoff, to, &mut ())?;
            super::span::encode(&work.max_backoff, to, &mut ())?;
            let growth = (0_u8..).zip(super::GROWTHS).find(|(_, it)| *it == work.backoff_type);
            to.u8(growth.map_or(0, |(number, _)| number))?.ok()
        }
        decode(from) { super::decode_work(from) }
    }
}

fn class_of(word: &str) -> Option<FailureClass> {
    let all = [FailureClass::Transient, FailureClass::Throttled, FailureClass::Permanent];
    all.into_iter().find(|class| class_word(*class) == word)
}

pub(crate) const fn class_word(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Transient => "transient",
        FailureClass::Throttled => "throttled",
        FailureClass::Permanent => "permanent",
    }
}

fn decode_cause(from: &mut Decoder<'_>) -> Decoded<FailureCause> {
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
        class => FailureCause::Other(class_of(class).ok_or_else(|| Unread::message("unknown cause"))?),
    })
}

pub(crate) fn cause_parts(cause: FailureCause) -> (&'static str, i32) {
    match cause {
        FailureCause::Exit(code) => ("exit", code),
        FailureCause::Signal(signal) => ("signal", signal),
        FailureCause::Timeout => ("timeout", 0),
        FailureCause::Network => ("network", 0),
        FailureCause::Status(status) => ("status", i32::from(status)),
        FailureCause::Refused => ("refused", 0),
        FailureCause::Unreadable => ("unreadable", 0),
        FailureCause::Interrupted => ("interrupted", 0),
        FailureCause::Other(class) => (class_word(class), 0),
        // `FailureCause` may grow, but this release makes no cause that it does not know.
        _ => ("permanent", 0),
    }
}

/// Stored by position.
const GROWTHS: [BackoffType; 3] = [BackoffType::Fixed, BackoffType::Linear, BackoffType::Exponential];

fn decode_work(from: &mut Decoder<'_>) -> Decoded<WorkDefaults> {
    if from.array()? != Some(4) {
        return Err(Unread::message("retry defaults need four values"));
    }
    let retries: Option<u32> = from.decode()?;
    let (backoff, max_backoff) = (span::decode(from, &mut ())?, span::decode(from, &mut ())?);
    let growth = GROWTHS.get(usize::from(from.u8()?)).copied();
    Ok(WorkDefaults {
        max_retries: retries.map_or(Attempts::Unlimited, Attempts::AtMost),
        backoff,
        max_backoff,
        backoff_type: growth.ok_or_else(|| Unread::message("unknown backoff type"))?,
    })
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
