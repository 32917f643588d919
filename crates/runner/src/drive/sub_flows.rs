//! Flows that items of other flows wait for.
//!
//! Each is a job of its own, with a name that follows from the item. Whoever goes on with the outer
//! flow after a crash asks for it again under that name: if it is there it is waited for, if it has
//! ended its result is taken, and otherwise it begins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::job::{Job, Plans, Stage};
use undaunted_engine::task::SubFlow;
use undaunted_policy::{Cause, Class};
use undaunted_store::ClaimError;

use super::handle::Post;
use super::hub::Hub;
use super::news::{Ask, News};
use crate::journal::{self, Held, JournalError};
use crate::request::{self, Request};
use crate::with_causes;

/// How often to look at a flow that another process runs.
const LOOK: Duration = Duration::from_secs(1);

/// Who waits for which flow.
#[derive(Default)]
pub(super) struct SubFlows {
    /// The outer flow and the number of the start, by the name of the inner one.
    waiting: BTreeMap<Arc<str>, (Arc<str>, u64)>,
    /// Those that another process runs, and when they were last looked at.
    elsewhere: BTreeMap<Arc<str>, (Arc<SubFlow>, Duration)>,
    /// What many of them have in common.
    plans: Plans,
}

impl Hub<'_> {
    /// Does what a job asks for.
    pub(super) fn answer(&mut self, parent: &Arc<str>, ask: Ask) {
        match ask {
            Ask::Run { start, flow } => {
                let name: Arc<str> = flow.id.as_str().into();
                let waits = (Arc::clone(parent), start);
                self.sub_flows.waiting.insert(Arc::clone(&name), waits);
                self.tell(parent, News::Accepted(start));
                self.begin_sub_flow(&name, &flow);
            }
            Ask::Cancel(flow) => {
                let name: Arc<str> = flow.id.as_str().into();
                self.sub_flows.waiting.remove(&name);
                self.sub_flows.elsewhere.remove(&name);
                if self.jobs.contains_key(&name) {
                    self.tell(&name, News::Cancel);
                } else {
                    // Whoever runs it, or goes on with it, hears of it; one that has ended needs not.
                    drop(request::ask(&*self.world.store, &name, Request::Cancel));
                }
            }
        }
    }

    fn tell(&self, job: &Arc<str>, news: News) {
        // It hears itself as long as it is there.
        drop(self.post.send(Post::News(Arc::clone(job), news)));
    }

    fn begin_sub_flow(&mut self, name: &Arc<str>, flow: &Arc<SubFlow>) {
        if self.jobs.contains_key(name) {
            return;
        }
        let Some(parent) = self
            .sub_flows
            .waiting
            .get(name)
            .map(|(of, _)| Arc::clone(of))
        else {
            return;
        };
        let Some(place) = self.jobs.get(&parent) else {
            return;
        };
        let secrets = place.drive.secrets.clone();
        match self.held_sub_flow(flow, &place.drive.job) {
            Ok(held) if held.job.stage.has_ended() => {
                self.world.store.let_go(&held.claim);
                self.tell_parent(name, &held.job);
            }
            Ok(held) => self.take_on(held, secrets),
            Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => {
                let seen = (Arc::clone(flow), self.world.machine.uptime());
                self.sub_flows.elsewhere.insert(Arc::clone(name), seen);
            }
            Err(error) => {
                let class = match error {
                    JournalError::Job { .. } => Class::Permanent,
                    _ => Class::Transient,
                };
                let why = format!("its flow cannot be run: {}", with_causes(&error));
                self.end_waiting(name, Err((Cause::Other(class), why)));
            }
        }
    }

    fn held_sub_flow(&self, flow: &SubFlow, parent: &Job) -> Result<Held, JournalError> {
        let store = &*self.world.store;
        let plans = &self.sub_flows.plans;
        match journal::claim_sharing(store, &flow.id, plans) {
            Err(JournalError::NotFound { .. }) => {
                let (now, _) = self.world.machine.clocks();
                journal::submit_sharing(store, flow.submission(parent), plans, now)
            }
            held => held,
        }
    }

    /// Looks again at flows that another process ran.
    pub(super) fn look_for_sub_flows(&mut self) {
        let now = self.world.machine.uptime();
        let due = |(_, seen): &(Arc<SubFlow>, Duration)| now.saturating_sub(*seen) >= LOOK;
        let elsewhere = self.sub_flows.elsewhere.iter();
        let elsewhere = elsewhere.filter(|(_, seen)| due(seen));
        let elsewhere: Vec<Arc<str>> = elsewhere.map(|(name, _)| Arc::clone(name)).collect();
        for name in elsewhere {
            if let Some((flow, _)) = self.sub_flows.elsewhere.remove(&name) {
                self.begin_sub_flow(&name, &flow);
            }
        }
    }

    /// A flow was left: whoever waits for it hears what it came to, if it has ended.
    pub(super) fn tell_parent(&mut self, name: &Arc<str>, job: &Job) {
        let result = match job.stage {
            Stage::Completed | Stage::Partial => {
                let given = job.attributes.iter();
                let given = given.filter(|(_, given)| given.step.is_some());
                let given = given.map(|(name, given)| (name.clone(), given.value.clone()));
                Ok(Value::Object(given.collect::<Map<_, _>>()).to_string())
            }
            Stage::Failed | Stage::Cancelled => {
                let error = job
                    .failure
                    .as_ref()
                    .map(|failure| job.texts.read(&failure.error));
                let error = error.unwrap_or("it was cancelled");
                Err((Cause::Refused, format!("the flow `{name}` failed: {error}")))
            }
            Stage::Running | Stage::Stopping(_) | Stage::Suspended => return,
        };
        self.end_waiting(name, result);
    }

    fn end_waiting(&mut self, name: &Arc<str>, result: Result<String, (Cause, String)>) {
        let Some((parent, start)) = self.sub_flows.waiting.remove(name) else {
            return;
        };
        let (output, failed) = match result {
            Ok(output) => (Some(output), None),
            Err(failed) => (None, Some(failed)),
        };
        let (failure, error) = failed.unzip();
        let end = AttemptEnd {
            start,
            output,
            failure,
            error: error.unwrap_or_default(),
            ..AttemptEnd::default()
        };
        self.tell(&parent, News::Ended(Box::new(end)));
    }
}
