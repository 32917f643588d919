//! Breakers: the list, one with its history, and what was done to one.

use std::io::{self, Write};

use serde_json::{Value, json};
use undaunted_engine::breaker::{BreakerChange, BreakerJournal, BreakerState, Change};
use undaunted_engine::view::rfc3339;
use undaunted_policy::shape::format_duration;
use undaunted_policy::{Phase, Timestamp, WhenOpen};

use super::holds::ahead;
use super::policies::when_open;
use super::words::{count, plain, quoted};

const SHOWN: usize = 20;

pub(crate) fn list(
    out: &mut impl Write,
    found: &[(String, BreakerJournal)],
    now: Timestamp,
    as_json: bool,
) -> io::Result<()> {
    if as_json {
        for (name, journal) in found {
            writeln!(out, "{}", machine(name, &journal.state))?;
        }
        return Ok(());
    }
    if found.is_empty() {
        return writeln!(
            io::stderr(),
            "no breakers yet; a command names one with `breaker: {{name: api}}`, and the first \
             job that does makes it"
        );
    }
    let longest = found.iter().map(|(name, _)| plain(name).chars().count());
    let width = longest.max().unwrap_or_default().max("BREAKER".len());
    writeln!(out, "{:<width$}  {:<9}  STANDS", "BREAKER", "STATE")?;
    for (name, journal) in found {
        let name = plain(name);
        let word = journal.state.word();
        let sentence = sentence(&journal.state, now);
        writeln!(out, "{name:<width$}  {word:<9}  {sentence}")?;
    }
    Ok(())
}

pub(crate) fn one(
    out: &mut impl Write,
    name: &str,
    journal: &BreakerJournal,
    now: Timestamp,
    as_json: bool,
) -> io::Result<()> {
    let (last, records) = (&journal.state, &journal.changes);
    if as_json {
        let mut shown = machine(name, last);
        let history = records.iter().map(|(version, record)| {
            json!({
                "seq": version, "at": rfc3339(record.at), "change": record.change.word(),
                "job": record.job, "state": record.state.word(),
                "failures": record.state.failures(),
                "until": record.state.until().map(rfc3339),
            })
        });
        if let Value::Object(fields) = &mut shown {
            fields.insert("history".to_owned(), history.collect());
        }
        return writeln!(out, "{shown}");
    }
    let settings = &last.settings;
    writeln!(out, "breaker {}: {}", plain(name), sentence(last, now))?;
    writeln!(
        out,
        "  opens after {} in a row, for {}; {} {} it",
        count(settings.failure_threshold, "failure", "failures"),
        format_duration(settings.recovery_timeout),
        count(settings.half_open_max_calls, "success", "successes"),
        if settings.half_open_max_calls == 1 {
            "closes"
        } else {
            "close"
        }
    )?;
    let longest = settings.max_hold.map(format_duration);
    let longest = longest.map_or_else(String::new, |longest| format!(", for {longest} at most"));
    let becomes = match settings.when_open {
        WhenOpen::Hold => format!("is held{longest}; no attempt is used"),
        WhenOpen::Fail => "fails (circuit_open); no attempt is used".to_owned(),
    };
    writeln!(out, "  while it is open, what would start {becomes}")?;
    let earlier = records.len().saturating_sub(SHOWN);
    if earlier > 0 {
        let earlier = count(earlier, "earlier change", "earlier changes");
        writeln!(out, "  {earlier}: --json shows them")?;
    }
    for (_, record) in records.iter().skip(earlier) {
        let by = match &record.job {
            Some(job) => format!("job {job}"),
            None => "by hand".to_owned(),
        };
        let said = change(record);
        writeln!(out, "  {}  {by:<14}  {said}", rfc3339(record.at))?;
    }
    next(out, name, last)
}

fn change(record: &BreakerChange) -> String {
    let state = &record.state;
    let settings = &state.settings;
    let until = state.until().map(rfc3339);
    let until = until.map_or_else(String::new, |until| format!(", until {until}"));
    let successes = match state.breaker.phase() {
        Phase::HalfOpen { successes, .. } => successes,
        Phase::Open { .. } | Phase::Closed { .. } => 0,
    };
    match record.change {
        Change::Configured => "has given it these settings".to_owned(),
        Change::Failed => format!(
            "a failure, {} of {} in a row",
            state.failures(),
            settings.failure_threshold
        ),
        Change::Succeeded => "a success, the count starts again".to_owned(),
        Change::Opened => format!("opened it{until}"),
        Change::Tripped if record.job.is_some() => format!("opened it by a rule{until}"),
        Change::Tripped => format!("tripped{until}"),
        Change::HalfOpened => "half open: the first probe".to_owned(),
        Change::Probed => "another probe".to_owned(),
        Change::ProbeSucceeded => format!(
            "the probe succeeded, {successes} of {}",
            settings.half_open_max_calls
        ),
        Change::ProbeLost => "the probe came to nothing".to_owned(),
        Change::Closed => "closed it: enough probes succeeded".to_owned(),
        Change::Reset => "reset".to_owned(),
    }
}

fn next(out: &mut impl Write, name: &str, state: &BreakerState) -> io::Result<()> {
    if state.is_shut() {
        writeln!(
            out,
            "close it now:  undaunted breaker reset {}",
            quoted(name)
        )?;
    }
    Ok(())
}

pub(crate) fn changed(
    out: &mut impl Write,
    name: &str,
    state: &BreakerState,
    now: Timestamp,
    as_json: bool,
) -> io::Result<()> {
    if as_json {
        return writeln!(out, "{}", machine(name, state));
    }
    writeln!(out, "breaker {}: {}", plain(name), sentence(state, now))?;
    if state.is_shut() {
        let becomes = match state.settings.when_open {
            WhenOpen::Hold => "is held until then",
            WhenOpen::Fail => "fails until then",
        };
        writeln!(
            out,
            "what names it {becomes}, in every job of this store; what runs goes on"
        )?;
    }
    next(out, name, state)
}

pub(crate) fn sentence(state: &BreakerState, now: Timestamp) -> String {
    let settings = &state.settings;
    match state.breaker.phase() {
        Phase::Closed { failures: 0 } => "closed, lets everything through".to_owned(),
        Phase::Closed { failures } => format!(
            "closed, {failures} of {} failures in a row",
            settings.failure_threshold
        ),
        Phase::Open { since, until } if until > now => format!(
            "open since {}, looks again in {} at {}",
            rfc3339(since),
            ahead(until.since(now)),
            rfc3339(until)
        ),
        Phase::Open { since, .. } => {
            format!("open since {}, lets the next one through", rfc3339(since))
        }
        Phase::HalfOpen { successes, probing } => {
            let calls = settings.half_open_max_calls;
            let who = match (&state.probe, probing) {
                (Some(probe), true) => format!(
                    ", job {} finds out since {}",
                    probe.job,
                    rfc3339(probe.since)
                ),
                _ => ", lets the next one through".to_owned(),
            };
            format!("half open, {successes} of {calls} successes{who}")
        }
    }
}

pub(super) fn machine(name: &str, state: &BreakerState) -> Value {
    let settings = &state.settings;
    let (since, successes) = match state.breaker.phase() {
        Phase::Closed { .. } => (None, 0),
        Phase::Open { since, .. } => (Some(since), 0),
        Phase::HalfOpen { successes, .. } => (None, successes),
    };
    json!({
        "breaker": name,
        "state": state.word(),
        "failures": state.failures(),
        "successes": successes,
        "opened_at": since.map(rfc3339),
        "until": state.until().map(rfc3339),
        "probe": state.probe.as_ref().map(|probe| json!({
            "job": probe.job, "since": rfc3339(probe.since),
        })),
        "settings": {
            "failure_threshold": settings.failure_threshold,
            "recovery_timeout": format_duration(settings.recovery_timeout),
            "half_open_max_calls": settings.half_open_max_calls,
            "when_open": when_open(settings.when_open),
            "max_hold": settings.max_hold.map(format_duration),
        },
    })
}
