//! Holds of an item: those in its history, and the present one.

use std::io::{self, Write};

use serde::Serialize;
use undaunted_engine::view::history::{BreakerHold, PastAttempt};
use undaunted_engine::view::{SumView, holding, rfc3339};

use super::item::{Explained, balances};
use crate::screen::duration::{measured, millis};
use crate::screen::holds::{HoldingJson, json, story};
use crate::screen::words::{plain, retry_of};

#[derive(Serialize)]
pub(super) struct HeldJson<'a> {
    command: &'a str,
    attempt: u32,
    at: String,
    breaker: &'a str,
    why: &'static str,
    until: Option<String>,
    expires_at: Option<String>,
    attempts_left: Option<u64>,
    decision: Option<SumView>,
}

#[derive(Serialize)]
pub(super) struct ReleasedJson<'a> {
    command: &'a str,
    attempt: u32,
    at: String,
    breaker: &'a str,
    held_ms: u64,
}

impl Explained<'_> {
    pub(super) fn held_now(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(held) = holding(self.job, self.breakers, self.place) else {
            return Ok(());
        };
        for (label, fact) in story(self.job, self.breakers, &held, self.now) {
            writeln!(out, "    {label:<10} {fact}")?;
        }
        Ok(())
    }

    pub(super) fn held_json(&self) -> Option<HoldingJson> {
        let held = holding(self.job, self.breakers, self.place)?;
        Some(json(self.breakers, &held))
    }

    pub(super) fn kept(&self, out: &mut impl Write, hold: &BreakerHold) -> io::Result<()> {
        let name = self.command_name(hold.of.command);
        let breaker = plain(&hold.breaker);
        writeln!(out, "\n  {name} is held by {breaker}")?;
        writeln!(out, "    at         {}", rfc3339(hold.at))?;
        let (phase, until) = match hold.until {
            Some(until) => ("open", format!("it looks again at {}", rfc3339(until))),
            None => ("half open", "a probe was under way".to_owned()),
        };
        match &hold.sum {
            Some(sum) => {
                let what = retry_of(sum.retry, sum.allowed);
                writeln!(out, "    why        a rule says hold; {until}")?;
                writeln!(out, "    so         {what} when it is let go")?;
                balances(out, sum, true)?;
            }
            None => writeln!(out, "    why        the breaker was {phase}; {until}")?,
        }
        if let Some(left) = hold.left {
            writeln!(out, "    attempts   {left} left, none is used")?;
        }
        match hold.expires {
            Some(expires) => writeln!(out, "    expires    {}", rfc3339(expires)),
            None => Ok(()),
        }
    }

    pub(super) fn let_go(&self, out: &mut impl Write, hold: &BreakerHold) -> io::Result<()> {
        let Some((at, time)) = hold.released else {
            return Ok(());
        };
        let name = self.command_name(hold.of.command);
        let breaker = plain(&hold.breaker);
        let time = measured(time);
        writeln!(out, "\n  {name} is let go by {breaker} after {time}")?;
        writeln!(out, "    at         {}", rfc3339(at))
    }

    pub(super) fn probed(out: &mut impl Write, attempt: &PastAttempt) -> io::Result<()> {
        match &attempt.pass {
            Some(pass) if pass.probe => writeln!(
                out,
                "    probe      it finds out for {} whether the target is back",
                plain(&pass.breaker)
            ),
            _ => Ok(()),
        }
    }

    pub(super) fn kept_json<'a>(&'a self, hold: &'a BreakerHold) -> HeldJson<'a> {
        HeldJson {
            command: self.command_name(hold.of.command),
            attempt: hold.of.attempt.0,
            at: rfc3339(hold.at),
            breaker: &hold.breaker,
            why: if hold.sum.is_some() { "rule" } else { "open" },
            until: hold.until.map(rfc3339),
            expires_at: hold.expires.map(rfc3339),
            attempts_left: hold.left,
            decision: hold.sum.as_ref().map(SumView::held),
        }
    }

    pub(super) fn let_go_json<'a>(&'a self, hold: &'a BreakerHold) -> Option<ReleasedJson<'a>> {
        let (at, time) = hold.released?;
        Some(ReleasedJson {
            command: self.command_name(hold.of.command),
            attempt: hold.of.attempt.0,
            at: rfc3339(at),
            breaker: &hold.breaker,
            held_ms: millis(time),
        })
    }
}
