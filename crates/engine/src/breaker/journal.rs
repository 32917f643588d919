//! Folds the journal of a breaker, including one whose beginning was trimmed.

use super::record::{BreakerFact, BreakerRecord};
use super::state::{BreakerChange, BreakerState};

/// How many transitions outlive the trimmed records they come from.
pub const HISTORY: usize = 64;

/// Facts are applied in journal order, starting from the latest [`BreakerFact::Folded`] if the beginning was
/// trimmed. That record may follow facts it does not cover, since other processes append at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakerJournal {
    pub state: BreakerState,
    pub version: u64,
    /// Records since the latest fold.
    pub unfolded: u64,
    /// Each with the version of its record; transitions of trimmed records have none.
    pub changes: Vec<(Option<u64>, BreakerChange)>,
}

impl BreakerJournal {
    pub fn fold(records: &[(u64, BreakerRecord)]) -> Self {
        let mut journal = Self::default();
        let first = records.first().map_or(1, |(version, _)| *version);
        let mut unfolded = records;
        if first > 1
            && let Some((upto, state, history)) = latest_fold(records)
        {
            journal.state = state.clone();
            let changes = history.iter().map(|change| (None, change.clone()));
            journal.changes = changes.collect();
            let after = records.iter().position(|(version, _)| *version > upto);
            unfolded = after.and_then(|index| records.get(index..)).unwrap_or_default();
            journal.version = upto;
        }
        for (version, record) in unfolded {
            journal.add(*version, record);
        }
        journal
    }

    pub fn add(&mut self, version: u64, record: &BreakerRecord) {
        self.version = version;
        self.unfolded = self.unfolded.saturating_add(1);
        for fact in &record.facts {
            if let BreakerFact::Folded { upto, .. } = fact {
                self.unfolded = version.saturating_sub(*upto);
            }
        }
        let changes = self.state.apply(record).into_iter().map(|change| (Some(version), change));
        self.changes.extend(changes);
    }

    /// The fact that allows all records so far to be trimmed.
    pub fn folded(&self) -> BreakerFact {
        let transitions = self.changes.iter().map(|(_, change)| change);
        let transitions = transitions.filter(|change| change.change.is_transition());
        let count = transitions.clone().count();
        let latest = transitions.skip(count.saturating_sub(HISTORY));
        BreakerFact::Folded {
            upto: self.version,
            state: Box::new(self.state.clone()),
            history: latest.cloned().collect(),
        }
    }
}

/// The fold that covers the most records.
fn latest_fold(records: &[(u64, BreakerRecord)]) -> Option<(u64, &BreakerState, &[BreakerChange])> {
    let facts = records.iter().flat_map(|(_, record)| &record.facts);
    let folds = facts.filter_map(|fact| {
        let BreakerFact::Folded { upto, state, history } = fact else { return None };
        Some((*upto, &**state, history.as_slice()))
    });
    folds.max_by_key(|(upto, ..)| *upto)
}
