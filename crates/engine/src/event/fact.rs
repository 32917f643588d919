//! The events of a journal.
//!
//! The numbers of the variants of the four enums differ, so a record need not say which enum its event
//! belongs to.

use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

use super::attempt::SpooledPart;
use super::breaker::BreakerEvent;
use super::codec::{Decoded, Encoded};
use super::item::ItemEvent;
use super::job::JobEvent;
use super::step::StepEvent;

/// A new event reaches [`Job::apply`](crate::job::Job::apply), [`view::event`](crate::view::event()), the
/// histories, the log and the events of flows, whose matches are exhaustive. Functions that ask about a few
/// events are not: see also `wanted_by`, `Job::report_of`, the law, the counters and the projection.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Job(JobEvent),
    Step(StepEvent),
    Item(ItemEvent),
    /// Only in journals of earlier releases.
    Breaker(BreakerEvent),
}

impl Event {
    /// Whether an operator may have requested the event while no process ran the job.
    pub(crate) const fn may_be_requested(&self) -> bool {
        matches!(
            self,
            Self::Job(JobEvent::Paused | JobEvent::Unpaused { .. } | JobEvent::PoolToppedUp { .. })
                | Self::Item(ItemEvent::Dropped { .. })
        )
    }

    /// Where stdout and stderr are kept.
    pub const fn outputs(&self) -> [Option<SpooledPart>; 2] {
        match self {
            Self::Item(event) => event.outputs(),
            Self::Step(StepEvent::InputFailed { stderr: Some(stderr), .. }) => [None, Some(**stderr)],
            Self::Job(_) | Self::Step(_) | Self::Breaker(_) => [None, None],
        }
    }

    /// The name of the event in JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Job(event) => event.word(),
            Self::Step(event) => event.word(),
            Self::Item(event) => event.word(),
            Self::Breaker(event) => event.word(),
        }
    }
}

/// An event of one kind as any event.
macro_rules! from_kinds {
    ($($kind:ident($event:ident)),*) => {
        $(impl From<$event> for Event {
            fn from(event: $event) -> Self {
                Self::$kind(event)
            }
        })*
    };
}

from_kinds!(Job(JobEvent), Step(StepEvent), Item(ItemEvent));

impl<C> Encode<C> for Event {
    fn encode<W: Write>(&self, to: &mut Encoder<W>, context: &mut C) -> Encoded<W> {
        match self {
            Self::Job(event) => event.encode(to, context),
            Self::Step(event) => event.encode(to, context),
            Self::Item(event) => event.encode(to, context),
            Self::Breaker(event) => event.encode(to, context),
        }
    }
}

impl<'b, C> Decode<'b, C> for Event {
    #[expect(clippy::inline_always, reason = "an event is large, and would be moved once more")]
    #[inline(always)]
    fn decode(from: &mut Decoder<'b>, context: &mut C) -> Decoded<Self> {
        // An enum is an array of two: the variant number, in one byte or after 0x18, and the fields.
        let ahead = from.input().get(from.position()..).unwrap_or_default();
        let number = match ahead {
            [_, 0x18, number, ..] | [_, number, ..] => *number,
            [] | [_] => u8::MAX,
        };
        match number {
            2..=4 | 17 | 18 | 38 | 40..=42 => Ok(Self::Step(StepEvent::decode(from, context)?)),
            6..=15 | 26 | 27 | 32 | 33 | 39 | 43 | 45..=47 => {
                Ok(Self::Item(ItemEvent::decode(from, context)?))
            }
            34..=37 => Ok(Self::Breaker(BreakerEvent::decode(from, context)?)),
            // `JobEvent` refuses unknown numbers.
            _ => Ok(Self::Job(JobEvent::decode(from, context)?)),
        }
    }
}
