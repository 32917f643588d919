//! An item and its history, as `explain JOB/ITEM` prints them.

use std::collections::BTreeSet;

use serde::Serialize;
use undaunted_policy::Reason;

use super::breaker::BreakerView;
use super::context::{ViewContext, probers, step_name};
use super::entry::{EntryBuilder, EntryView, NextView};
use super::forecast::deadline;
use super::history::History;
use super::hold::HoldView;
use super::job::{error, failure};
use super::projection::Projection;
use super::shared::LateView;
use super::status::{ItemStatus, LiveJobStatus};
use super::time::{InstantView, MillisView};
use crate::id::{CommandId, ItemId};
use crate::job::{Activity, ItemState, Job, SettledItem};
use crate::task::{TaskWork, ValueFiles, correlation_id, task};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ItemView {
    pub job: String,
    pub job_status: LiveJobStatus,
    pub item: String,
    pub index: u32,
    pub step: Option<String>,
    /// The current command.
    pub command: Option<String>,
    /// The program of that command, if it runs one.
    pub argv: Option<Vec<String>>,
    pub correlation_id: String,
    pub status: ItemStatus,
    pub reason: Option<Reason>,
    pub error: Option<String>,
    pub round: u32,
    /// Attempts of the current command.
    pub attempts: u32,
    /// The pending or running retry; 0 is the first attempt.
    pub retry: u32,
    pub retries_allowed: Option<u32>,
    pub due_at: Option<InstantView>,
    pub due_in_ms: Option<MillisView>,
    /// Why its step was complete without it.
    pub left_out: Option<String>,
    pub held: Option<HoldView>,
    /// The breaker that holds it.
    pub breaker: Option<BreakerView>,
    pub deadline: Option<InstantView>,
    pub late: Option<LateView>,
    pub history: Vec<EntryView>,
    pub next: Option<NextView>,
}

impl ItemView {
    /// The other items that the view may name: those that probe first.
    pub fn items(job: &Job, _: &Projection) -> BTreeSet<ItemId> {
        probers(job)
    }

    /// Restricted to one command, if `only` is set. The job must know the name of the item.
    pub fn of(context: &ViewContext<'_>, item: ItemId, only: Option<CommandId>, history: &History) -> Self {
        let job = context.job;
        let plan = job.plan();
        let standing = ItemStatus::of(job, item);
        let dead = job.dead.get(&item).map(|dead| &**dead);
        let active = job.active(item).or(dead);
        let command = active.and_then(|active| plan.command(active.command));
        let end = history.end.as_ref();
        let due = due(job, item);
        let held = HoldView::of(context, item);
        let breaker = held.as_ref().and_then(|held| {
            let state = context.breakers.get(&held.breaker)?;
            Some(BreakerView::of(&held.breaker, state))
        });
        let name = job.identity(item);
        let entries = EntryBuilder { context, item, history };
        let late = history.late.as_ref();
        Self {
            job: job.id().to_owned(),
            job_status: LiveJobStatus::of(job, context.owner.is_some()),
            item: name.to_owned(),
            index: item.index,
            step: step_name(job, item.step),
            command: command.map(|command| command.id.clone()),
            argv: argv(context, item),
            correlation_id: correlation_id(job, item),
            status: standing,
            reason: standing.reason(),
            error: end.and_then(|end| end.error.clone()),
            round: history.round.max(1),
            attempts: active.map_or(0, |active| active.attempts),
            retry: active.map_or(0, |active| active.progress().retries),
            retries_allowed: command.and_then(|it| it.retry.policy.bound().retries()),
            due_at: due.map(InstantView),
            due_in_ms: due.map(|due| MillisView(due.since(context.now))),
            left_out: left_out(job, item),
            held,
            breaker,
            deadline: deadline(context, item).map(InstantView),
            late: late.map(|late| LateView::with(name, late)),
            history: entries.views(only),
            next: entries.next(only),
        }
    }
}

/// Of a dead letter only if its first command failed: captured output for the others is not kept.
fn argv(context: &ViewContext<'_>, item: ItemId) -> Option<Vec<String>> {
    let job = context.job;
    let dead = job.dead.get(&item).map(|dead| dead.command);
    if dead.is_some_and(|failed| Some(failed) != job.plan().first(item.step)) {
        return None;
    }
    let task = task(job, item, ValueFiles::default(), context.now);
    // A command with missing values was not run.
    match task.ok()??.work {
        TaskWork::Run { argv } => Some(argv.iter().map(|word| word.to_string_lossy().into_owned()).collect()),
        TaskWork::Call(_) | TaskWork::Function(_) | TaskWork::Flow(_) | TaskWork::Write { .. } => None,
    }
}

/// The due time of a retry; `None` if the item only waits for a slot.
pub(super) fn due(job: &Job, item: ItemId) -> Option<undaunted_policy::Timestamp> {
    match job.active(item)?.activity {
        Activity::Waiting(due) => Some(due).filter(|due| due.as_nanos() > 0),
        Activity::Running(_) | Activity::Held | Activity::Undecided => None,
    }
}

/// Why its step was complete without an item, if it was.
pub(super) fn left_out(job: &Job, item: ItemId) -> Option<String> {
    let step = job.step(item.step)?;
    let reached = step.reached?;
    let is_counted = match job.item(item)? {
        ItemState::Pending | ItemState::Active(_) | ItemState::Settled(SettledItem::Missing(_)) => false,
        ItemState::Settled(SettledItem::Succeeded | SettledItem::Dead(_) | SettledItem::Skipped(_)) => {
            !step.late.contains(&item.index)
        }
    };
    (!is_counted).then(|| reached.completion().reason.to_string())
}

/// An item to inspect, in `explain JOB`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InspectedItemView {
    pub item: String,
    pub step: Option<String>,
    pub command: Option<String>,
    pub status: ItemStatus,
    pub reason: Option<Reason>,
    pub failure: Option<String>,
    pub error: Option<String>,
    pub attempts: u32,
    pub retry: u32,
    pub retries_allowed: Option<u32>,
    pub due_at: Option<InstantView>,
    pub left_out: Option<String>,
    pub held: Option<HoldView>,
    /// The command line that explains the item.
    pub explain: String,
}

impl InspectedItemView {
    pub(super) fn of(context: &ViewContext<'_>, item: ItemId) -> Self {
        let job = context.job;
        let plan = job.plan();
        let standing = ItemStatus::of(job, item);
        let dead = job.dead.get(&item).map(|dead| &**dead);
        let active = job.active(item).or(dead);
        let command = active.and_then(|active| plan.command(active.command));
        let name = job.identity(item);
        Self {
            item: name.to_owned(),
            step: step_name(job, item.step),
            command: command.map(|command| command.id.clone()),
            status: standing,
            reason: standing.reason(),
            failure: active.filter(|it| it.cause.is_some()).map(failure),
            error: active.and_then(|active| error(job, active)),
            attempts: active.map_or(0, |active| active.attempts),
            retry: active.map_or(0, |active| active.progress().retries),
            retries_allowed: command.and_then(|it| it.retry.policy.bound().retries()),
            due_at: due(job, item).map(InstantView),
            left_out: left_out(job, item),
            held: HoldView::of(context, item),
            explain: format!("undaunted explain {}", quoted(&address(job.id(), name, item.index))),
        }
    }
}

/// How an item is written on the command line: by its name or, if that has unprintable characters, by its index.
pub fn address(job: &str, name: &str, index: u32) -> String {
    if name.chars().all(is_plain) { format!("{job}/{name}") } else { format!("{job}/#{index}") }
}

/// Whether a character can be printed: no control character, no change of line or writing direction, and nothing
/// that cannot be seen. Joiners are printed, because scripts and emoji need them.
pub fn is_plain(character: char) -> bool {
    let changes_direction = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
    );
    let ends_line = matches!(character, '\u{2028}' | '\u{2029}');
    let is_invisible = matches!(
        character,
        '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    !character.is_control() && !changes_direction && !ends_line && !is_invisible
}

/// A text as one word of a shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
