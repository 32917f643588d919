//! The breakers of a job, as it knows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use undaunted_policy::{Admission, BreakerSettings, Ticket, Timestamp, WhenOpen};

use super::record::{BreakerRecord, Change};
use super::release::{Openness, Release};
use super::state::{BreakerState, Signal};
use crate::event::Subject;

/// The breakers that the commands of a job ask. Not part of its journal: they are read where they
/// are kept, and what the job changes is written there together with the records that led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breakers {
    known: BTreeMap<Arc<str>, Known>,
    told: Vec<Told>,
    changes: Vec<(Arc<str>, BreakerRecord)>,
    /// The item that is about to start, and the breaker of its target, where that depends on the item.
    aim: Option<((u32, u32), Arc<str>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    state: BreakerState,
    release: Option<Release>,
}

/// What a breaker was told by a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// An attempt that it let through starts.
    Started {
        /// The breaker.
        breaker: Arc<str>,
        /// The number of the start.
        start: u64,
        /// Which attempt.
        of: Subject,
        /// What it let it through with.
        ticket: Ticket,
        /// Whether it is the first of its item, whose time begins to run.
        is_first: bool,
        /// When.
        at: Timestamp,
    },
    /// An attempt that it had let through has ended.
    Ended {
        /// The breaker.
        breaker: Arc<str>,
        /// Which attempt.
        of: Subject,
        /// What it had let it through with.
        ticket: Ticket,
        /// What that says about the target.
        signal: Signal,
        /// When.
        at: Timestamp,
    },
}

impl Told {
    /// When it was told.
    pub(crate) const fn at(&self) -> Timestamp {
        match self {
            Self::Started { at, .. } | Self::Ended { at, .. } => *at,
        }
    }

    /// The breaker that was told.
    #[must_use]
    pub const fn breaker(&self) -> &Arc<str> {
        match self {
            Self::Started { breaker, .. } | Self::Ended { breaker, .. } => breaker,
        }
    }
}

impl Breakers {
    /// Breakers with these settings, which nobody has asked yet.
    pub(crate) fn of(settings: impl IntoIterator<Item = (String, BreakerSettings)>) -> Self {
        let known = settings.into_iter().map(|(name, settings)| {
            let state = BreakerState::with(settings);
            (
                Arc::from(name),
                Known {
                    state,
                    release: None,
                },
            )
        });
        Self {
            known: known.collect(),
            ..Self::default()
        }
    }

    /// An item is about to start whose target has this breaker; one that is not known has these
    /// settings.
    pub(crate) fn aim(&mut self, place: (u32, u32), name: &str, settings: BreakerSettings) {
        let name = self.name(name);
        self.known
            .entry(Arc::clone(&name))
            .or_insert_with(|| Known {
                state: BreakerState::with(settings),
                release: None,
            });
        self.aim = Some((place, name));
    }

    /// The breaker of the target of an item that is about to start.
    pub(crate) fn aimed_at(&self, place: (u32, u32)) -> Option<&str> {
        let aim = self.aim.as_ref().filter(|(of, _)| *of == place);
        aim.map(|(_, name)| &**name)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known.keys()
    }

    /// A breaker by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&BreakerState> {
        self.known.get(name).map(|known| &known.state)
    }

    /// The name, as it is kept here.
    pub(crate) fn name(&self, name: &str) -> Arc<str> {
        let known = self.known.get_key_value(name);
        known.map_or_else(|| Arc::from(name), |(name, _)| Arc::clone(name))
    }

    /// Whether a start may go ahead. One that is not known lets everything through.
    pub(crate) fn admission(&self, name: &str, now: Timestamp) -> Admission {
        let state = self.get(name);
        state.map_or_else(
            || Admission::Go(Ticket::restored(0, false)),
            |state| state.admission(now),
        )
    }

    /// Whether starts fail while a breaker is open, instead of being held.
    pub(crate) fn refuses(&self, name: &str) -> bool {
        let state = self.get(name);
        state.is_some_and(|state| state.settings.when_open == WhenOpen::Fail)
    }

    /// What a breaker lets through now.
    pub(crate) fn openness(&self, name: &str, now: Timestamp) -> Openness {
        match (self.admission(name, now), self.known.get(name)) {
            (Admission::Go(ticket), _) if ticket.probe => Openness::Probes,
            (Admission::Go(_), known) => {
                let release = known.and_then(|known| known.release);
                Openness::Passes(release.map_or(u32::MAX, |release| release.allowed(now)))
            }
            (Admission::Held { .. }, _) => Openness::Holds,
            (Admission::Refused, _) => Openness::Refuses,
        }
    }

    /// When a breaker lets more through by itself than it does now.
    pub(crate) fn next(&self, name: &str) -> Option<Timestamp> {
        let known = self.known.get(name)?;
        let release = known.release.and_then(|release| release.next());
        known.state.until().or(release)
    }

    /// Nobody has ever named a breaker where breakers are kept: it is as its settings make it.
    pub fn unlearn(&mut self, name: &str) {
        if let Some(known) = self.known.get_mut(name) {
            known.state = BreakerState::with(known.state.settings);
        }
    }

    /// Takes note of what a breaker is where it is kept. If it was shut and is not any more, so many
    /// that the job holds are let go from now on.
    pub(crate) fn learn(
        &mut self,
        name: &str,
        state: BreakerState,
        held: u32,
        draw: u64,
        now: Timestamp,
    ) {
        let release = (held > 0 && !state.is_shut())
            .then(|| Release::new(now, state.settings.recovery_timeout, held, draw));
        match self.known.get_mut(name) {
            Some(known) => {
                let was_shut = known.state.is_shut();
                known.state = state;
                if was_shut || known.release.is_none() {
                    known.release = release;
                }
            }
            None => {
                self.known.insert(name.into(), Known { state, release });
            }
        }
    }

    /// Tells a breaker something on behalf of a job; answers what that changes.
    pub(crate) fn tell(&mut self, job: &str, told: Told) -> Option<Change> {
        let name = Arc::clone(told.breaker());
        let known = self.known.get_mut(&name)?;
        let (change, at) = match &told {
            Told::Started { ticket, at, .. } => {
                if let Some(release) = &mut known.release {
                    release.started();
                }
                (known.state.start(job, *ticket, *at), *at)
            }
            Told::Ended {
                ticket, signal, at, ..
            } => (known.state.report(*ticket, *signal, *at), *at),
        };
        if known.state.is_shut() {
            known.release = None;
        }
        self.told.push(told);
        let change = change?;
        self.changes.push((
            name,
            BreakerRecord {
                at,
                change,
                job: Some(job.to_owned()),
                state: known.state.clone(),
            },
        ));
        Some(change)
    }

    /// A breaker has closed while the job holds so many.
    pub(crate) fn let_go(&mut self, name: &str, held: u32, draw: u64, now: Timestamp) {
        if let Some(known) = self.known.get_mut(name) {
            let timeout = known.state.settings.recovery_timeout;
            known.release = (held > 0).then(|| Release::new(now, timeout, held, draw));
        }
    }

    /// A job was paused from then to now, and let nothing go.
    pub(crate) fn stand_still(&mut self, since: Timestamp, now: Timestamp) {
        for known in self.known.values_mut() {
            if let Some(release) = &mut known.release {
                release.stand_still(since, now);
            }
        }
    }

    /// What the breakers were told since this was last asked, and the records that follow from it.
    #[must_use]
    pub fn take(&mut self) -> (Vec<Told>, Vec<(Arc<str>, BreakerRecord)>) {
        (
            std::mem::take(&mut self.told),
            std::mem::take(&mut self.changes),
        )
    }
}
