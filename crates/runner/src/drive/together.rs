//! What several jobs say to breakers, written together.
//!
//! Every failure changes the breaker of its target. If each of a thousand jobs wrote that by itself, all
//! but one would find that another was faster, again and again. So all who have something to say when
//! the last of it is on the disk say it in one append, one after the other, each knowing what the one
//! before has said.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_store::{AggregateId, Append, AppendError};

use super::handle::Post;
use super::hub::Hub;
use super::news::News;
use crate::failpoint;

impl Hub<'_> {
    /// Hands over what jobs have to say to breakers, unless something is being written of that.
    pub(super) fn hand_over_together(&mut self) {
        if self.together.is_some() || self.speaking.is_empty() {
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
                reached.push(append.reaches().0);
                jobs.push(append);
                names.push(name);
            }
        }
        if jobs.is_empty() {
            return;
        }
        jobs.extend(breakers.into_values());
        self.together = Some(names);
        let post = self.post.clone();
        self.world.store.submit(
            jobs,
            Box::new(move |result| {
                for reached in reached {
                    failpoint::reach("append-after", reached);
                }
                // Whoever no longer listens has left.
                drop(post.send(Post::Together(result)));
            }),
        );
    }

    /// It is on the disk, or cannot be: each of them hears it.
    pub(super) fn stored_together(
        &mut self,
        result: &Result<(), AppendError>,
        touched: &mut BTreeMap<Arc<str>, bool>,
    ) {
        if result.is_err() {
            // What jobs were told of each other's words was never said.
            self.board.borrow_mut().forget();
        }
        for name in self.together.take().into_iter().flatten() {
            self.hear(Post::News(name, News::Stored(result.clone())), touched);
        }
    }
}
