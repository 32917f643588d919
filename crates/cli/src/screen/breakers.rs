//! Breakers: the list, one with its history, and the result of `trip` and `reset`.

use std::io::{self, Write};

use undaunted_engine::view::{BreakerChangeView, BreakerHistoryView, BreakerView};
use undaunted_policy::Timestamp;

use super::holds::ahead;
use super::{count, plain, quoted};

const SHOWN: usize = 20;

pub(crate) fn list(out: &mut impl Write, found: &[BreakerView], now: Timestamp) -> io::Result<()> {
    if found.is_empty() {
        return writeln!(
            io::stderr(),
            "no breakers yet; the first job with a command that sets `breaker: {{name: api}}` \
             creates one"
        );
    }
    let longest = found.iter().map(|it| plain(&it.breaker).chars().count());
    let width = longest.max().unwrap_or_default().max("BREAKER".len());
    writeln!(out, "{:<width$}  {:<9}  STATUS", "BREAKER", "STATE")?;
    for found in found {
        let name = plain(&found.breaker);
        let word = found.state;
        let sentence = sentence(found, now);
        writeln!(out, "{name:<width$}  {word:<9}  {sentence}")?;
    }
    Ok(())
}

pub(crate) fn one(out: &mut impl Write, breaker: &BreakerHistoryView, now: Timestamp) -> io::Result<()> {
    let (view, changes) = (&breaker.current, &breaker.history);
    let settings = &view.settings;
    let name = plain(&view.breaker);
    writeln!(out, "breaker {name}: {}", sentence(view, now))?;
    writeln!(
        out,
        "  opens for {} after {}; {} {} it",
        settings.recovery_timeout,
        count(settings.failure_threshold, "failure", "failures in a row"),
        count(settings.half_open_max_calls, "success", "successes"),
        if settings.half_open_max_calls == 1 { "closes" } else { "close" }
    )?;
    let longest = settings.max_hold.as_ref();
    let longest = longest.map_or_else(String::new, |longest| format!(" for at most {longest}"));
    let becomes = match settings.when_open {
        "hold" => format!("are held{longest}"),
        _ => "fail with circuit_open".to_owned(),
    };
    writeln!(out, "  while open, commands {becomes} and use no attempts")?;
    let earlier = changes.len().saturating_sub(SHOWN);
    if earlier > 0 {
        let earlier = count(earlier, "earlier change", "earlier changes");
        writeln!(out, "  {earlier} (--json shows all)")?;
    }
    for record in changes.iter().skip(earlier) {
        let by = match &record.job {
            Some(job) => format!("job {job}"),
            None => "by hand".to_owned(),
        };
        let text = change(record);
        writeln!(out, "  {}  {by:<14}  {text}", record.at)?;
    }
    next(out, view)
}

fn change(record: &BreakerChangeView) -> String {
    let until = record.until.map(|until| format!(", until {until}")).unwrap_or_default();
    let text = match record.change {
        "configured" => "configured",
        "failure" => {
            return format!("failure {} of {} in a row", record.failures, record.needed);
        }
        "success" => "success; the failure count is reset",
        "opened" => return format!("opened{until}"),
        "tripped" if record.job.is_some() => return format!("opened by a rule{until}"),
        "tripped" => return format!("tripped{until}"),
        "half_opened" => "half open; first probe",
        "probe" => "next probe",
        "probe_succeeded" => {
            return format!("probe succeeded, {} of {}", record.successes, record.needed);
        }
        "probe_lost" => "probe abandoned",
        "closed" => "closed; enough probes succeeded",
        other => other,
    };
    text.to_owned()
}

fn next(out: &mut impl Write, breaker: &BreakerView) -> io::Result<()> {
    if breaker.is_shut() {
        writeln!(out, "close it now:  undaunted breaker reset {}", quoted(&breaker.breaker))?;
    }
    Ok(())
}

pub(crate) fn changed(out: &mut impl Write, breaker: &BreakerView, now: Timestamp) -> io::Result<()> {
    let name = plain(&breaker.breaker);
    writeln!(out, "breaker {name}: {}", sentence(breaker, now))?;
    if breaker.is_shut() {
        let becomes = match breaker.settings.when_open {
            "hold" => "are held",
            _ => "fail",
        };
        writeln!(
            out,
            "until then, its commands {becomes} in every job of this store; running attempts continue"
        )?;
    }
    next(out, breaker)
}

pub(crate) fn sentence(breaker: &BreakerView, now: Timestamp) -> String {
    let settings = &breaker.settings;
    match (breaker.state, breaker.opened_at, breaker.until) {
        ("open", Some(since), Some(until)) if until.0 > now => {
            format!("open since {since}, next probe in {} at {until}", ahead(until.0.since(now)))
        }
        ("open", Some(since), _) => format!("open since {since}, the next start is a probe"),
        ("half_open", _, _) => {
            let (calls, successes) = (settings.half_open_max_calls, breaker.successes);
            let who = match &breaker.probe {
                Some(probe) => format!(", probed by job {} since {}", probe.job, probe.since),
                None => ", the next start is a probe".to_owned(),
            };
            format!("half open, {successes} of {calls} successes{who}")
        }
        _ if breaker.failures == 0 => "closed, no failures".to_owned(),
        _ => format!("closed, {} of {} failures in a row", breaker.failures, settings.failure_threshold),
    }
}
