//! CBOR, and how types of other crates stand in it.
//!
//! Instants and durations are nanoseconds; words stand as themselves, so that a record can be read
//! without a table of numbers. A value that does not fit is the largest that does.

#![expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the derive passes every field by reference"
)]

use minicbor::{Decode, Encode};

use super::record::RecordError;

pub fn put(value: &impl Encode<()>, to: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = minicbor::encode(value, to);
}

/// The value that these bytes, all of them, are.
pub fn read<T>(bytes: &[u8]) -> Result<T, RecordError>
where
    T: for<'b> Decode<'b, ()>,
{
    let mut decoder = minicbor::Decoder::new(bytes);
    let malformed = |what| RecordError::Malformed { what };
    let value = decoder.decode();
    let value = value.map_err(|error| malformed(error.to_string()))?;
    if decoder.position() == bytes.len() {
        Ok(value)
    } else {
        Err(malformed("something stands behind its end".to_owned()))
    }
}

pub(crate) mod time {
    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};
    use undaunted_policy::Timestamp;

    pub(crate) fn encode<C, W: Write>(
        time: &Timestamp,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        to.u64(time.as_nanos())?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<Timestamp, Unread> {
        from.u64().map(Timestamp::from_nanos)
    }
}

pub mod span {
    use std::time::Duration;

    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};

    pub fn encode<C, W: Write>(
        span: &Duration,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        to.u64(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))?
            .ok()
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// When it is not a number.
    pub fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<Duration, Unread> {
        from.u64().map(Duration::from_nanos)
    }
}

/// A reason, as its word.
pub(crate) mod reason {
    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};
    use undaunted_policy::Reason;

    pub(crate) fn encode<C, W: Write>(
        reason: &Reason,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        to.str(reason.word())?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<Reason, Unread> {
        let word = from.str()?;
        word.parse()
            .map_err(|_| Unread::message("an unknown reason"))
    }
}

/// A class of failures, as its word.
pub(crate) mod class {
    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};
    use undaunted_policy::Class;

    pub(crate) fn encode<C, W: Write>(
        class: &Class,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        to.str(word(*class))?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<Class, Unread> {
        let found = from.str()?;
        let all = [Class::Transient, Class::Throttled, Class::Permanent];
        let class = all.into_iter().find(|class| word(*class) == found);
        class.ok_or_else(|| Unread::message("an unknown class"))
    }

    pub(crate) const fn word(class: Class) -> &'static str {
        match class {
            Class::Transient => "transient",
            Class::Throttled => "throttled",
            Class::Permanent => "permanent",
        }
    }
}

/// What went wrong: a word, and a number where there is one.
pub(crate) mod cause {
    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};
    use undaunted_policy::{Cause, Class};

    pub(crate) fn encode<C, W: Write>(
        cause: &Cause,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        let (word, number) = parts(*cause);
        to.array(2)?.str(word)?.i32(number)?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<Cause, Unread> {
        let length = from.array()?;
        if length != Some(2) {
            return Err(Unread::message("a cause is a word and a number"));
        }
        let (word, number) = (from.str()?, from.i32()?);
        Ok(match word {
            "exit" => Cause::Exit(number),
            "signal" => Cause::Signal(number),
            "timeout" => Cause::Timeout,
            "network" => Cause::Network,
            "status" => Cause::Status(
                u16::try_from(number).map_err(|_| Unread::message("a status out of range"))?,
            ),
            "refused" => Cause::Refused,
            "unreadable" => Cause::Unreadable,
            "interrupted" => Cause::Interrupted,
            "transient" => Cause::Other(Class::Transient),
            "throttled" => Cause::Other(Class::Throttled),
            "permanent" => Cause::Other(Class::Permanent),
            _ => return Err(Unread::message("an unknown cause")),
        })
    }

    pub(crate) fn parts(cause: Cause) -> (&'static str, i32) {
        match cause {
            Cause::Exit(code) => ("exit", code),
            Cause::Signal(signal) => ("signal", signal),
            Cause::Timeout => ("timeout", 0),
            Cause::Network => ("network", 0),
            Cause::Status(status) => ("status", i32::from(status)),
            Cause::Refused => ("refused", 0),
            Cause::Unreadable => ("unreadable", 0),
            Cause::Interrupted => ("interrupted", 0),
            Cause::Other(class) => (super::class::word(class), 0),
            // The list may grow; what this release does not know it does not write.
            _ => ("permanent", 0),
        }
    }
}

/// How the steps of a flow are retried that do not say: how many retries, any number without it; the first
/// delay and the longest; and how they grow, by number.
pub(crate) mod work {
    use minicbor::decode::Error as Unread;
    use minicbor::encode::{Error as Unwritten, Write};
    use minicbor::{Decoder, Encoder};
    use undaunted_policy::Attempts;
    use undaunted_policy::shape::{BackoffType, WorkDefaults};

    use super::span;

    /// Their places are their numbers.
    const GROWTHS: [BackoffType; 3] = [
        BackoffType::Fixed,
        BackoffType::Linear,
        BackoffType::Exponential,
    ];

    pub(crate) fn encode<C, W: Write>(
        work: &WorkDefaults,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        to.array(4)?.encode(work.max_retries.retries())?;
        span::encode(&work.backoff, to, context)?;
        span::encode(&work.max_backoff, to, context)?;
        let growth = (0_u8..)
            .zip(GROWTHS)
            .find(|(_, it)| *it == work.backoff_type);
        to.u8(growth.map_or(0, |(number, _)| number))?.ok()
    }

    pub(crate) fn decode<C>(
        from: &mut Decoder<'_>,
        context: &mut C,
    ) -> Result<WorkDefaults, Unread> {
        if from.array()? != Some(4) {
            return Err(Unread::message("these are no defaults of retries"));
        }
        let retries: Option<u32> = from.decode()?;
        let (backoff, max_backoff) = (span::decode(from, context)?, span::decode(from, context)?);
        let growth = GROWTHS.get(usize::from(from.u8()?)).copied();
        Ok(WorkDefaults {
            max_retries: retries.map_or(Attempts::Unlimited, Attempts::AtMost),
            backoff,
            max_backoff,
            backoff_type: growth.ok_or_else(|| Unread::message("delays do not grow like this"))?,
        })
    }
}

/// The same for a value that may be missing: it stands as null, or not at all at the end.
macro_rules! optional {
    ($name:ident, $of:ident, $type:ty) => {
        pub(crate) mod $name {
            use minicbor::decode::Error as Unread;
            use minicbor::encode::{Error as Unwritten, Write};
            use minicbor::{Decoder, Encoder};

            use super::$of;

            #[expect(
                clippy::ref_option,
                reason = "the derive passes the field by reference"
            )]
            pub(crate) fn encode<C, W: Write>(
                value: &Option<$type>,
                to: &mut Encoder<W>,
                context: &mut C,
            ) -> Result<(), Unwritten<W::Error>> {
                match value {
                    Some(value) => $of::encode(value, to, context),
                    None => to.null()?.ok(),
                }
            }

            pub(crate) fn decode<C>(
                from: &mut Decoder<'_>,
                context: &mut C,
            ) -> Result<Option<$type>, Unread> {
                if from.datatype()? == minicbor::data::Type::Null {
                    from.null()?;
                    return Ok(None);
                }
                $of::decode(from, context).map(Some)
            }

            pub(crate) fn nil() -> Option<Option<$type>> {
                Some(None)
            }

            #[expect(
                clippy::ref_option,
                reason = "the derive passes the field by reference"
            )]
            pub(crate) fn is_nil(value: &Option<$type>) -> bool {
                value.is_none()
            }
        }
    };
}

optional!(maybe_time, time, undaunted_policy::Timestamp);
optional!(maybe_span, span, std::time::Duration);
optional!(maybe_reason, reason, undaunted_policy::Reason);
optional!(maybe_cause, cause, undaunted_policy::Cause);
optional!(maybe_work, work, undaunted_policy::shape::WorkDefaults);
