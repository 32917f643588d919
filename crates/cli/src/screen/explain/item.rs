//! An item as text: every attempt, the decision about it, and the numbers behind it.

use std::io::{self, Write};

use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::decide::cause_in_words;
use undaunted_engine::event::Sum;
use undaunted_engine::id::{CommandId, ItemId};
use undaunted_engine::job::Job;
use undaunted_engine::view::history::{
    AttemptFailure, BreakerHold, History, Mend, PastAttempt, ScheduledRetry, Stop,
};
use undaunted_engine::view::{Forecast, ItemStanding, holding, rfc3339};
use undaunted_policy::{Cause, Class, Decision, RetryConfig, Timestamp};

use super::place;
use crate::screen::duration::{measured, short};
use crate::screen::limits::late_words;
use crate::screen::policies;
use crate::screen::summary::error_lines;
use crate::screen::words::quoted as quoted_word;
use crate::screen::words::{count, one_line, retry_of};

const LISTED: usize = 5;

/// An item, or one command of it, and everything that is known of it.
pub(crate) struct Explained<'a> {
    pub(crate) job: &'a Job,
    pub(crate) breakers: &'a AdmissionControl,
    pub(crate) place: ItemId,
    pub(crate) command: Option<CommandId>,
    pub(crate) history: &'a History,
    pub(crate) now: Timestamp,
    pub(crate) is_there: bool,
    pub(crate) forecast: Option<Forecast>,
}

pub(super) enum Entry<'a> {
    Attempt(&'a PastAttempt),
    Stop(&'a Stop),
    Mend(&'a Mend),
    Kept(&'a BreakerHold),
    LetGo(&'a BreakerHold),
}

impl Entry<'_> {
    const fn command(&self) -> CommandId {
        match self {
            Self::Attempt(attempt) => attempt.of.command,
            Self::Stop(stop) => stop.of.command,
            Self::Mend(mend) => mend.of.command,
            Self::Kept(hold) | Self::LetGo(hold) => hold.of.command,
        }
    }

    fn at(&self) -> Timestamp {
        match self {
            Self::Kept(hold) => hold.at,
            Self::LetGo(hold) => hold.released.map_or(hold.at, |(at, _)| at),
            Self::Attempt(attempt) => attempt.began,
            Self::Stop(stop) => stop.at,
            Self::Mend(mend) => mend.at,
        }
    }
}

impl Explained<'_> {
    pub(super) fn name(&self) -> &str {
        self.job.identity(self.place)
    }

    pub(super) fn command_name(&self, command: CommandId) -> &str {
        let command = self.job.plan().command(command);
        command.map_or("", |command| command.id.as_str())
    }

    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        let History {
            attempts,
            stops,
            mends,
            holds,
            ..
        } = self.history;
        let mut entries: Vec<Entry<'_>> = stops.iter().map(Entry::Stop).collect();
        entries.extend(mends.iter().map(Entry::Mend));
        entries.extend(holds.iter().map(Entry::Kept));
        let released = holds.iter().filter(|hold| hold.released.is_some());
        entries.extend(released.map(Entry::LetGo));
        entries.extend(attempts.iter().map(Entry::Attempt));
        entries.retain(|entry| self.command.is_none_or(|only| only == entry.command()));
        // The sort is stable: the consequences of an end come before what began at the same instant.
        entries.sort_by_key(Entry::at);
        entries
    }

    pub(crate) fn text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "job {}  item {}", self.job.id(), self.name())?;
        let stands = place::sentence(
            self.job,
            self.breakers,
            self.place,
            self.now,
            self.is_there,
            true,
        );
        writeln!(out, "  {stands}")?;
        self.held_now(out)?;
        self.deadline(out)?;
        if let Some(late) = &self.history.late {
            writeln!(out, "  it came late: {}", late_words(late))?;
        }
        for entry in self.entries() {
            match entry {
                Entry::Attempt(attempt) => self.attempt(out, attempt)?,
                Entry::Stop(stop) => self.stop(out, stop)?,
                Entry::Mend(mend) => self.mend(out, *mend)?,
                Entry::Kept(hold) => self.kept(out, hold)?,
                Entry::LetGo(hold) => self.let_go(out, hold)?,
            }
        }
        self.next(out)?;
        let (job, name) = (self.job.id(), self.name());
        if !self.history.attempts.is_empty() {
            writeln!(out, "  output:  undaunted logs {}", quoted(job, name))?;
        }
        let standing = ItemStanding::of(self.job, self.place);
        if matches!(standing, ItemStanding::Dead(_)) {
            writeln!(
                out,
                "  again:   undaunted dlq redrive {job} {}",
                quoted_word(name)
            )?;
        }
        Ok(())
    }

    fn deadline(&self, out: &mut impl Write) -> io::Result<()> {
        let active = self.job.active(self.place);
        let deadline = active.and_then(|active| self.job.deadline_of(self.place.step, active));
        // A hold that ends with it has already been shown with it.
        let held = holding(self.job, self.breakers, self.place);
        let said = held.and_then(|held| held.expires);
        let open = !self.job.stage.has_ended() && said != deadline;
        let Some(deadline) = deadline.filter(|_| open) else {
            return Ok(());
        };
        let left = if deadline > self.now {
            format!("in {}", short(deadline.since(self.now)))
        } else {
            format!("{} ago", short(self.now.since(deadline)))
        };
        writeln!(out, "    deadline   {}, {left}", rfc3339(deadline))
    }

    /// How many attempts before this one are in no journal, because another system made them.
    fn imported(&self, attempt: &PastAttempt) -> Option<u32> {
        let (of, round) = (attempt.of, attempt.round);
        let same = |it: &&PastAttempt| it.of.command == of.command && it.round == round;
        let first = self.history.attempts.iter().find(same)?;
        let before = of.attempt.0.saturating_sub(1);
        (first.of == of && before > 0).then_some(before)
    }

    fn attempt(&self, out: &mut impl Write, attempt: &PastAttempt) -> io::Result<()> {
        let of = attempt.of;
        if let Some(before) = self.imported(attempt) {
            let many = count(before, "attempt", "attempts");
            let name = self.command_name(of.command);
            writeln!(out, "\n  {name}: {many} made before the state was imported")?;
        }
        let bound = self.bound(attempt);
        let bound = bound.map_or_else(String::new, |bound| format!(" of {bound}"));
        let round = match self.history.round {
            0 | 1 => String::new(),
            _ => format!(" (round {})", attempt.round),
        };
        let word = attempt.word();
        let ended = match &attempt.outcome {
            Some(outcome) => format!("{word} after {}", measured(outcome.took)),
            None => word.to_owned(),
        };
        writeln!(
            out,
            "\n  {}, attempt {}{bound}{round}: {ended}",
            self.command_name(of.command),
            of.attempt
        )?;
        writeln!(out, "    at         {}", rfc3339(attempt.began))?;
        Self::probed(out, attempt)?;
        let failure = attempt.outcome.as_ref();
        let Some(failure) = failure.and_then(|outcome| outcome.failure.as_ref()) else {
            return Ok(());
        };
        let error = match one_line(&failure.error).as_str() {
            "" => String::new(),
            line => format!(": {line}"),
        };
        let cause = cause_in_words(failure.cause);
        writeln!(out, "    failure    {cause}{error}")?;
        writeln!(out, "    rule       {}", self.judged(attempt, failure))?;
        match &attempt.retry {
            Some(planned) => retry(out, planned),
            None => Ok(()),
        }
    }

    /// The most attempts, by the terms that were applied if they are known.
    fn bound(&self, attempt: &PastAttempt) -> Option<u64> {
        let of = attempt.of;
        let stops = self.history.stops.iter();
        let mut sums = stops.filter(|stop| stop.of == of).map(|stop| stop.sum);
        let applied = attempt.retry.map(|planned| planned.sum);
        let bound = if let Some(sum) = applied.or_else(|| sums.next().flatten()) {
            u64::from(sum.allowed?).saturating_add(1)
        } else {
            let command = self.job.plan().command(of.command)?;
            let limits = command.retry.policy.terms().limits();
            limits.attempts().executions()?
        };
        // A handler that repeats its command allows more.
        (u64::from(of.attempt.0) <= bound).then_some(bound)
    }

    fn judged(&self, attempt: &PastAttempt, failure: &AttemptFailure) -> String {
        if let Some(row) = failure.rule {
            let command = self.job.plan().command(attempt.of.command);
            let config = command.map(|command| RetryConfig::from(&command.retry.policy));
            let config = config.and_then(|config| serde_json::to_value(config).ok());
            let usual = |name: &str| config.as_ref()?.get(name);
            let written = failure.row.as_ref();
            let written = written.map(|written| policies::rule(written, &usual));
            let written = written.unwrap_or_default();
            return format!("{} of the table: {written}", row.saturating_add(1));
        }
        let cut = match ItemStanding::of(self.job, self.place) {
            ItemStanding::Missing(_) | ItemStanding::Skipped(_) => attempt.retry.is_none(),
            ItemStanding::Pending
            | ItemStanding::Running
            | ItemStanding::Waiting
            | ItemStanding::Held
            | ItemStanding::Succeeded
            | ItemStanding::Dead(_) => false,
        };
        if failure.cause == Cause::Interrupted && cut {
            return "not asked; it was ended because nobody waits for it".to_owned();
        }
        let (class, usual) = (failure.class, failure.cause.class());
        match class {
            Class::Transient => "none matched; a transient failure is retried".to_owned(),
            Class::Throttled => "none matched; the other side said when to come back".to_owned(),
            Class::Permanent if usual == Class::Permanent => {
                "none matched; a permanent failure is not retried".to_owned()
            }
            Class::Permanent => "none matched; `retry_on` does not name it".to_owned(),
        }
    }

    fn stop(&self, out: &mut impl Write, stop: &Stop) -> io::Result<()> {
        let name = self.command_name(stop.of.command);
        writeln!(out, "\n  {name} is tried no further ({})", stop.reason)?;
        writeln!(out, "    at         {}", rfc3339(stop.at))?;
        let error = error_lines(&stop.error).join("\n               ");
        writeln!(out, "    why        {error}")?;
        if let Some(sum) = &stop.sum {
            delay(out, sum)?;
            balances(out, sum, false)?;
            if let Some(deadline) = sum.deadline {
                writeln!(out, "    deadline   {}", rfc3339(deadline))?;
            }
        }
        if stop.handled {
            writeln!(out, "    so         its `on_failure` runs")?;
        }
        Ok(())
    }

    fn mend(&self, out: &mut impl Write, mend: Mend) -> io::Result<()> {
        let name = self.command_name(mend.of.command);
        let then = if mend.again {
            "it is tried once more"
        } else {
            "the item goes on, and the failure stays in the report"
        };
        writeln!(out, "\n  {name}: its `on_failure` has succeeded")?;
        writeln!(out, "    at         {}", rfc3339(mend.at))?;
        writeln!(out, "    so         {then}")
    }

    fn next(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(forecast) = &self.forecast else {
            return writeln!(out);
        };
        writeln!(out, "\n  {}, each time at once:", self.supposing())?;
        for verdict in forecast.retries.iter().take(LISTED) {
            let sum = Sum::of(&verdict.arithmetic);
            let what = retry_of(sum.retry, sum.allowed);
            if verdict.decision == Decision::Hold {
                writeln!(
                    out,
                    "    {what} when the breaker lets it go: a rule holds it"
                )?;
                continue;
            }
            let wait = short(verdict.arithmetic.wait());
            let spent = match sum.budget {
                Some(budget) => format!(", {} of {} spent", short(sum.spent_after), short(budget)),
                None => String::new(),
            };
            writeln!(out, "    {what} in {wait}{spent}")?;
        }
        let more = forecast.retries.len().saturating_sub(LISTED);
        if more > 0 {
            writeln!(out, "    … {} more", count(more, "retry", "retries"))?;
        }
        match &forecast.stop {
            Some(stop) => {
                let word = stop.reason().map(undaunted_policy::Reason::word);
                writeln!(
                    out,
                    "    then {} ends it: {stop}\n",
                    word.unwrap_or("a rule")
                )
            }
            None => writeln!(out, "    and so on: nothing ends it\n"),
        }
    }

    fn supposing(&self) -> &'static str {
        let item = self.place;
        let failed = self.job.active(item).is_some_and(|it| it.cause.is_some());
        let held = ItemStanding::of(self.job, item) == ItemStanding::Held;
        match (held, failed) {
            (true, true) => "when it is let go, if it goes on failing as it did",
            (true, false) => "when it is let go, if it then fails",
            (false, true) => "if it goes on failing as it did",
            (false, false) => "if it fails",
        }
    }
}

fn retry(out: &mut impl Write, planned: &ScheduledRetry) -> io::Result<()> {
    let sum = &planned.sum;
    delay(out, sum)?;
    let what = retry_of(sum.retry, sum.allowed);
    let (wait, due) = (short(planned.delay), rfc3339(planned.due));
    writeln!(out, "    so         {what} in {wait}, due {due}")?;
    balances(out, sum, true)?;
    if let Some(deadline) = sum.deadline {
        writeln!(
            out,
            "    deadline   {}, {} after the retry falls due",
            rfc3339(deadline),
            short(deadline.since(planned.due))
        )?;
    }
    Ok(())
}

fn delay(out: &mut impl Write, sum: &Sum) -> io::Result<()> {
    let (Some(computed), Some(capped), Some(drawn)) = (sum.computed, sum.capped, sum.drawn) else {
        return Ok(());
    };
    let asked = match sum.retry_after {
        Some(asked) => format!(", Retry-After {}", short(asked)),
        None => String::new(),
    };
    writeln!(
        out,
        "    delay      {} computed, {} capped, {} drawn{asked}",
        short(computed),
        short(capped),
        short(drawn)
    )
}

/// The balance of every limit, before and after.
pub(super) fn balances(out: &mut impl Write, sum: &Sum, allowed: bool) -> io::Result<()> {
    let before = sum.retry.saturating_sub(1);
    let after = if allowed { sum.retry } else { before };
    match sum.allowed {
        Some(bound) => writeln!(out, "    retries    {before} → {after} of {bound}")?,
        None => writeln!(
            out,
            "    retries    {before} → {after}, any number is allowed"
        )?,
    }
    let spent = if allowed {
        sum.spent_after
    } else {
        sum.spent_before
    };
    let spent = format!("{} → {}", short(sum.spent_before), short(spent));
    match sum.budget {
        Some(budget) => writeln!(out, "    budget     {spent} of {}", short(budget))?,
        None => writeln!(out, "    delays     {spent} in all, no budget")?,
    }
    if let (Some(expires), true) = (sum.expires, allowed) {
        writeln!(
            out,
            "    expires    {}, if the job is not run until then",
            rfc3339(expires)
        )?;
    }
    let unit = u32::from(allowed);
    if let (Some((used, total)), Some((own, share))) = (sum.pool, sum.share) {
        writeln!(
            out,
            "    pool       {used} → {} of {total}, by this item {own} → {} of {share}",
            used.saturating_add(unit),
            own.saturating_add(unit)
        )?;
    }
    Ok(())
}

/// A job and an item as one word of the shell.
pub(super) fn quoted(job: &str, item: &str) -> String {
    quoted_word(&format!("{job}/{item}"))
}
