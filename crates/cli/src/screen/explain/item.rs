//! An item: its attempts, the decisions about them, and the arithmetic of the decisions.

use std::io::{self, Write};

use undaunted_engine::view::{
    ArrivedEntry, AttemptEntry, DecisionView, EntryView, HandlerSuccessEntry, HeldEntry, ItemStatus,
    ItemView, NextView, ReleasedEntry, StopEntry,
};
use undaunted_policy::{Reason, Timestamp};

use super::standing::Standing;
use crate::screen::holds::story;
use crate::screen::limits::{has_ended, late_words};
use crate::screen::words::{address, item_argument, retry_of};
use crate::screen::{count, error_lines, measured, one_line, plain, quoted, short};

const SHOWN: usize = 5;

pub(crate) fn show(out: &mut impl Write, item: &ItemView, now: Timestamp) -> io::Result<()> {
    let name = plain(&item.item);
    writeln!(out, "job {}  item {name}", item.job)?;
    writeln!(out, "  {}", Standing::of_item(item).sentence(now))?;
    if let Some(held) = &item.held {
        for (label, fact) in story(held, item.breaker.as_ref(), now) {
            writeln!(out, "    {label:<10} {fact}")?;
        }
    }
    deadline(out, item, now)?;
    if let Some(late) = &item.late {
        writeln!(out, "  late result: {}", late_words(late))?;
    }
    let rounds = item.round > 1;
    for entry in &item.history {
        match entry {
            EntryView::Attempt(entry) => attempt(out, entry, rounds)?,
            EntryView::Stop(entry) => stop(out, entry)?,
            EntryView::Mend(entry) => handled(out, entry)?,
            EntryView::Held(entry) => held(out, entry)?,
            EntryView::Released(entry) => released(out, entry)?,
            EntryView::Arrived(entry) => arrived(out, entry)?,
        }
    }
    match &item.next {
        Some(next) => forecast(out, item, next)?,
        None => writeln!(out)?,
    }
    let mut entries = item.history.iter();
    if entries.any(|entry| matches!(entry, EntryView::Attempt(_))) {
        let what = quoted(&address(&item.job, &item.item, item.index));
        writeln!(out, "  output:  undaunted logs {what}")?;
    }
    if matches!(item.status, ItemStatus::Dead(_)) {
        writeln!(
            out,
            "  again:   undaunted dlq redrive {} {}",
            item.job,
            quoted(&item_argument(&item.item, item.index))
        )?;
    }
    Ok(())
}

fn deadline(out: &mut impl Write, item: &ItemView, now: Timestamp) -> io::Result<()> {
    // A hold that ends at the deadline has already shown it.
    let shown = item.held.as_ref().and_then(|held| held.expires_at);
    let open = !has_ended(item.job_status) && shown != item.deadline;
    let Some(deadline) = item.deadline.filter(|_| open) else {
        return Ok(());
    };
    let left = if deadline.0 > now {
        format!("in {}", short(deadline.0.since(now)))
    } else {
        format!("{} ago", short(now.since(deadline.0)))
    };
    writeln!(out, "    deadline   {deadline}, {left}")
}

fn attempt(out: &mut impl Write, entry: &AttemptEntry, rounds: bool) -> io::Result<()> {
    let of = &entry.attempt;
    let command = plain(of.command.as_deref().unwrap_or_default());
    if let Some(before) = entry.imported {
        let many = count(before, "attempt", "attempts");
        writeln!(out, "\n  {command}: {many} before the state was imported")?;
    }
    let bound = entry.attempts_allowed.map(|bound| format!(" of {bound}"));
    let round = if rounds { format!(" (round {})", of.round) } else { String::new() };
    let ended = match of.duration_ms {
        Some(took) => format!("{} after {}", of.outcome, measured(took.0)),
        None => of.outcome.to_owned(),
    };
    writeln!(out, "\n  {command}, attempt {}{}{round}: {ended}", of.attempt, bound.unwrap_or_default())?;
    writeln!(out, "    at         {}", of.at)?;
    if let Some(breaker) = of.breaker.as_ref().filter(|_| of.probe) {
        writeln!(out, "    probe      checks whether the target of breaker {} is back", plain(breaker))?;
    }
    let Some(failure) = &of.failure else {
        return Ok(());
    };
    let error = match one_line(of.error.as_deref().unwrap_or_default()).as_str() {
        "" => String::new(),
        line => format!(": {line}"),
    };
    writeln!(out, "    failure    {failure}{error}")?;
    if let Some(judged) = &entry.judged {
        writeln!(out, "    rule       {}", plain(judged))?;
    }
    match &entry.decision {
        Some(decision) => retry(out, decision),
        None => Ok(()),
    }
}
fn retry(out: &mut impl Write, decision: &DecisionView) -> io::Result<()> {
    delay(out, decision)?;
    let what = retry_of(decision.retry, decision.retries_allowed);
    let wait = decision.delay_ms.unwrap_or_default();
    if let Some(due) = decision.due_at {
        writeln!(out, "    decision   {what} in {}, due {due}", short(wait.0))?;
    }
    balances(out, decision, true)?;
    if let Some((deadline, due)) = decision.deadline.zip(decision.due_at) {
        writeln!(
            out,
            "    deadline   {deadline}, {} after the retry falls due",
            short(deadline.0.since(due.0))
        )?;
    }
    Ok(())
}

fn delay(out: &mut impl Write, of: &DecisionView) -> io::Result<()> {
    let (Some(computed), Some(capped), Some(drawn)) = (of.computed_ms, of.capped_ms, of.drawn_ms) else {
        return Ok(());
    };
    let asked = match of.retry_after_ms {
        Some(asked) => format!(", Retry-After {}", short(asked.0)),
        None => String::new(),
    };
    writeln!(
        out,
        "    delay      {} computed, {} capped, {} drawn{asked}",
        short(computed.0),
        short(capped.0),
        short(drawn.0)
    )
}

/// The balance of every limit, before and after.
fn balances(out: &mut impl Write, of: &DecisionView, allowed: bool) -> io::Result<()> {
    let before = of.retry.saturating_sub(1);
    let after = if allowed { of.retry } else { before };
    match of.retries_allowed {
        Some(bound) => writeln!(out, "    retries    {before} → {after} of {bound}")?,
        None => writeln!(out, "    retries    {before} → {after}, unlimited")?,
    }
    let (spent, after) = (short(of.spent_before_ms.0), short(of.spent_after_ms.0));
    match of.retry_budget_ms {
        Some(budget) => writeln!(out, "    budget     {spent} → {after} of {}", short(budget.0))?,
        None => writeln!(out, "    delays     {spent} → {after} in total, no budget")?,
    }
    if let (Some(expires), true) = (of.retry_budget_expires_at, allowed) {
        writeln!(out, "    expires    {expires}, if the job is not running by then")?;
    }
    if let Some((pool, share)) = of.pool.zip(of.share) {
        writeln!(
            out,
            "    pool       {} → {} of {}, this item {} → {} of {}",
            pool.before, pool.after, pool.allowed, share.before, share.after, share.allowed
        )?;
    }
    Ok(())
}

fn stop(out: &mut impl Write, entry: &StopEntry) -> io::Result<()> {
    let name = plain(&entry.command);
    writeln!(out, "\n  {name} stopped ({})", entry.reason)?;
    writeln!(out, "    at         {}", entry.at)?;
    let error = error_lines(&entry.error).join("\n               ");
    writeln!(out, "    why        {error}")?;
    if let Some(decision) = &entry.decision {
        refused(out, decision)?;
    }
    if entry.handled {
        writeln!(out, "    decision   its `on_failure` handler runs")?;
    }
    Ok(())
}

/// The arithmetic of a refused retry.
fn refused(out: &mut impl Write, of: &DecisionView) -> io::Result<()> {
    if let Some((overdue, budget)) = of.overdue_ms.zip(of.retry_budget_ms) {
        let made = count(of.retry.saturating_sub(1), "retry", "retries");
        let retries = retry_of(of.retry, of.retries_allowed);
        let spent = of.spent_before_ms.0;
        writeln!(out, "    refused    {retries}, after {made}")?;
        writeln!(
            out,
            "    overdue    {}: {} spent plus {} late exceeds the budget of {}",
            short(overdue.0),
            short(spent),
            short(overdue.0),
            short(budget.0)
        )?;
        if let Some(expires) = of.retry_budget_expires_at {
            writeln!(out, "    expired    {expires}, while no process was running the job")?;
        }
        return Ok(());
    }
    delay(out, of)?;
    balances(out, of, false)?;
    match of.deadline {
        Some(deadline) => writeln!(out, "    deadline   {deadline}"),
        None => Ok(()),
    }
}

fn handled(out: &mut impl Write, entry: &HandlerSuccessEntry) -> io::Result<()> {
    let then =
        if entry.again { "one more attempt" } else { "the item continues; the failure stays in the report" };
    writeln!(out, "\n  {}: its `on_failure` handler succeeded", plain(&entry.command))?;
    writeln!(out, "    at         {}", entry.at)?;
    writeln!(out, "    decision   {then}")
}

fn arrived(out: &mut impl Write, entry: &ArrivedEntry) -> io::Result<()> {
    writeln!(out, "\n  {}: the result of attempt {} arrived late", entry.command, entry.attempt)?;
    writeln!(out, "    at         {}", entry.at)?;
    if let Some(error) = &entry.error {
        writeln!(out, "    error      {}", plain(error))?;
    }
    writeln!(out, "    decision   it counts; the retry is not made")
}

fn held(out: &mut impl Write, entry: &HeldEntry) -> io::Result<()> {
    let breaker = plain(&entry.breaker);
    writeln!(out, "\n  {} held by {breaker}", plain(&entry.command))?;
    writeln!(out, "    at         {}", entry.at)?;
    let (phase, until) = match entry.until {
        Some(until) => ("open", format!("next probe at {until}")),
        None => ("half open", "a probe was running".to_owned()),
    };
    match &entry.decision {
        Some(decision) => {
            let what = retry_of(decision.retry, decision.retries_allowed);
            writeln!(out, "    why        held by a rule; {until}")?;
            writeln!(out, "    decision   {what} when released")?;
            balances(out, decision, true)?;
        }
        None => writeln!(out, "    why        the breaker was {phase}; {until}")?,
    }
    if let Some(left) = entry.attempts_left {
        writeln!(out, "    attempts   {left} left, none used")?;
    }
    match entry.expires_at {
        Some(expires) => writeln!(out, "    expires    {expires}"),
        None => Ok(()),
    }
}

fn released(out: &mut impl Write, entry: &ReleasedEntry) -> io::Result<()> {
    let breaker = plain(&entry.breaker);
    let time = measured(entry.held_ms.0);
    let name = plain(&entry.command);
    writeln!(out, "\n  {name} released by {breaker} after {time}")?;
    writeln!(out, "    at         {}", entry.at)
}

fn forecast(out: &mut impl Write, item: &ItemView, next: &NextView) -> io::Result<()> {
    if next.stops.reason == Some(Reason::RetryBudgetExpired) {
        writeln!(out, "\n  when the job is resumed, the retry is refused:")?;
    } else {
        writeln!(out, "\n  {}, immediately each time:", condition(item))?;
    }
    for decision in next.retries.iter().take(SHOWN) {
        let what = retry_of(decision.retry, decision.retries_allowed);
        if decision.due_at.is_none() {
            writeln!(out, "    {what} when the breaker releases it (held by a rule)")?;
            continue;
        }
        let wait = short(decision.delay_ms.unwrap_or_default().0);
        let spent = match decision.retry_budget_ms {
            Some(budget) => {
                let spent = short(decision.spent_after_ms.0);
                format!(", {spent} of {} spent", short(budget.0))
            }
            None => String::new(),
        };
        writeln!(out, "    {what} in {wait}{spent}")?;
    }
    let more = next.retries.len().saturating_sub(SHOWN);
    if more > 0 {
        writeln!(out, "    … {} more", count(more, "retry", "retries"))?;
    }
    match &next.stops.sentence {
        Some(sentence) => {
            let word = next.stops.reason.map_or("rule", Reason::word);
            writeln!(out, "    then it stops ({word}): {sentence}")?;
            let decision = next.stops.decision.as_ref();
            if let Some(decision) = decision.filter(|it| it.overdue_ms.is_some()) {
                refused(out, decision)?;
            }
            writeln!(out)
        }
        None => writeln!(out, "    and so on, without a limit\n"),
    }
}

fn condition(item: &ItemView) -> &'static str {
    let attempts = item.history.iter().filter_map(|entry| match entry {
        EntryView::Attempt(entry) => Some(entry),
        EntryView::Stop(_)
        | EntryView::Mend(_)
        | EntryView::Held(_)
        | EntryView::Released(_)
        | EntryView::Arrived(_) => None,
    });
    // Only attempts of the current command: earlier ones have succeeded.
    let mut ended = attempts.filter(|it| it.attempt.command == item.command);
    let failed = ended.any(|entry| entry.attempt.failure.is_some());
    match (item.status == ItemStatus::Held, failed) {
        (true, true) => "once released, if it keeps failing the same way",
        (true, false) => "once released, if it fails",
        (false, true) => "if it keeps failing the same way",
        (false, false) => "if it fails",
    }
}
