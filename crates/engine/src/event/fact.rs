//! The facts a journal is made of, by what they happen to.
//!
//! Numbers of variants and fields are part of the stored format: they are added, never used again. The
//! numbers of all four enums are different, and a record does not say which enum its event is of.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{Decode, Decoder, Encode, Encoder};

use super::attempt::Kept;
use super::breaker::BreakerEvent;
use super::item::ItemEvent;
use super::job::JobEvent;
use super::step::StepEvent;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// To the job as a whole.
    Job(JobEvent),
    Step(StepEvent),
    Item(ItemEvent),
    /// To a breaker, in journals of earlier releases.
    Breaker(BreakerEvent),
}

impl Event {
    /// Whether an operator may have asked for it while no engine ran the job.
    pub(crate) const fn may_be_asked_for(&self) -> bool {
        matches!(
            self,
            Self::Job(JobEvent::Paused | JobEvent::Unpaused { .. } | JobEvent::PoolToppedUp { .. })
                | Self::Item(ItemEvent::Dropped { .. })
        )
    }

    /// Where the outputs lie that it tells of: output and error output.
    pub const fn outputs(&self) -> [Option<Kept>; 2] {
        match self {
            Self::Item(ItemEvent::AttemptSucceeded(it)) => [it.stdout, it.stderr],
            Self::Item(ItemEvent::AttemptFailed(it)) => [it.stdout, it.stderr],
            Self::Step(StepEvent::InputFailed { stderr, .. }) => [None, *stderr],
            Self::Job(_) | Self::Step(_) | Self::Item(_) | Self::Breaker(_) => [None, None],
        }
    }

    /// The word it has in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Job(event) => event.word(),
            Self::Step(event) => event.word(),
            Self::Item(event) => event.word(),
            Self::Breaker(event) => event.word(),
        }
    }
}

impl From<JobEvent> for Event {
    fn from(event: JobEvent) -> Self {
        Self::Job(event)
    }
}

impl From<StepEvent> for Event {
    fn from(event: StepEvent) -> Self {
        Self::Step(event)
    }
}

impl From<ItemEvent> for Event {
    fn from(event: ItemEvent) -> Self {
        Self::Item(event)
    }
}

impl<C> Encode<C> for Event {
    fn encode<W: Write>(
        &self,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        match self {
            Self::Job(event) => event.encode(to, context),
            Self::Step(event) => event.encode(to, context),
            Self::Item(event) => event.encode(to, context),
            Self::Breaker(event) => event.encode(to, context),
        }
    }
}

impl<'b, C> Decode<'b, C> for Event {
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Result<Self, DecodeError> {
        // An enum is a list of two: the number of its variant, in one byte or behind 0x18, and its fields.
        let ahead = from.input().get(from.position()..).unwrap_or_default();
        let number = match ahead {
            [_, 0x18, number, ..] | [_, number, ..] => *number,
            [] | [_] => u8::MAX,
        };
        match number {
            2..=4 | 17 | 18 | 38 | 40..=42 => Ok(Self::Step(StepEvent::decode(from, context)?)),
            6..=15 | 26 | 27 | 32 | 33 | 39 | 43 => {
                Ok(Self::Item(ItemEvent::decode(from, context)?))
            }
            34..=37 => Ok(Self::Breaker(BreakerEvent::decode(from, context)?)),
            // What is no event is refused there.
            _ => Ok(Self::Job(JobEvent::decode(from, context)?)),
        }
    }
}
