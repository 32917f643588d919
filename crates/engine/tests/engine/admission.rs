//! The breakers as all jobs of a process see them: own facts that are not committed yet, settings, releases.

use undaunted_engine::breaker::{
    AdmissionControl, BreakerAnswer, BreakerChangeKind, BreakerFact, BreakerJournal, BreakerRecord,
    StartAllowance, TargetSignal,
};
use undaunted_policy::{BreakerSettings, Ticket, WhenOpen};

use crate::fixture::{AdmissionFixture, BREAKER, SETTINGS, T0, at, id, jobs, name, secs};

fn failed(many: u32) -> BreakerFact {
    BreakerFact::Reported { at: T0, generation: 0, probe: false, signal: TargetSignal::Down, many }
}

#[test]
fn what_a_process_reports_counts_before_it_is_written() {
    let mut test = AdmissionFixture::of(SETTINGS);
    test.fail("a");
    test.fail("b");
    assert_eq!(test.state().word(), "open");
    let until = Some(at(60));
    assert_eq!(test.ask("c", 9), BreakerAnswer::Held { breaker: name(), until, longest: None });
    assert_eq!(test.admission.take_transitions(), [], "nothing is on the disk");
    assert!(test.write("a"));
    assert_eq!(test.admission.take_transitions(), []);
    assert!(test.write("b"));
    let turned = test.admission.take_transitions();
    let turned: Vec<_> = turned.iter().map(|(_, it)| (it.change, it.job.as_deref())).collect();
    assert_eq!(turned, [(BreakerChangeKind::Opened, Some("b"))]);
    assert_eq!(test.state(), &test.journals.fold(BREAKER).state);
}

#[test]
fn own_facts_that_are_read_before_they_are_acknowledged_count_once() {
    let mut test = AdmissionFixture::of(SETTINGS);
    test.fail("a");
    let (seq, record) = test.seal("a");
    let version = test.journals.append(&name(), &record);
    assert!(test.read_journal());
    assert_eq!(test.state().failures(), 1);
    assert!(test.admission.acknowledge(BREAKER, "a", seq, Some(version)));
    test.admission.refresh();
    assert_eq!(test.state().failures(), 1);
    assert_eq!(test.admission.version(BREAKER).unwrap().0, 1);
}

#[test]
fn own_facts_whose_acknowledgement_was_lost_count_once() {
    for is_read_before in [false, true] {
        let mut test = AdmissionFixture::of(SETTINGS);
        test.fail("a");
        let (seq, record) = test.seal("a");
        let _ = test.journals.append(&name(), &record);
        if is_read_before {
            // The acknowledgement was lost, and the whole journal was read in between.
            test.admission.load(&name(), test.journals.fold(BREAKER));
        }
        assert!(!test.admission.acknowledge(BREAKER, "a", seq, None));
        assert!(test.read_journal());
        test.admission.refresh();
        assert_eq!(test.state(), &test.journals.fold(BREAKER).state);
    }
}

#[test]
fn facts_of_another_process_for_the_same_job_count_separately() {
    let mut test = AdmissionFixture::of(BreakerSettings { failure_threshold: 5, ..SETTINGS });
    test.fail("a");
    let (seq, record) = test.seal("a");
    // The previous process wrote under another sequence number.
    let before = BreakerRecord { seq: Some(seq + 7), ..record.clone() };
    let _ = test.journals.append(&name(), &before);
    assert!(test.read_journal());
    assert_eq!(test.state().failures(), 2);
    let _ = test.journals.append(&name(), &record);
    assert!(test.read_journal());
    assert_eq!(test.state().failures(), 2);
}

#[test]
fn facts_of_other_processes_between_own_ones_have_to_be_read() {
    let mut test = AdmissionFixture::of(SETTINGS);
    test.fail("a");
    let (seq, record) = test.seal("a");
    test.append_unread(None, vec![BreakerFact::Reset { at: T0 }]);
    let version = test.journals.append(&name(), &record);
    assert!(!test.admission.acknowledge(BREAKER, "a", seq, Some(version)));
    assert_eq!(test.state().failures(), 1, "it counts meanwhile");
    assert!(test.read_journal());
    assert_eq!(test.state().failures(), 0, "it started before the reset");
    assert_eq!(test.state(), &test.journals.fold(BREAKER).state);
}

#[test]
fn own_facts_in_a_journal_that_was_trimmed_before_it_was_read_count_once() {
    for acknowledged_first in [false, true] {
        let mut test = AdmissionFixture::of(SETTINGS);
        test.fail("a");
        let (seq, record) = test.seal("a");
        test.append_unread(None, vec![BreakerFact::Reset { at: T0 }, BreakerFact::Reset { at: T0 }]);
        let version = test.journals.append(&name(), &record);
        let folded = test.journals.fold(BREAKER).folded();
        test.append_unread(None, vec![folded]);
        test.journals.trim(BREAKER, version);
        if acknowledged_first {
            assert!(!test.admission.acknowledge(BREAKER, "a", seq, Some(version)));
        }
        assert!(!test.read_journal(), "records are missing");
        test.admission.load(&name(), test.journals.fold(BREAKER));
        if !acknowledged_first {
            assert!(test.admission.acknowledge(BREAKER, "a", seq, Some(version)));
        }
        test.admission.refresh();
        assert_eq!(test.state(), &test.journals.fold(BREAKER).state);
        test.end("a", Ticket::restored(2, false), TargetSignal::Down);
        assert_eq!(test.state().failures(), 1);
    }
}

#[test]
fn every_record_configures_the_breaker_until_one_is_committed() {
    let mut test = AdmissionFixture::of(SETTINGS);
    test.fail("a");
    test.fail("b");
    let (_, first) = test.seal("a");
    let (_, second) = test.seal("b");
    for record in [first, second] {
        let journal = BreakerJournal::fold(&[(1, record)]);
        assert_eq!(journal.state.settings, SETTINGS, "whichever comes first");
    }
    test.admission.remove_job(&id("a"));
    test.admission.remove_job(&id("b"));
    let mut test = AdmissionFixture::of(SETTINGS);
    test.fail("a");
    assert!(test.write("a"));
    test.fail("a");
    assert_eq!(test.seal("a").1.facts, [failed(1)]);
}

#[test]
fn facts_of_a_job_that_is_forgotten_before_they_are_written_are_lost() {
    let mut test = AdmissionFixture::of(SETTINGS);
    test.fail("a");
    let _ = test.seal("a");
    test.fail("a");
    test.offer("b", 1, Some(3));
    assert_eq!(test.state().word(), "open");
    test.admission.remove_job(&id("a"));
    assert_eq!((test.state().word(), test.state().failures()), ("closed", 0));
    assert_eq!(test.jobs_to_wake(), jobs(["b"]), "it is held no longer");
    assert_eq!(test.admission.users(BREAKER).count(), 1);
    test.admission.remove_job(&id("b"));
    assert_eq!(test.admission.get(BREAKER), None, "no job uses it any more");
}

#[test]
fn held_items_are_released_one_after_the_other_and_each_job_at_its_own_times() {
    let mut test = AdmissionFixture::open(SETTINGS, &[]);
    assert!(!test.admission.is_idle());
    test.offer_drawn("a", 4, Some(9), 0);
    test.offer_drawn("b", 2, Some(9), u64::MAX / 2);
    test.at(at(10));
    test.append_and_read(None, vec![BreakerFact::Reset { at: at(10) }]);
    // Five seconds at most: a tenth of the recovery timeout.
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Admits(1));
    assert_eq!(test.admission.allowance(BREAKER, "b"), StartAllowance::Admits(0));
    assert_eq!(test.admission.allowance(BREAKER, "c"), StartAllowance::Admits(u32::MAX), "it held nothing");
    let next = test.admission.next_admission(BREAKER, "b").unwrap();
    assert!(at(11) <= next && next < at(12), "half of its share later");
    let ticket = Ticket::restored(test.state().breaker.generation(), false);
    test.start("a", ticket);
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Admits(0));
    assert_eq!(test.admission.next_admission(BREAKER, "a"), Some(at(11).after(secs(1) / 4)));
    test.at(at(15));
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Admits(3));
    for _ in 0..3 {
        test.start("a", ticket);
    }
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Admits(u32::MAX));
    assert_eq!(test.admission.next_admission(BREAKER, "a"), None);
    test.offer_nothing("b");
    assert_eq!(
        test.admission.allowance(BREAKER, "b"),
        StartAllowance::Admits(u32::MAX),
        "it holds nothing any more"
    );
}

#[test]
fn a_release_ends_when_the_breaker_opens_again() {
    let mut test = AdmissionFixture::open(SETTINGS, &[]);
    test.offer("a", 100, Some(9));
    test.append_and_read(None, vec![BreakerFact::Reset { at: T0 }]);
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Admits(1));
    test.append_and_read(None, vec![BreakerFact::Tripped { at: T0 }]);
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Holds);
    assert_eq!(test.admission.next_admission(BREAKER, "a"), Some(at(60)));
    test.at(at(30));
    test.append_and_read(None, vec![BreakerFact::Reset { at: at(30) }]);
    assert_eq!(test.admission.next_admission(BREAKER, "a"), Some(at(30)), "from the beginning");
}

#[test]
fn items_on_hold_at_a_closed_breaker_are_released_one_after_the_other() {
    // Its process has died, and the breaker has closed since.
    let mut test = AdmissionFixture::of(SETTINGS);
    assert!(test.admission.is_idle());
    test.offer("a", 100, Some(9));
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Admits(1));
    assert!(!test.admission.is_idle());
}

#[test]
fn changed_settings_are_a_fact_and_apply_at_once() {
    let mut test = AdmissionFixture::of(SETTINGS);
    test.admission.configure(&name(), &id("a"), SETTINGS);
    assert_eq!(test.admission.seal(BREAKER, "a", 1), None, "they are the same");
    let settings = BreakerSettings { failure_threshold: 1, ..SETTINGS };
    test.admission.configure(&name(), &id("a"), settings);
    test.fail("a");
    assert_eq!(test.state().word(), "open");
    assert!(test.write("a"));
    assert_eq!(test.journals.fold(BREAKER).state.settings, settings);
    assert_eq!(test.state(), &test.journals.fold(BREAKER).state);
}

#[test]
fn jobs_with_held_items_wake_when_settings_change_to_fail() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 3), ("b", 7)]);
    let settings = BreakerSettings { when_open: WhenOpen::Fail, ..SETTINGS };
    test.append_and_read(None, vec![BreakerFact::Configured { at: T0, settings }]);
    assert_eq!(test.jobs_to_wake(), jobs(["a", "b"]));
    assert_eq!(test.ask("a", 3), BreakerAnswer::Refused { breaker: name() });
}

#[test]
fn an_unknown_breaker_admits_everything() {
    let mut admission = AdmissionControl::default();
    let ticket = Ticket::restored(0, false);
    let breaker = name();
    let answer = admission.admit(&name(), &id("a"), Some(1));
    assert_eq!(answer, BreakerAnswer::Admitted { breaker, ticket });
    assert_eq!(admission.allowance(BREAKER, "a"), StartAllowance::Admits(u32::MAX));
    assert!(!admission.extend(BREAKER, []), "it has to be met first");
    assert!(admission.is_idle());
}
