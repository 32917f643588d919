//! What several jobs say to breakers, written together.
//!
//! Every failure changes the breaker of its target. If each of a thousand jobs wrote that by itself, all
//! but one would find that another was faster, again and again. So all who have something to say say it
//! in one append, one after the other, each knowing what the one before has said.
//!
//! What is said next rests on what is being written. Should that not be written, this must not be
//! either, and a breaker's version alone does not see to that: another process may have brought it to
//! the same number. So it says, too, where the journal of a job is that is part of what is being
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use undaunted_policy::mutant::{self, Mutant};
use undaunted_store::{AggregateId, Append, AppendError};

use super::handle::Post;
use super::hub::Hub;
use super::news::News;
use crate::failpoint;

/// What is being written together.
pub(super) struct Together {
    jobs: Vec<Arc<str>>,
    breakers: BTreeSet<Arc<str>>,
}

impl Hub<'_> {
    /// Hands over what jobs have to say to breakers.
    pub(super) fn hand_over_together(&mut self) {
        let is_there = |it: &Together| it.jobs.iter().any(|job| self.jobs.contains_key(job));
        if self.is_torn || self.speaking.is_empty() || !self.together.iter().all(is_there) {
            return;
        }
        let mut jobs = Vec::new();
        let mut names = Vec::new();
        let mut reached = Vec::new();
        let mut breakers: BTreeMap<AggregateId, Append> = BTreeMap::new();
        for name in std::mem::take(&mut self.speaking) {
            let Some(place) = self.jobs.get_mut(&name).filter(|it| it.drive.speaks()) else {
                continue;
            };
            let said = match place.drive.say() {
                Ok(said) => said,
                Err(error) => {
                    self.settle(&name, Err(error));
                    continue;
                }
            };
            for append in said {
                match breakers.get_mut(&append.aggregate) {
                    Some(before) => before.records.extend(append.records),
                    None => {
                        breakers.insert(append.aggregate.clone(), append);
                    }
                }
            }
            // All that it had to say may have been taken back.
            if let Some(append) = place.drive.close_batch() {
                reached.push(place.drive.version.0);
                jobs.push(append);
                names.push(name);
            }
        }
        if jobs.is_empty() {
            return;
        }
        jobs.extend(self.rests_on(&names));
        let touched = breakers.keys().map(|of| Arc::from(of.id())).collect();
        jobs.extend(breakers.into_values());
        self.board.borrow_mut().begin_writing(&touched);
        self.together.push_back(Together {
            jobs: names,
            breakers: touched,
        });
        let post = self.post.clone();
        self.world.store.submit(
            jobs,
            Box::new(move |result| {
                for reached in reached {
                    failpoint::reach("append-after", reached);
                }
                // Whoever no longer listens has left.
                drop(post.send(Post::Together(result.map(drop))));
            }),
        );
    }

    /// Where the journals are of jobs that are part of what is being written; those that are part of
    /// this as well say so themselves.
    fn rests_on(&self, names: &[Arc<str>]) -> Vec<Append> {
        let names: BTreeSet<&Arc<str>> = names.iter().collect();
        let groups = self.together.iter();
        let groups = groups.filter(|it| !it.jobs.iter().any(|job| names.contains(job)));
        let jobs = groups.filter_map(|it| it.jobs.iter().find_map(|job| self.jobs.get(job)));
        let mut at: BTreeMap<AggregateId, Append> = BTreeMap::new();
        for place in jobs {
            let (claim, version) = (&place.drive.claim, place.drive.version);
            let append = Append::new(claim.aggregate.clone(), version, claim.epoch, Vec::new());
            at.insert(claim.aggregate.clone(), append);
        }
        at.into_values().collect()
    }

    /// It is on the disk, or cannot be: each of them hears it.
    pub(super) fn stored_together(
        &mut self,
        result: &Result<(), AppendError>,
        touched: &mut BTreeMap<Arc<str>, bool>,
    ) {
        let Some(written) = self.together.pop_front() else {
            return;
        };
        self.board.borrow_mut().end_writing(&written.breakers);
        if result.is_err() {
            // What jobs were told of each other's words was never said.
            self.board.borrow_mut().forget();
            self.is_torn = !mutant::is(Mutant::RestsOnRefused);
        }
        if self.together.is_empty() {
            self.is_torn = false;
        }
        for name in written.jobs {
            self.hear(Post::News(name, News::Stored(result.clone())), touched);
        }
    }
}
