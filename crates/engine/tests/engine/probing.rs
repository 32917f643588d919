//! Which process probes a breaker: the one with the claim; and which of its jobs: the one whose item has the most
//! attempts left.

use undaunted_engine::breaker::{BreakerAnswer, BreakerFact, ProbeOwner, StartAllowance, TargetSignal};
use undaunted_policy::{BreakerSettings, WhenOpen};

use crate::fixture::{AdmissionFixture, BREAKER, SETTINGS, T0, at, id, is_held, is_probe, jobs, name};

#[test]
fn a_breaker_stays_known_until_its_claim_is_released() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 3)]);
    test.set_probe_owner(ProbeOwner::Ours);
    test.admission.remove_job(&id("a"));
    assert!(!test.admission.needs_claim(BREAKER));
    test.set_probe_owner(ProbeOwner::Unclaimed);
    assert_eq!(test.admission.get(BREAKER), None);
}

#[test]
fn a_breaker_that_no_job_has_asked_stays_known_while_another_process_probes() {
    let mut test = AdmissionFixture::open(SETTINGS, &[]);
    test.at(at(60));
    test.set_probe_owner(ProbeOwner::Others);
    assert!(is_held(&test.ask("a", 9)));
}

#[test]
fn only_the_process_that_holds_the_claim_probes() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 9)]);
    test.at(at(59));
    assert!(!test.admission.may_probe(BREAKER));
    test.at(at(60));
    assert!(test.admission.may_probe(BREAKER));
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::AdmitsProbe);
    assert!(is_held(&test.ask("a", 9)), "no process has the claim yet");
    test.set_probe_owner(ProbeOwner::Others);
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Holds);
    assert!(is_held(&test.ask("a", 9)));
    assert_eq!(test.jobs_to_wake(), jobs([]));
    test.set_probe_owner(ProbeOwner::Unclaimed);
    assert_eq!(test.jobs_to_wake(), jobs(["a"]), "the claim is free");
    test.set_probe_owner(ProbeOwner::Ours);
    assert!(is_probe(&test.ask("a", 9)));
}

#[test]
fn a_breaker_that_fails_starts_fails_them_while_another_process_probes() {
    let settings = BreakerSettings { when_open: WhenOpen::Fail, ..SETTINGS };
    let mut test = AdmissionFixture::open(settings, &[]);
    let refused = BreakerAnswer::Refused { breaker: name() };
    assert_eq!(test.ask("a", 9), refused);
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Refuses);
    test.at(at(60));
    assert_eq!(test.ask("a", 9), refused, "no process has the claim yet");
    test.set_probe_owner(ProbeOwner::Others);
    assert_eq!(test.ask("a", 9), refused);
    assert_eq!(test.admission.allowance(BREAKER, "a"), StartAllowance::Refuses);
    test.set_probe_owner(ProbeOwner::Ours);
    assert!(is_probe(&test.ask("a", 1)), "the first job that asks");
}

#[test]
fn the_item_with_the_most_attempts_left_of_all_jobs_probes() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 3), ("b", 7), ("c", 5)]);
    test.at(at(60));
    test.set_probe_owner(ProbeOwner::Ours);
    for (left, first) in [(3, false), (5, false), (7, true), (8, true)] {
        assert_eq!(test.admission.ranks_first(BREAKER, left), first, "{left}");
        assert_eq!(is_probe(&test.ask("x", left)), first, "{left}");
    }
    let answer = test.admission.admit(&name(), &id("b"), None);
    assert!(is_held(&answer), "another item of the job would rather probe");
    // The job with the best item has no free slot any more.
    test.offer("b", 1, None);
    assert!(is_probe(&test.ask("c", 5)) && is_held(&test.ask("a", 3)));
    test.offer("b", 1, Some(4));
    assert!(is_probe(&test.ask("c", 5)));
    test.offer_nothing("c");
    assert!(is_probe(&test.ask("b", 4)));
    test.admission.remove_job(&id("b"));
    assert!(is_probe(&test.ask("a", 3)));
}

#[test]
fn the_job_that_probes_first_wakes_when_it_changes() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 3), ("b", 7)]);
    test.offer("a", 2, Some(3));
    assert_eq!(test.jobs_to_wake(), jobs([]), "nothing has changed");
    test.at(at(60));
    test.offer("c", 1, Some(9));
    assert!(test.admission.has_changes());
    assert_eq!(test.jobs_to_wake(), jobs(["c"]));
    assert!(!test.admission.has_changes());
    test.offer_nothing("c");
    assert_eq!(test.jobs_to_wake(), jobs(["b"]));
    test.admission.remove_job(&id("b"));
    assert_eq!(test.jobs_to_wake(), jobs(["a"]));
}

#[test]
fn all_jobs_that_wait_for_a_breaker_wake_when_it_closes() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 3), ("b", 7)]);
    test.offer("c", 1, None);
    let _ = test.jobs_to_wake();
    test.at(at(60));
    test.set_probe_owner(ProbeOwner::Ours);
    let ticket = test.probe("b");
    assert_eq!(test.jobs_to_wake(), jobs([]), "one at a time");
    test.end("b", ticket, TargetSignal::Up);
    assert_eq!(test.state().word(), "closed");
    assert_eq!(test.jobs_to_wake(), jobs(["a", "b", "c"]));
}

#[test]
fn the_next_probe_waits_until_the_result_of_the_last_one_is_committed() {
    let settings = BreakerSettings { half_open_max_calls: 3, ..SETTINGS };
    let mut test = AdmissionFixture::open(settings, &[("a", 9), ("b", 9)]);
    test.at(at(60));
    test.set_probe_owner(ProbeOwner::Ours);
    let ticket = test.probe("a");
    test.end("a", ticket, TargetSignal::Up);
    assert!(!test.state().is_probing());
    // If the start of another job was committed before the result, two probes would run.
    assert!(is_held(&test.ask("b", 9)) && is_held(&test.ask("a", 9)));
    assert_eq!(test.admission.allowance(BREAKER, "b"), StartAllowance::Holds);
    assert!(!test.admission.may_probe(BREAKER));
    let _ = test.jobs_to_wake();
    assert!(test.write("a"));
    assert_eq!(test.jobs_to_wake(), jobs(["a"]), "one job has to ask again");
    assert!(is_probe(&test.ask("b", 9)));
    // Results from before the opening change nothing and delay nothing.
    test.fail("a");
    assert!(is_probe(&test.ask("b", 9)));
}

#[test]
fn an_uncommitted_result_delays_no_probe_of_a_breaker_that_fails() {
    let settings = BreakerSettings { half_open_max_calls: 3, when_open: WhenOpen::Fail, ..SETTINGS };
    let mut test = AdmissionFixture::open(settings, &[]);
    test.at(at(60));
    test.set_probe_owner(ProbeOwner::Ours);
    let ticket = test.probe("a");
    assert_eq!(test.ask("a", 9), BreakerAnswer::Refused { breaker: name() });
    test.end("a", ticket, TargetSignal::Up);
    assert!(is_probe(&test.ask("a", 9)), "the next item does not fail for that");
}

#[test]
fn a_claim_is_needed_while_the_process_probes_or_can_probe() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 9)]);
    test.at(at(60));
    test.set_probe_owner(ProbeOwner::Ours);
    assert!(test.admission.needs_claim(BREAKER));
    let ticket = test.probe("a");
    test.offer_nothing("a");
    assert!(test.admission.needs_claim(BREAKER), "its probe is under way");
    test.end("a", ticket, TargetSignal::Down);
    assert_eq!(test.state().word(), "open");
    assert!(!test.admission.needs_claim(BREAKER), "it has nothing left");
    test.offer("a", 1, Some(8));
    assert!(test.admission.needs_claim(BREAKER));
    test.append_and_read(None, vec![BreakerFact::Reset { at: at(60) }]);
    assert!(!test.admission.needs_claim(BREAKER), "it is closed");
    assert_eq!(*test.admission.awaited(), [name()].into());
}

#[test]
fn a_breaker_opened_by_a_clock_ahead_is_open_for_at_most_its_timeout() {
    let mut test = AdmissionFixture::of(SETTINGS);
    let (now, settings) = (T0, SETTINGS);
    test.append_and_read(
        None,
        vec![BreakerFact::Configured { at: now, settings }, BreakerFact::Tripped { at: at(100_000) }],
    );
    assert_eq!(test.state().until(), Some(at(60)));
    let mut other = AdmissionFixture::of(SETTINGS);
    other.at(at(30));
    other.admission.load(&name(), test.journals.fold(BREAKER));
    assert_eq!(other.state().until(), Some(at(90)));
    // It is probed then, and a fold record holds the state that the records fold to.
    test.offer("a", 1, Some(3));
    test.at(at(60));
    test.set_probe_owner(ProbeOwner::Ours);
    assert!(is_probe(&test.ask("a", 3)));
    assert_eq!(test.admission.fold(BREAKER), Some(test.journals.fold(BREAKER).folded()));
}

#[test]
fn the_job_that_probes_first_wakes_once_after_the_recovery_timeout() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 3), ("b", 7)]);
    assert_eq!(test.admission.next_probe(), Some(at(60)));
    test.at(at(59));
    test.admission.wake_due_probers();
    assert_eq!(test.jobs_to_wake(), jobs([]));
    test.at(at(60));
    assert_eq!(test.admission.next_probe(), None);
    test.admission.wake_due_probers();
    assert_eq!(test.jobs_to_wake(), jobs(["b"]));
    test.admission.wake_due_probers();
    assert_eq!(test.jobs_to_wake(), jobs([]), "it was woken before");
    test.set_probe_owner(ProbeOwner::Ours);
    let ticket = test.probe("b");
    test.end("b", ticket, TargetSignal::Down);
    assert!(test.write("b"));
    let _ = test.jobs_to_wake();
    assert_eq!(test.admission.next_probe(), Some(at(120)));
    test.at(at(120));
    test.admission.wake_due_probers();
    assert_eq!(test.jobs_to_wake(), jobs(["b"]), "once for each opening");
}

#[test]
fn no_job_wakes_for_a_breaker_that_nothing_waits_for() {
    let mut test = AdmissionFixture::open(SETTINGS, &[("a", 3)]);
    test.offer("a", 1, None);
    let _ = test.jobs_to_wake();
    assert_eq!(test.admission.next_probe(), None);
    test.at(at(60));
    test.admission.wake_due_probers();
    assert!(!test.admission.has_changes());
    test.offer("a", 1, Some(3));
    assert_eq!(test.jobs_to_wake(), jobs(["a"]), "it has a free slot again");
}
