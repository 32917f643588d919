//! The history of the items of a job, read from its journal.
//!
//! The names of items are known only after the journal was read, so it is read twice: once for the job,
//! once for the items in question.

use std::collections::BTreeMap;

use serde_json::Value;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::event::{AttemptId, Event, ItemEvent, JobEvent, Resumed};
use undaunted_engine::id::{CommandId, ItemId};
use undaunted_engine::job::Job;
use undaunted_engine::view::history::{Histories, History};
use undaunted_policy::{RetryConfig, Timestamp};
use undaunted_runner::journal;

use crate::exit::Refused;
use crate::jobs::Jobs;
use crate::target;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    All,
    One(ItemId, Option<CommandId>),
}

pub(crate) struct Past {
    pub(crate) job: Job,
    /// Of the job, as they are now.
    pub(crate) breakers: AdmissionControl,
    pub(crate) items: BTreeMap<ItemId, History>,
    /// The rules that decided about failed attempts, as they were then.
    pub(crate) rules: BTreeMap<RuleKey, Value>,
    pub(crate) resumes: Vec<Resume>,
}

/// The failed attempt a rule decided about, and its round.
pub(crate) type RuleKey = (AttemptId, u32);

pub(crate) struct Resume {
    pub(crate) at: Timestamp,
    pub(crate) resumed: Resumed,
    /// Started from then until the next resume, without those of handlers.
    pub(crate) attempts: u64,
}

impl Whose {
    /// Reads `JOB`, `JOB/ITEM` or `JOB/ITEM/COMMAND`.
    pub(crate) fn typed(jobs: &Jobs, typed: &str) -> Result<(String, Self), Refused> {
        let (job, rest) = target::split(typed);
        let id = jobs.find(job)?;
        let Some(rest) = rest else {
            return Ok((id, Self::All));
        };
        let job = jobs.read(&id)?;
        let (item, command) = target::item_and_command(&job, rest)?;
        Ok((id, Self::One(item, command)))
    }

    pub(crate) fn includes(self, place: ItemId) -> bool {
        match self {
            Self::All => true,
            Self::One(only, _) => only == place,
        }
    }

    pub(crate) fn includes_command(self, command: CommandId) -> bool {
        match self {
            Self::All | Self::One(_, None) => true,
            Self::One(_, Some(only)) => only == command,
        }
    }
}

impl Past {
    /// Reads the histories of the items for which `wanted` is true.
    pub(crate) fn read(
        jobs: &Jobs,
        id: &str,
        wanted: impl Fn(ItemId) -> bool,
    ) -> Result<Self, Refused> {
        let mut histories = Histories::of(&wanted);
        let mut rules = BTreeMap::new();
        let mut resumes: Vec<Resume> = Vec::new();
        let read = journal::replay(&*jobs.store, id, &jobs.plans, |job, _, record| {
            histories.take(job, record);
            match &record.event {
                Event::Item(ItemEvent::AttemptFailed(failed)) => {
                    let of = failed.of;
                    let Some(row) = failed.rule.filter(|_| wanted(of.item())) else {
                        return;
                    };
                    let round = histories.items.get(&of.item());
                    let round = round.map_or(1, |history| history.round);
                    if let Some(rule) = rule(job, of.command, row) {
                        rules.insert((of, round), rule);
                    }
                }
                Event::Job(JobEvent::Resumed(found)) => resumes.push(Resume {
                    at: record.at,
                    resumed: *found,
                    attempts: 0,
                }),
                Event::Item(ItemEvent::AttemptStarted(started)) => {
                    let counts = job.plan().is_main(started.of.command);
                    if let Some(last) = resumes.last_mut().filter(|_| counts) {
                        last.attempts = last.attempts.saturating_add(1);
                    }
                }
                Event::Job(_) | Event::Step(_) | Event::Item(_) | Event::Breaker(_) => {}
            }
        });
        let (job, _) = read?;
        let items = histories.items;
        Ok(Self {
            breakers: jobs.breakers_of(&job)?,
            job,
            items,
            rules,
            resumes,
        })
    }
}

/// A row of a command's table of rules, as it would be written in a workflow.
fn rule(job: &Job, command: CommandId, row: u32) -> Option<Value> {
    let policy = &job.plan().command(command)?.retry.policy;
    let config = serde_json::to_value(RetryConfig::from(policy)).ok()?;
    let row = usize::try_from(row).ok()?;
    config.get("rules")?.get(row).cloned()
}
