//! Folding the journal of a breaker, also one whose beginning was trimmed.

use super::record::{BreakerRecord, Fact};
use super::state::{BreakerChange, BreakerState};

/// So many openings and closings outlive the records they come from.
pub const HISTORY: usize = 64;

/// What the journal of a breaker comes to.
///
/// Facts are applied in journal order, starting with the latest [`Fact::Folded`] if the beginning of the
/// journal is gone. Such a record may stand behind facts that are not part of it: other processes append
/// at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BreakerJournal {
    /// The state after the last record.
    pub state: BreakerState,
    /// The version of the last record.
    pub version: u64,
    /// How many records there are since the latest fold.
    pub unfolded: u64,
    /// The changes that its records have led to, each with the version of its record; of trimmed ones the
    /// latest openings and closings, without a version.
    pub changes: Vec<(Option<u64>, BreakerChange)>,
}

impl BreakerJournal {
    /// Folds all records there are, each with its version.
    pub fn fold(records: &[(u64, BreakerRecord)]) -> Self {
        let mut journal = Self::default();
        let first = records.first().map_or(1, |(version, _)| *version);
        let mut rest = records;
        if first > 1
            && let Some((upto, state, history)) = latest_fold(records)
        {
            journal.state = state.clone();
            journal.changes = history
                .iter()
                .map(|change| (None, change.clone()))
                .collect();
            let behind = records.iter().position(|(version, _)| *version > upto);
            rest = behind.and_then(|at| records.get(at..)).unwrap_or_default();
            journal.version = upto;
        }
        for (version, record) in rest {
            journal.add(*version, record);
        }
        journal
    }

    /// Adds the next record.
    pub fn add(&mut self, version: u64, record: &BreakerRecord) {
        self.version = version;
        self.unfolded = self.unfolded.saturating_add(1);
        for fact in &record.facts {
            if let Fact::Folded { upto, .. } = fact {
                self.unfolded = version.saturating_sub(*upto);
            }
        }
        let changes = self.state.apply(record);
        let changes = changes.into_iter().map(|change| (Some(version), change));
        self.changes.extend(changes);
    }

    /// The fact that makes all records up to here dispensable.
    pub fn folded(&self) -> Fact {
        let transitions = self.changes.iter().map(|(_, change)| change);
        let transitions = transitions.filter(|change| change.change.is_transition());
        let many = transitions.clone().count();
        let latest = transitions.skip(many.saturating_sub(HISTORY));
        Fact::Folded {
            upto: self.version,
            state: Box::new(self.state.clone()),
            history: latest.cloned().collect(),
        }
    }
}

/// The fold that covers the most records: its last record, the state and the history.
fn latest_fold(records: &[(u64, BreakerRecord)]) -> Option<(u64, &BreakerState, &[BreakerChange])> {
    let facts = records.iter().flat_map(|(_, record)| &record.facts);
    let folds = facts.filter_map(|fact| {
        let Fact::Folded {
            upto,
            state,
            history,
        } = fact
        else {
            return None;
        };
        Some((*upto, &**state, history.as_slice()))
    });
    folds.max_by_key(|(upto, ..)| *upto)
}
