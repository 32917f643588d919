//! An item as JSON: the same as in `item.rs`, with every number as a field.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use undaunted_engine::event::Sum;
use undaunted_engine::task::correlation_id;
use undaunted_engine::view::history::{PastAttempt, Stop};
use undaunted_engine::view::{AttemptView, ItemStanding, SumView, attempt, rfc3339};
use undaunted_policy::{Decision, Reason, Verdict};

use super::hold::{HeldJson, ReleasedJson};
use super::item::{Entry, Explained};
use super::place;
use crate::screen::duration::millis;
use crate::screen::holds::HoldingJson;
use crate::screen::limits::late_json;

#[derive(Serialize)]
struct ItemJson<'a> {
    job: &'a str,
    item: &'a str,
    index: u32,
    step: Option<&'a str>,
    correlation_id: String,
    status: &'static str,
    reason: Option<&'static str>,
    error: Option<&'a str>,
    round: u32,
    due_at: Option<String>,
    due_in_ms: Option<u64>,
    held: Option<HoldingJson>,
    deadline: Option<String>,
    late: Option<Value>,
    history: Vec<EntryJson<'a>>,
    next: Option<NextJson>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EntryJson<'a> {
    Attempt(Box<AttemptJson<'a>>),
    Stop(Box<StopJson<'a>>),
    Mend(MendJson<'a>),
    Held(Box<HeldJson<'a>>),
    Released(Option<ReleasedJson<'a>>),
}

#[derive(Serialize)]
struct AttemptJson<'a> {
    attempt: AttemptView,
    /// The rule that decided, as it would be written.
    rule: Option<&'a Value>,
    decision: Option<SumView>,
}

#[derive(Serialize)]
struct StopJson<'a> {
    command: &'a str,
    attempt: u32,
    at: String,
    reason: &'static str,
    error: &'a str,
    rule: Option<u32>,
    handled: bool,
    decision: Option<SumView>,
}

#[derive(Serialize)]
struct MendJson<'a> {
    command: &'a str,
    attempt: u32,
    at: String,
    again: bool,
}

#[derive(Serialize)]
struct NextJson {
    retries: Vec<SumView>,
    stops: StopsJson,
}

#[derive(Serialize)]
struct StopsJson {
    reason: Option<&'static str>,
    after_retries: u32,
    sentence: Option<String>,
    decision: Option<SumView>,
}

impl Explained<'_> {
    pub(crate) fn json(&self, out: &mut impl Write) -> io::Result<()> {
        let item = self.place;
        let standing = ItemStanding::of(self.job, self.place);
        let due = place::due(self.job, self.place);
        let entries = self.entries();
        let step = self.job.plan().step(item.step);
        let end = self.history.end.as_ref();
        let active = self.job.active(item);
        let deadline = active.and_then(|active| self.job.deadline_of(item.step, active));
        let shown = ItemJson {
            job: self.job.id(),
            item: self.name(),
            index: item.index,
            step: step.map(|step| step.name.as_str()),
            correlation_id: correlation_id(self.job, item),
            status: standing.word(),
            reason: standing.reason().map(Reason::word),
            error: end.and_then(|end| end.error.as_deref()),
            round: self.history.round.max(1),
            due_at: due.map(rfc3339),
            due_in_ms: due.map(|due| millis(due.since(self.now))),
            held: self.held_json(),
            deadline: deadline.map(rfc3339),
            late: self.history.late.as_ref().map(late_json),
            history: entries.iter().map(|entry| self.entry(entry)).collect(),
            next: self.next_json(),
        };
        serde_json::to_writer(&mut *out, &shown)?;
        writeln!(out)
    }

    fn entry<'a>(&'a self, entry: &Entry<'a>) -> EntryJson<'a> {
        match entry {
            Entry::Attempt(attempt) => EntryJson::Attempt(Box::new(self.attempt_json(attempt))),
            Entry::Stop(stop) => EntryJson::Stop(Box::new(self.stop_json(stop))),
            Entry::Mend(mend) => EntryJson::Mend(MendJson {
                command: self.command_name(mend.of.command),
                attempt: mend.of.attempt.0,
                at: rfc3339(mend.at),
                again: mend.again,
            }),
            Entry::Kept(hold) => EntryJson::Held(Box::new(self.kept_json(hold))),
            Entry::LetGo(hold) => EntryJson::Released(self.let_go_json(hold)),
        }
    }

    fn attempt_json<'a>(&self, of: &'a PastAttempt) -> AttemptJson<'a> {
        let retry = of.retry;
        AttemptJson {
            attempt: attempt(self.job, of),
            rule: of.failure().and_then(|failure| failure.row.as_ref()),
            decision: retry.map(|planned| SumView::of(&planned.sum, Some(planned.due))),
        }
    }

    fn stop_json<'a>(&'a self, stop: &'a Stop) -> StopJson<'a> {
        StopJson {
            command: self.command_name(stop.of.command),
            attempt: stop.of.attempt.0,
            at: rfc3339(stop.at),
            reason: stop.reason.word(),
            error: &stop.error,
            rule: stop.rule,
            handled: stop.handled,
            decision: stop.sum.as_ref().map(|sum| SumView::of(sum, None)),
        }
    }

    fn next_json(&self) -> Option<NextJson> {
        let forecast = self.forecast.as_ref()?;
        let view = |verdict: &Verdict| {
            let sum = Sum::of(&verdict.arithmetic);
            match verdict.decision {
                Decision::Retry { at, .. } => SumView::of(&sum, Some(at)),
                Decision::Hold => SumView::held(&sum),
                Decision::Stop { .. } => SumView::of(&sum, None),
            }
        };
        let stop = forecast.stop.as_ref();
        Some(NextJson {
            retries: forecast.retries.iter().map(view).collect(),
            stops: StopsJson {
                reason: stop.and_then(Verdict::reason).map(Reason::word),
                after_retries: u32::try_from(forecast.retries.len()).unwrap_or(u32::MAX),
                sentence: stop.map(Verdict::to_string),
                decision: stop.map(view),
            },
        })
    }
}
