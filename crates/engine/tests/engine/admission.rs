//! The breakers as all jobs of a process see them: own facts that are being written, settings, and how
//! what was held is let go.

use undaunted_engine::breaker::{
    AdmissionControl, BreakerAnswer, BreakerChangeKind, BreakerFact, BreakerJournal, BreakerRecord,
    StartAllowance, TargetSignal,
};
use undaunted_policy::{BreakerSettings, Ticket, WhenOpen};

use crate::desk::{Desk, NAME, SETTINGS, id, jobs, name};
use crate::scene::{T0, at, secs};

fn failed(many: u32) -> BreakerFact {
    BreakerFact::Reported { at: T0, generation: 0, probe: false, signal: TargetSignal::Down, many }
}

#[test]
fn what_a_process_reports_counts_before_it_is_written() {
    let mut desk = Desk::of(SETTINGS);
    desk.fail("a");
    desk.fail("b");
    assert_eq!(desk.state().word(), "open");
    let until = Some(at(60));
    assert_eq!(desk.ask("c", 9), BreakerAnswer::Held { breaker: name(), until, longest: None });
    assert_eq!(desk.admission.take_transitions(), [], "nothing is on the disk");
    assert!(desk.write("a"));
    assert_eq!(desk.admission.take_transitions(), []);
    assert!(desk.write("b"));
    let turned = desk.admission.take_transitions();
    let turned: Vec<_> = turned.iter().map(|(_, it)| (it.change, it.job.as_deref())).collect();
    assert_eq!(turned, [(BreakerChangeKind::Opened, Some("b"))]);
    assert_eq!(desk.state(), &desk.journals.fold(NAME).state);
}

#[test]
fn own_facts_that_are_read_before_they_are_acknowledged_count_once() {
    let mut desk = Desk::of(SETTINGS);
    desk.fail("a");
    let (seq, record) = desk.seal("a");
    let version = desk.journals.append(&name(), &record);
    assert!(desk.look());
    assert_eq!(desk.state().failures(), 1);
    assert!(desk.admission.acknowledge(NAME, "a", seq, Some(version)));
    desk.admission.refresh();
    assert_eq!(desk.state().failures(), 1);
    assert_eq!(desk.admission.version(NAME).unwrap().0, 1);
}

#[test]
fn own_facts_whose_version_was_not_answered_count_once() {
    for is_read_before in [false, true] {
        let mut desk = Desk::of(SETTINGS);
        desk.fail("a");
        let (seq, record) = desk.seal("a");
        let _ = desk.journals.append(&name(), &record);
        if is_read_before {
            // The answer was lost, and the journal was read whole meanwhile.
            desk.admission.load(&name(), desk.journals.fold(NAME));
        }
        assert!(!desk.admission.acknowledge(NAME, "a", seq, None));
        assert!(desk.look());
        desk.admission.refresh();
        assert_eq!(desk.state(), &desk.journals.fold(NAME).state);
    }
}

#[test]
fn facts_of_another_process_for_the_same_job_are_not_taken_for_own_ones() {
    let mut desk = Desk::of(BreakerSettings { failure_threshold: 5, ..SETTINGS });
    desk.fail("a");
    let (seq, record) = desk.seal("a");
    // What the process before wrote had another number.
    let before = BreakerRecord { seq: Some(seq + 7), ..record.clone() };
    let _ = desk.journals.append(&name(), &before);
    assert!(desk.look());
    assert_eq!(desk.state().failures(), 2);
    let _ = desk.journals.append(&name(), &record);
    assert!(desk.look());
    assert_eq!(desk.state().failures(), 2);
}

#[test]
fn facts_of_others_between_own_ones_have_to_be_read() {
    let mut desk = Desk::of(SETTINGS);
    desk.fail("a");
    let (seq, record) = desk.seal("a");
    desk.unseen(None, vec![BreakerFact::Reset { at: T0 }]);
    let version = desk.journals.append(&name(), &record);
    assert!(!desk.admission.acknowledge(NAME, "a", seq, Some(version)));
    assert_eq!(desk.state().failures(), 1, "it counts meanwhile");
    assert!(desk.look());
    assert_eq!(desk.state().failures(), 0, "it started before the reset");
    assert_eq!(desk.state(), &desk.journals.fold(NAME).state);
}

#[test]
fn own_facts_in_a_journal_that_was_trimmed_before_it_was_read_count_once() {
    for acknowledged_first in [false, true] {
        let mut desk = Desk::of(SETTINGS);
        desk.fail("a");
        let (seq, record) = desk.seal("a");
        desk.unseen(None, vec![BreakerFact::Reset { at: T0 }, BreakerFact::Reset { at: T0 }]);
        let version = desk.journals.append(&name(), &record);
        let folded = desk.journals.fold(NAME).folded();
        desk.unseen(None, vec![folded]);
        desk.journals.trim(NAME, version);
        if acknowledged_first {
            assert!(!desk.admission.acknowledge(NAME, "a", seq, Some(version)));
        }
        assert!(!desk.look(), "records are missing");
        desk.admission.load(&name(), desk.journals.fold(NAME));
        if !acknowledged_first {
            assert!(desk.admission.acknowledge(NAME, "a", seq, Some(version)));
        }
        desk.admission.refresh();
        assert_eq!(desk.state(), &desk.journals.fold(NAME).state);
        desk.end("a", Ticket::restored(2, false), TargetSignal::Down);
        assert_eq!(desk.state().failures(), 1);
    }
}

#[test]
fn every_record_configures_the_breaker_until_one_is_on_the_disk() {
    let mut desk = Desk::of(SETTINGS);
    desk.fail("a");
    desk.fail("b");
    let (_, first) = desk.seal("a");
    let (_, second) = desk.seal("b");
    for record in [first, second] {
        let journal = BreakerJournal::fold(&[(1, record)]);
        assert_eq!(journal.state.settings, SETTINGS, "whichever comes first");
    }
    desk.admission.remove_job(&id("a"));
    desk.admission.remove_job(&id("b"));
    let mut desk = Desk::of(SETTINGS);
    desk.fail("a");
    assert!(desk.write("a"));
    desk.fail("a");
    assert_eq!(desk.seal("a").1.facts, [failed(1)]);
}

#[test]
fn facts_of_a_job_that_is_forgotten_before_they_are_written_are_lost() {
    let mut desk = Desk::of(SETTINGS);
    desk.fail("a");
    let _ = desk.seal("a");
    desk.fail("a");
    desk.offer("b", 1, Some(3));
    assert_eq!(desk.state().word(), "open");
    desk.admission.remove_job(&id("a"));
    assert_eq!((desk.state().word(), desk.state().failures()), ("closed", 0));
    assert_eq!(desk.awakened(), jobs(["b"]), "it is held no longer");
    assert_eq!(desk.admission.users(NAME).count(), 1);
    desk.admission.remove_job(&id("b"));
    assert_eq!(desk.admission.get(NAME), None, "no job uses it any more");
}

#[test]
fn what_was_held_is_let_go_one_after_the_other_and_each_job_at_its_own_times() {
    let mut desk = Desk::open(SETTINGS, &[]);
    assert!(!desk.admission.is_idle());
    desk.offer_drawn("a", 4, Some(9), 0);
    desk.offer_drawn("b", 2, Some(9), u64::MAX / 2);
    desk.at(at(10));
    desk.others(None, vec![BreakerFact::Reset { at: at(10) }]);
    // Five seconds at most: a tenth of the recovery timeout.
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Admits(1));
    assert_eq!(desk.admission.allowance(NAME, "b"), StartAllowance::Admits(0));
    assert_eq!(desk.admission.allowance(NAME, "c"), StartAllowance::Admits(u32::MAX), "it held nothing");
    let next = desk.admission.next_admission(NAME, "b").unwrap();
    assert!(at(11) <= next && next < at(12), "half of its share later");
    let ticket = Ticket::restored(desk.state().breaker.generation(), false);
    desk.start("a", ticket);
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Admits(0));
    assert_eq!(desk.admission.next_admission(NAME, "a"), Some(at(11).after(secs(1) / 4)));
    desk.at(at(15));
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Admits(3));
    for _ in 0..3 {
        desk.start("a", ticket);
    }
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Admits(u32::MAX));
    assert_eq!(desk.admission.next_admission(NAME, "a"), None);
    desk.offer_nothing("b");
    assert_eq!(
        desk.admission.allowance(NAME, "b"),
        StartAllowance::Admits(u32::MAX),
        "it holds nothing any more"
    );
}

#[test]
fn a_release_ends_when_the_breaker_opens_again() {
    let mut desk = Desk::open(SETTINGS, &[]);
    desk.offer("a", 100, Some(9));
    desk.others(None, vec![BreakerFact::Reset { at: T0 }]);
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Admits(1));
    desk.others(None, vec![BreakerFact::Tripped { at: T0 }]);
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Holds);
    assert_eq!(desk.admission.next_admission(NAME, "a"), Some(at(60)));
    desk.at(at(30));
    desk.others(None, vec![BreakerFact::Reset { at: at(30) }]);
    assert_eq!(desk.admission.next_admission(NAME, "a"), Some(at(30)), "from the beginning");
}

#[test]
fn what_a_job_holds_when_it_comes_to_a_closed_breaker_is_let_go_one_after_the_other() {
    // Its process has died, and the breaker has closed since.
    let mut desk = Desk::of(SETTINGS);
    assert!(desk.admission.is_idle());
    desk.offer("a", 100, Some(9));
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Admits(1));
    assert!(!desk.admission.is_idle());
}

#[test]
fn other_settings_are_a_fact_and_hold_at_once() {
    let mut desk = Desk::of(SETTINGS);
    desk.admission.configure(&name(), &id("a"), SETTINGS);
    assert_eq!(desk.admission.seal(NAME, "a", 1), None, "they are the same");
    let settings = BreakerSettings { failure_threshold: 1, ..SETTINGS };
    desk.admission.configure(&name(), &id("a"), settings);
    desk.fail("a");
    assert_eq!(desk.state().word(), "open");
    assert!(desk.write("a"));
    assert_eq!(desk.journals.fold(NAME).state.settings, settings);
    assert_eq!(desk.state(), &desk.journals.fold(NAME).state);
}

#[test]
fn what_waits_is_awakened_when_settings_change_so_that_it_fails() {
    let mut desk = Desk::open(SETTINGS, &[("a", 3), ("b", 7)]);
    let settings = BreakerSettings { when_open: WhenOpen::Fail, ..SETTINGS };
    desk.others(None, vec![BreakerFact::Configured { at: T0, settings }]);
    assert_eq!(desk.awakened(), jobs(["a", "b"]));
    assert_eq!(desk.ask("a", 3), BreakerAnswer::Refused { breaker: name() });
}

#[test]
fn a_breaker_that_is_not_known_lets_everything_through() {
    let mut admission = AdmissionControl::default();
    let ticket = Ticket::restored(0, false);
    let breaker = name();
    let gate = admission.admit(&name(), &id("a"), Some(1));
    assert_eq!(gate, BreakerAnswer::Admitted { breaker, ticket });
    assert_eq!(admission.allowance(NAME, "a"), StartAllowance::Admits(u32::MAX));
    assert!(!admission.extend(NAME, []), "it has to be met first");
    assert!(admission.is_idle());
}
