//! Resuming the flows of a store when a process starts.
//!
//! It lists the flows in the store, not the active flows in the catalog, since a flow may have been stored
//! right before a crash. Flows that have ended according to the catalog are skipped, which is most of them; a
//! flow that is missing from the catalog is added before anything else happens to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex};

use undaunted_engine::catalog::{CatalogEvent, FlowLifecycle};
use undaunted_engine::job::JobStage;
use undaunted_engine::workflow::WorkflowMode;
use undaunted_store::{ClaimError, ListedAggregate, Version};

use super::FlowHost;
use crate::catalog::{activated, deactivated};
use crate::{ClaimedJob, JournalError, Secrets, journal, with_causes};

/// How many flows are examined in parallel; their writes share a sync.
const AT_ONCE: usize = 64;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveredFlows {
    pub resumed: Vec<String>,
    /// Those of `resumed` that were missing from the catalog.
    pub repaired: Vec<String>,
    /// Run by another living process.
    pub owned: Vec<String>,
    /// Cannot be resumed, and why. They are left as they are.
    pub broken: Vec<(String, String)>,
}

type Lifecycles = BTreeMap<Arc<str>, FlowLifecycle>;

enum FlowFate {
    Nothing,
    Owned,
    Broken(String),
    /// It has ended, and the catalog lacks these events.
    Noted(Vec<CatalogEvent>),
    Resumed(Box<ClaimedJob>, Secrets, Option<CatalogEvent>),
}

impl FlowHost {
    pub fn recover(&self) -> Result<RecoveredFlows, JournalError> {
        let lifecycles = self.catalog.read(|catalog| {
            catalog.flows.iter().map(|(flow, entry)| (flow.clone(), entry.lifecycle)).collect::<Lifecycles>()
        })?;
        let listed = self.store.list(journal::FAMILY, "")?;
        self.note_removed(&lifecycles, &listed);
        let candidates = listed.into_iter().filter_map(|listed| {
            let id = listed.aggregate.id();
            let lifecycle = lifecycles.get(id).copied();
            let skipped = matches!(lifecycle, Some(FlowLifecycle::Deactivated | FlowLifecycle::Archiving));
            (!skipped).then(|| (id.to_owned(), lifecycle.is_some()))
        });
        let candidates: Vec<(String, bool)> = candidates.collect();
        let mut recovered = RecoveredFlows::default();
        for group in candidates.chunks(AT_ONCE.saturating_mul(16)) {
            if self.is_leaving() {
                break;
            }
            self.recover_group(group, &mut recovered)?;
        }
        self.note_recovered();
        Ok(recovered)
    }

    /// Notes in the catalog the removal of flows that are no longer in the store, in case a crash came
    /// between.
    fn note_removed(&self, lifecycles: &Lifecycles, listed: &[ListedAggregate]) {
        let there: BTreeSet<&str> = listed.iter().map(|it| it.aggregate.id()).collect();
        let gone = lifecycles.keys().filter(|flow| !there.contains(&***flow));
        for flow in gone {
            let flow = flow.to_string();
            self.catalog.note(CatalogEvent::FlowRemoved { flow });
        }
    }

    /// Resumes flows whose owner has died. Examines a limited number of flows, by name after `after`.
    pub fn resume_orphans(&self, after: &mut String) -> Result<RecoveredFlows, JournalError> {
        const MOST: usize = 1_000;
        let listed = self.catalog.read(|catalog| {
            let flows = catalog.flows.range::<str, _>((Excluded(after.as_str()), Unbounded));
            let active = flows.filter(|(_, entry)| entry.lifecycle == FlowLifecycle::Active);
            let elsewhere = active.filter(|(flow, _)| !self.runs(flow)).map(|(flow, _)| flow.to_string());
            elsewhere.take(MOST).collect::<Vec<String>>()
        })?;
        *after = match listed.last() {
            Some(last) if listed.len() == MOST => last.clone(),
            _ => String::new(),
        };
        let mut recovered = RecoveredFlows::default();
        let mut orphans = Vec::new();
        for flow in listed {
            let owner = self.store.owner(&journal::aggregate(&flow)?)?;
            if owner.is_none() && !self.is_leaving() {
                orphans.push((flow, true));
            }
        }
        self.recover_group(&orphans, &mut recovered)?;
        Ok(recovered)
    }

    fn recover_group(
        &self,
        group: &[(String, bool)],
        recovered: &mut RecoveredFlows,
    ) -> Result<(), JournalError> {
        let mut ready = Vec::new();
        let mut outage = None;
        for ((id, _), fate) in group.iter().zip(self.fates(group)) {
            let fate = match fate {
                Ok(fate) => fate,
                Err(error) => {
                    outage.get_or_insert(error);
                    continue;
                }
            };
            match fate {
                FlowFate::Nothing => {}
                FlowFate::Owned => recovered.owned.push(id.clone()),
                FlowFate::Broken(why) => recovered.broken.push((id.clone(), why)),
                FlowFate::Noted(events) => events.into_iter().for_each(|event| self.catalog.note(event)),
                FlowFate::Resumed(claimed, secrets, missing) => {
                    if let Some(missing) = missing {
                        recovered.repaired.push(id.clone());
                        self.catalog.note(missing);
                    }
                    recovered.resumed.push(id.clone());
                    ready.push((claimed, secrets));
                }
            }
        }
        // The catalog must have the flows before anything else happens to them.
        let flushed = self.catalog.flush();
        if let Some(error) = outage.or(flushed.err()) {
            for (claimed, _) in ready {
                self.store.unclaim_in_background(&claimed.claim);
            }
            return Err(error);
        }
        for (claimed, secrets) in ready {
            self.run_here(*claimed, secrets);
        }
        Ok(())
    }

    fn fates(&self, group: &[(String, bool)]) -> Vec<Result<FlowFate, JournalError>> {
        let next = Mutex::new(group.iter().enumerate());
        let found = Mutex::new(Vec::new());
        let take = || next.lock().ok()?.next();
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(group.len()) {
                scope.spawn(|| {
                    while let Some((lifecycle, (id, known))) = take() {
                        let fate = self.fate(id, *known);
                        if let Ok(mut found) = found.lock() {
                            found.push((lifecycle, fate));
                        }
                    }
                });
            }
        });
        let mut found = found.into_inner().unwrap_or_default();
        found.sort_by_key(|(lifecycle, _)| *lifecycle);
        found.into_iter().map(|(_, fate)| fate).collect()
    }

    /// The fate of a flow. An error is an outage.
    fn fate(&self, id: &str, known: bool) -> Result<FlowFate, JournalError> {
        match self.examined(id, known) {
            Ok(fate) => Ok(fate),
            Err(JournalError::Claim(ClaimError::OwnedBy { .. })) => Ok(FlowFate::Owned),
            Err(JournalError::NotFound { .. }) => Ok(FlowFate::Nothing),
            Err(error) if error.outage().is_some() => Err(error),
            Err(error) => Ok(FlowFate::Broken(with_causes(&error))),
        }
    }

    fn examined(&self, id: &str, known: bool) -> Result<FlowFate, JournalError> {
        if !self.is_flow(id)? {
            return Ok(FlowFate::Nothing);
        }
        let claimed = journal::claim(&*self.store, id, &self.plans)?;
        let missing = activated(&claimed.job).filter(|_| !known);
        if claimed.job.stage.has_ended() {
            self.store.unclaim_in_background(&claimed.claim);
            return Ok(FlowFate::Noted(missing.into_iter().chain(deactivated(&claimed.job)).collect()));
        }
        // The flow was suspended by a user and never ran in a host: the user has to resume it.
        if !known && claimed.job.stage == JobStage::Suspended {
            self.store.unclaim_in_background(&claimed.claim);
            return Ok(FlowFate::Nothing);
        }
        Ok(match Secrets::of_job(&claimed.job) {
            Ok(secrets) => FlowFate::Resumed(Box::new(claimed), secrets, missing),
            Err(error) => {
                self.store.unclaim_in_background(&claimed.claim);
                FlowFate::Broken(with_causes(&error))
            }
        })
    }

    fn is_flow(&self, id: &str) -> Result<bool, JournalError> {
        let aggregate = journal::aggregate(id)?;
        let first = self.store.read(&aggregate, Version::default())?.next();
        let Some(first) = first.transpose()? else {
            return Ok(false);
        };
        let record = journal::decode(id, first.0, &first.1)?;
        Ok(journal::begin(id, &record, &self.plans)?.workflow().mode == WorkflowMode::Flow)
    }
}
