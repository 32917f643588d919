//! A job in one line, as `ls` prints it; and where it came from: a workflow file, or words on the command line.

use serde::Serialize;
use undaunted_policy::Timestamp;

use super::job::waiting;
use super::report::ItemCounts;
use super::shared::all_held;
use super::status::LiveJobStatus;
use super::time::InstantView;
use crate::event::{Event, JobSubmitted, Record};
use crate::job::{Job, Plans};
use crate::plan::Plan;
use crate::task::action::Action;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobLine {
    pub job: String,
    pub name: Option<String>,
    /// The path of its file; null for words on the command line.
    pub workflow: Option<String>,
    pub argv: Option<Vec<String>>,
    pub status: LiveJobStatus,
    /// Why it is unreadable.
    pub error: Option<String>,
    pub submitted_at: Option<InstantView>,
    pub ended_at: Option<InstantView>,
    pub seed: Option<String>,
    pub items: ItemCounts,
    pub attempts: u64,
    pub retries: u64,
    pub waiting: u64,
    pub held: u64,
    pub next_due_at: Option<InstantView>,
    pub owner: Option<u32>,
}

impl JobLine {
    /// Needs only the first and the last record of a job that has ended.
    pub fn ended(first: &Record, last: &Record, plans: &Plans) -> Option<Self> {
        let (Event::Job(first_event), Event::Job(last_event)) = (&first.event, &last.event) else {
            return None;
        };
        let (stage, ended) = last_event.ended()?;
        let submitted = first_event.submitted()?;
        let plan = plans.of(submitted).ok()?;
        let line = Self::submitted(submitted, &plan, first.at);
        Some(Self {
            status: LiveJobStatus::As(stage.into()),
            ended_at: Some(InstantView(last.at)),
            items: (&ended.counts).into(),
            attempts: ended.counts.attempts,
            retries: ended.counts.retries,
            ..line
        })
    }

    pub fn of(job: &Job, owner: Option<u32>) -> Self {
        let counts = job.tally();
        let line = Self::submitted(job.submitted(), job.plan(), job.times.submitted_at);
        let waits = job.steps.iter().map(|step| step.waiting.len());
        let due = waiting(job).map(|(_, due)| due).min();
        Self {
            status: LiveJobStatus::of(job, owner.is_some()),
            ended_at: job.times.ended_at.map(InstantView),
            items: (&counts).into(),
            attempts: counts.attempts,
            retries: counts.retries,
            waiting: super::job::count(waits.sum()),
            held: super::job::count(all_held(job).count()),
            next_due_at: due.map(InstantView),
            owner,
            ..line
        }
    }

    fn submitted(submitted: &JobSubmitted, plan: &Plan, at: Timestamp) -> Self {
        Self {
            job: submitted.job.clone(),
            name: plan.workflow().name.clone(),
            workflow: workflow_path(submitted),
            argv: argv(plan, submitted),
            submitted_at: Some(InstantView(at)),
            seed: Some(submitted.seed.to_string()),
            ..Self::default()
        }
    }

    pub fn unreadable(job: &str, why: &str) -> Self {
        Self { job: job.to_owned(), error: Some(why.to_owned()), ..Self::default() }
    }
}

/// The prompt in the arguments of an agent.
const PROMPT_PLACEHOLDER: &str = "{prompt}";
/// The item in the words of `map`.
const ITEM_PLACEHOLDER: &str = "{}";

/// The path of the workflow file; `None` for `exec`, `map` and flows started over HTTP.
pub(super) fn workflow_path(submitted: &JobSubmitted) -> Option<String> {
    let file = submitted.file.as_str();
    // The file of `exec` and `map` is a dash and a name; standard input is a dash alone.
    let is_typed = file.starts_with('-') && file != "-";
    (!is_typed && !file.is_empty()).then(|| file.to_owned())
}

/// The program of `exec` or `map`, with `{}` for the item.
pub(super) fn argv(plan: &Plan, submitted: &JobSubmitted) -> Option<Vec<String>> {
    // Only these two commands pass output on.
    submitted.passing?;
    let mut commands = plan.numbered();
    let (words, prompt) = commands.find_map(|(_, command)| {
        let Action::Agent { name, prompt } = &command.action else { return None };
        Some((plan.workflow().agents.get(name)?, prompt))
    })?;
    let typed = prompt.plain().unwrap_or(ITEM_PLACEHOLDER);
    let words = words.iter().map(|word| word.replace(PROMPT_PLACEHOLDER, typed));
    Some(words.collect())
}
