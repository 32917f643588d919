//! BreakerJournals of breakers whose beginning was trimmed come to what the whole comes to.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::breaker::{
    BreakerChange, BreakerFact, BreakerJournal, BreakerRecord, HISTORY, TargetSignal,
};
use undaunted_policy::{BreakerSettings, Timestamp};

use crate::fixture::{BreakerJournals, T0, at};

/// What is appended next.
#[derive(Clone, Debug)]
enum Appended {
    /// A result of a start that was so many openings ago.
    Reported(u32, bool, TargetSignal),
    Probed(u32),
    ProbeLost(u32),
    Configured(u32),
    ByHand(bool),
    Imported,
    /// What a process knows that has not read the last so many records.
    Folded(u64),
    /// Nothing; as much as may be is trimmed, but for so many records.
    Trim(u64),
}

fn appended() -> impl Strategy<Value = Appended> {
    let signal = prop_oneof![
        3 => Just(TargetSignal::Up),
        6 => Just(TargetSignal::Down),
        1 => Just(TargetSignal::Unknown),
        1 => Just(TargetSignal::Trip),
    ];
    let ago = || prop_oneof![4 => Just(0_u32), 1 => 1_u32..3];
    prop_oneof![
        20 => (ago(), any::<bool>(), signal)
            .prop_map(|(ago, probe, signal)| Appended::Reported(ago, probe, signal)),
        8 => ago().prop_map(Appended::Probed),
        1 => ago().prop_map(Appended::ProbeLost),
        1 => (1_u32..4).prop_map(Appended::Configured),
        2 => any::<bool>().prop_map(Appended::ByHand),
        1 => Just(Appended::Imported),
        4 => (0_u64..5).prop_map(Appended::Folded),
        3 => (0_u64..4).prop_map(Appended::Trim),
    ]
}

/// The journal of a breaker as it is, and as it would be if it was never trimmed.
#[derive(Default)]
struct Both {
    whole: BreakerJournals,
    trimmed: BreakerJournals,
    /// All records up to here may go.
    dispensable: u64,
    now: Timestamp,
}

impl Both {
    fn add(&mut self, what: &Appended) {
        let name = Arc::from("payments");
        self.now = self.now.after(Duration::from_secs(20));
        let (at, state) = (self.now, self.whole.fold(&name).state);
        let generation = |ago: u32| state.breaker.generation().saturating_sub(ago);
        let fact = match *what {
            Appended::Reported(ago, probe, signal) => {
                BreakerFact::Reported { at, generation: generation(ago), probe, signal, many: 1 }
            }
            Appended::Probed(ago) => BreakerFact::Probed { at, generation: generation(ago) },
            Appended::ProbeLost(ago) => BreakerFact::ProbeLost { at, generation: generation(ago) },
            Appended::Configured(failure_threshold) => {
                let settings =
                    BreakerSettings { failure_threshold, half_open_max_calls: 1, ..BreakerSettings::DEFAULT };
                BreakerFact::Configured { at, settings }
            }
            Appended::ByHand(true) => BreakerFact::Tripped { at },
            Appended::ByHand(false) => BreakerFact::Reset { at },
            Appended::Imported => {
                BreakerFact::Imported { since: at, until: at.after(Duration::from_secs(9)) }
            }
            Appended::Folded(behind) => {
                let Some(fact) = self.folded(&name, behind) else {
                    return;
                };
                fact
            }
            Appended::Trim(kept) => {
                self.trimmed.trim(&name, self.dispensable.saturating_sub(kept));
                return;
            }
        };
        let record = BreakerRecord { job: Some("7f3k".to_owned()), seq: Some(1), facts: vec![fact] };
        let version = self.whole.append(&name, &record);
        assert_eq!(self.trimmed.append(&name, &record), version);
    }

    /// What a process writes that has read all records but the last.
    fn folded(&mut self, name: &str, behind: u64) -> Option<BreakerFact> {
        let records = self.whole.of(name);
        let behind = usize::try_from(behind).unwrap();
        let known = records.get(..records.len().checked_sub(behind)?)?;
        let (last, _) = known.last()?;
        self.dispensable = self.dispensable.max(*last);
        Some(BreakerJournal::fold(known).folded())
    }
}

/// The latest openings and closings.
fn history(journal: &BreakerJournal) -> Vec<&BreakerChange> {
    let changes = journal.changes.iter().map(|(_, change)| change);
    let changes: Vec<_> = changes.filter(|it| it.change.is_transition()).collect();
    changes[changes.len().saturating_sub(HISTORY)..].to_vec()
}

proptest! {
    #[test]
    fn what_is_left_of_a_trimmed_journal_comes_to_what_the_whole_comes_to(
        appended in vec(appended(), 1..150),
    ) {
        let mut both = Both { now: T0, ..Both::default() };
        for what in &appended {
            both.add(what);
            let (whole, left) = (both.whole.fold("payments"), both.trimmed.fold("payments"));
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
fn a_fold_that_stands_behind_facts_of_others_does_not_hide_them() {
    let mut records = vec![(1, tripped()), (2, tripped())];
    let folded = BreakerJournal::fold(&records).folded();
    // Another process was faster.
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
fn a_fold_says_nothing_new_to_who_has_read_all() {
    let mut journal = BreakerJournal::fold(&[(1, tripped())]);
    let before = journal.clone();
    let folded = journal.folded();
    journal.add(2, &BreakerRecord::by_hand(vec![folded]));
    assert_eq!(journal.state, before.state);
    assert_eq!(journal.changes, before.changes);
    assert_eq!((journal.version, journal.unfolded), (2, 1));
}

#[test]
fn only_the_latest_openings_and_closings_outlive_their_records() {
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
