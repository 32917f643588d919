//! Following every flow of a store.
//!
//! The heads of all journals tell which flows have new records; only those are read, and only flows that have
//! not ended are kept in memory. Flows that other processes run are followed as well.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use undaunted_engine::job::Plans;
use undaunted_runner::journal::{FAMILY, JournalError};
use undaunted_store::{Store, Version};

use crate::answer::json_of;
use crate::flow_state::FollowedFlow;

/// The least time between two looks at the heads, and how many times longer than a look it is.
const PAUSE: Duration = Duration::from_millis(100);
const PAUSE_FACTOR: u32 = 10;

/// The most records of one flow that are read in one go.
const PAGE: usize = 256;

pub(crate) struct FollowedFlows {
    flows: BTreeMap<String, FlowProgress>,
    /// When the heads may be looked at again.
    next: Instant,
}

/// How far a flow was followed.
enum FlowProgress {
    /// Nothing after this record was sent. The flow has ended, or there was nothing to send yet.
    At(Version),
    Live(Box<FollowedFlow>),
    /// A job that is no flow, or a flow that cannot be read; looked at again after this version.
    Skipped(Version),
}

impl FlowProgress {
    const fn version(&self) -> Version {
        match self {
            Self::At(version) | Self::Skipped(version) => *version,
            Self::Live(flow) => flow.version,
        }
    }
}

impl FollowedFlows {
    /// From now on.
    pub(crate) fn begin(store: &dyn Store) -> Result<Self, JournalError> {
        let listed = store.list(FAMILY, "")?.into_iter();
        let flows =
            listed.map(|listed| (listed.aggregate.id().to_owned(), FlowProgress::At(listed.head.version)));
        Ok(Self { flows: flows.collect(), next: Instant::now() })
    }

    /// Calls `push` with the new events. Returns whether there may be more at once.
    pub(crate) fn read(
        &mut self,
        store: &dyn Store,
        plans: &Plans,
        mut push: impl FnMut(Value),
    ) -> Result<bool, JournalError> {
        let began = Instant::now();
        if began < self.next {
            return Ok(true);
        }
        let mut before = std::mem::take(&mut self.flows);
        let mut more = false;
        for listed in store.list(FAMILY, "")? {
            let (id, head) = (listed.aggregate.id(), listed.head.version);
            // A lower head is another job with the same name.
            let known = before.remove(id).filter(|known| known.version() <= head);
            let known = known.unwrap_or(FlowProgress::At(Version::EMPTY));
            let now = if known.version() == head {
                known
            } else {
                // A flow that cannot be read must not keep the client from following the others.
                advanced(store, plans, id, known, &mut push).unwrap_or(FlowProgress::Skipped(head))
            };
            more |= now.version() < head;
            let _ = self.flows.insert(id.to_owned(), now);
        }
        let pause = began.elapsed().saturating_mul(PAUSE_FACTOR).max(PAUSE);
        self.next = Instant::now().checked_add(pause).unwrap_or(began);
        Ok(more)
    }
}

fn advanced(
    store: &dyn Store,
    plans: &Plans,
    id: &str,
    known: FlowProgress,
    push: &mut impl FnMut(Value),
) -> Result<FlowProgress, JournalError> {
    let sent = known.version();
    let mut flow = match known {
        FlowProgress::Live(flow) => flow,
        FlowProgress::At(_) | FlowProgress::Skipped(_) => {
            let Some((flow, first)) = FollowedFlow::begin(store, id, plans)? else {
                return Ok(FlowProgress::At(sent));
            };
            if let Some(first) = first.filter(|_| sent < flow.version) {
                push(json_of(&first));
            }
            Box::new(flow)
        }
    };
    // A flow that goes on after its end is read again from its beginning.
    loop {
        let read = flow.follow(store, PAGE, |version, event| {
            if let Some(event) = event.filter(|_| version > sent) {
                push(json_of(&event));
            }
        });
        if read? == 0 || flow.version > sent {
            break;
        }
    }
    Ok(if flow.has_ended() { FlowProgress::At(flow.version) } else { FlowProgress::Live(flow) })
}
