//! A breaker journal whose beginning was trimmed folds to the same state as the whole journal.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::breaker::{
    BreakerChange, BreakerFact, BreakerJournal, BreakerRecord, HISTORY, TargetSignal,
};
use undaunted_policy::{BreakerSettings, Timestamp};

use crate::fixture::{BreakerJournals, T0, at};

#[derive(Clone, Debug)]
enum JournalAction {
    /// A result of a start from so many openings ago.
    Reported(u32, bool, TargetSignal),
    Probed(u32),
    ProbeLost(u32),
    Configured(u32),
    ByHand(bool),
    Imported,
    /// The fold of a process that has not read the last so many records.
    Folded(u64),
    /// Trims what a fold covers, but for so many records.
    Trim(u64),
}

fn journal_action() -> impl Strategy<Value = JournalAction> {
    let signal = prop_oneof![
        3 => Just(TargetSignal::Up),
        6 => Just(TargetSignal::Down),
        1 => Just(TargetSignal::Unknown),
        1 => Just(TargetSignal::Trip),
    ];
    let ago = || prop_oneof![4 => Just(0_u32), 1 => 1_u32..3];
    prop_oneof![
        20 => (ago(), any::<bool>(), signal)
            .prop_map(|(ago, probe, signal)| JournalAction::Reported(ago, probe, signal)),
        8 => ago().prop_map(JournalAction::Probed),
        1 => ago().prop_map(JournalAction::ProbeLost),
        1 => (1_u32..4).prop_map(JournalAction::Configured),
        2 => any::<bool>().prop_map(JournalAction::ByHand),
        1 => Just(JournalAction::Imported),
        4 => (0_u64..5).prop_map(JournalAction::Folded),
        3 => (0_u64..4).prop_map(JournalAction::Trim),
    ]
}

#[derive(Default)]
struct TrimmedAndWhole {
    whole: BreakerJournals,
    trimmed: BreakerJournals,
    /// The last version that a fold covers.
    dispensable: u64,
    now: Timestamp,
}

impl TrimmedAndWhole {
    fn add(&mut self, what: &JournalAction) {
        let name = Arc::from("payments");
        self.now = self.now.after(Duration::from_secs(20));
        let (at, state) = (self.now, self.whole.fold(&name).state);
        let generation = |ago: u32| state.breaker.generation().saturating_sub(ago);
        let fact = match *what {
            JournalAction::Reported(ago, probe, signal) => {
                BreakerFact::Reported { at, generation: generation(ago), probe, signal, many: 1 }
            }
            JournalAction::Probed(ago) => BreakerFact::Probed { at, generation: generation(ago) },
            JournalAction::ProbeLost(ago) => BreakerFact::ProbeLost { at, generation: generation(ago) },
            JournalAction::Configured(failure_threshold) => {
                let settings =
                    BreakerSettings { failure_threshold, half_open_max_calls: 1, ..BreakerSettings::DEFAULT };
                BreakerFact::Configured { at, settings }
            }
            JournalAction::ByHand(true) => BreakerFact::Tripped { at },
            JournalAction::ByHand(false) => BreakerFact::Reset { at },
            JournalAction::Imported => {
                BreakerFact::Imported { since: at, until: at.after(Duration::from_secs(9)) }
            }
            JournalAction::Folded(behind) => {
                let Some(fact) = self.folded(&name, behind) else {
                    return;
                };
                fact
            }
            JournalAction::Trim(kept) => {
                self.trimmed.trim(&name, self.dispensable.saturating_sub(kept));
                return;
            }
        };
        let record = BreakerRecord { job: Some("7f3k".to_owned()), seq: Some(1), facts: vec![fact] };
        let version = self.whole.append(&name, &record);
        assert_eq!(self.trimmed.append(&name, &record), version);
    }

    /// The fold of a process that has not read the last so many records.
    fn folded(&mut self, name: &str, behind: u64) -> Option<BreakerFact> {
        let records = self.whole.of(name);
        let behind = usize::try_from(behind).unwrap();
        let known = records.get(..records.len().checked_sub(behind)?)?;
        let (last, _) = known.last()?;
        self.dispensable = self.dispensable.max(*last);
        Some(BreakerJournal::fold(known).folded())
    }
}

fn history(journal: &BreakerJournal) -> Vec<&BreakerChange> {
    let changes = journal.changes.iter().map(|(_, change)| change);
    let changes: Vec<_> = changes.filter(|it| it.change.is_transition()).collect();
    changes[changes.len().saturating_sub(HISTORY)..].to_vec()
}

proptest! {
    #[test]
    fn a_trimmed_journal_folds_to_the_state_of_the_whole(
        actions in vec(journal_action(), 1..150),
    ) {
        let mut journals = TrimmedAndWhole { now: T0, ..TrimmedAndWhole::default() };
        for what in &actions {
            journals.add(what);
            let (whole, left) = (journals.whole.fold("payments"), journals.trimmed.fold("payments"));
            prop_assert_eq!(&left.state, &whole.state);
            prop_assert_eq!(left.version, whole.version);
            prop_assert_eq!(left.unfolded, whole.unfolded);
            prop_assert_eq!(history(&left), history(&whole));
        }
    }
}

fn tripped() -> BreakerRecord {
    BreakerRecord::by_hand(vec![BreakerFact::Tripped { at: at(1) }])
}

#[test]
fn a_fold_record_does_not_hide_facts_appended_before_it_by_others() {
    let mut records = vec![(1, tripped()), (2, tripped())];
    let folded = BreakerJournal::fold(&records).folded();
    // Another process appends in between.
    records.push((3, BreakerRecord::by_hand(vec![BreakerFact::Reset { at: at(2) }])));
    records.push((4, BreakerRecord::by_hand(vec![folded])));
    let whole = BreakerJournal::fold(&records);
    assert_eq!((whole.state.word(), whole.version), ("closed", 4));
    assert_eq!(whole.unfolded, 2, "the reset and the fold itself");
    for trimmed in [1, 2] {
        let left = BreakerJournal::fold(&records[trimmed..]);
        assert_eq!(left.state, whole.state);
        assert_eq!((left.version, left.unfolded), (4, 2));
        let versions: Vec<_> = left.changes.iter().map(|(version, _)| *version).collect();
        assert_eq!(versions, [None, None, Some(3)]);
    }
}

#[test]
fn a_fold_record_changes_nothing_for_a_complete_reader() {
    let mut journal = BreakerJournal::fold(&[(1, tripped())]);
    let before = journal.clone();
    let folded = journal.folded();
    journal.add(2, &BreakerRecord::by_hand(vec![folded]));
    assert_eq!(journal.state, before.state);
    assert_eq!(journal.changes, before.changes);
    assert_eq!((journal.version, journal.unfolded), (2, 1));
}

#[test]
fn a_fold_record_keeps_only_the_latest_transitions() {
    let records: Vec<_> = (1..=200).map(|version| (version, tripped())).collect();
    let journal = BreakerJournal::fold(&records);
    assert_eq!(journal.changes.len(), 200);
    let BreakerFact::Folded { upto, state, history } = journal.folded() else {
        panic!("no fold");
    };
    assert_eq!((upto, *state), (200, journal.state.clone()));
    assert_eq!(history.len(), HISTORY);
    assert_eq!(history.last(), journal.changes.last().map(|(_, change)| change));
}

#[test]
fn an_empty_journal_is_a_closed_breaker() {
    let journal = BreakerJournal::fold(&[]);
    assert_eq!(journal, BreakerJournal::default());
    assert_eq!((journal.state.word(), journal.version), ("closed", 0));
}
