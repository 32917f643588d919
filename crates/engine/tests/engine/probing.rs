//! Who finds out whether the target of a breaker is back: the process with the claim, and of its jobs
//! the one whose item has the most attempts left.

use undaunted_engine::breaker::{BreakerAnswer, BreakerFact, ProbeOwner, StartAllowance, TargetSignal};
use undaunted_policy::{BreakerSettings, WhenOpen};

use crate::desk::{Desk, NAME, SETTINGS, id, is_held, is_probe, jobs, name};
use crate::scene::{T0, at};

#[test]
fn a_breaker_whose_claim_the_process_holds_stays_known_until_it_is_let_go() {
    let mut desk = Desk::open(SETTINGS, &[("a", 3)]);
    desk.set_probe_owner(ProbeOwner::Ours);
    desk.admission.remove_job(&id("a"));
    assert!(!desk.admission.needs_claim(NAME));
    desk.set_probe_owner(ProbeOwner::Unclaimed);
    assert_eq!(desk.admission.get(NAME), None);
}

#[test]
fn a_breaker_that_no_job_has_asked_is_known_whoever_probes_it() {
    let mut desk = Desk::open(SETTINGS, &[]);
    desk.at(at(60));
    desk.set_probe_owner(ProbeOwner::Others);
    assert!(is_held(&desk.ask("a", 9)));
}

#[test]
fn only_the_process_that_holds_the_claim_probes() {
    let mut desk = Desk::open(SETTINGS, &[("a", 9)]);
    desk.at(at(59));
    assert!(!desk.admission.may_probe(NAME));
    desk.at(at(60));
    assert!(desk.admission.may_probe(NAME));
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::AdmitsProbe);
    assert!(is_held(&desk.ask("a", 9)), "nobody has the claim yet");
    desk.set_probe_owner(ProbeOwner::Others);
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Holds);
    assert!(is_held(&desk.ask("a", 9)));
    assert_eq!(desk.awakened(), jobs([]));
    desk.set_probe_owner(ProbeOwner::Unclaimed);
    assert_eq!(desk.awakened(), jobs(["a"]), "the claim is free");
    desk.set_probe_owner(ProbeOwner::Ours);
    assert!(is_probe(&desk.ask("a", 9)));
}

#[test]
fn where_starts_fail_they_fail_while_another_process_probes() {
    let settings = BreakerSettings { when_open: WhenOpen::Fail, ..SETTINGS };
    let mut desk = Desk::open(settings, &[]);
    let refused = BreakerAnswer::Refused { breaker: name() };
    assert_eq!(desk.ask("a", 9), refused);
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Refuses);
    desk.at(at(60));
    assert_eq!(desk.ask("a", 9), refused, "nobody has the claim yet");
    desk.set_probe_owner(ProbeOwner::Others);
    assert_eq!(desk.ask("a", 9), refused);
    assert_eq!(desk.admission.allowance(NAME, "a"), StartAllowance::Refuses);
    desk.set_probe_owner(ProbeOwner::Ours);
    assert!(is_probe(&desk.ask("a", 1)), "whoever asks first");
}

#[test]
fn the_item_with_the_most_attempts_left_of_all_jobs_probes() {
    let mut desk = Desk::open(SETTINGS, &[("a", 3), ("b", 7), ("c", 5)]);
    desk.at(at(60));
    desk.set_probe_owner(ProbeOwner::Ours);
    for (left, first) in [(3, false), (5, false), (7, true), (8, true)] {
        assert_eq!(desk.admission.ranks_first(NAME, left), first, "{left}");
        assert_eq!(is_probe(&desk.ask("x", left)), first, "{left}");
    }
    let gate = desk.admission.admit(&name(), &id("b"), None);
    assert!(is_held(&gate), "another item of the job would rather probe");
    // The job with the best item turns to something else.
    desk.offer("b", 1, None);
    assert!(is_probe(&desk.ask("c", 5)) && is_held(&desk.ask("a", 3)));
    desk.offer("b", 1, Some(4));
    assert!(is_probe(&desk.ask("c", 5)));
    desk.offer_nothing("c");
    assert!(is_probe(&desk.ask("b", 4)));
    desk.admission.remove_job(&id("b"));
    assert!(is_probe(&desk.ask("a", 3)));
}

#[test]
fn who_goes_first_is_awakened_when_that_changes() {
    let mut desk = Desk::open(SETTINGS, &[("a", 3), ("b", 7)]);
    desk.offer("a", 2, Some(3));
    assert_eq!(desk.awakened(), jobs([]), "nothing has changed");
    desk.at(at(60));
    desk.offer("c", 1, Some(9));
    assert!(desk.admission.has_changes());
    assert_eq!(desk.awakened(), jobs(["c"]));
    assert!(!desk.admission.has_changes());
    desk.offer_nothing("c");
    assert_eq!(desk.awakened(), jobs(["b"]));
    desk.admission.remove_job(&id("b"));
    assert_eq!(desk.awakened(), jobs(["a"]));
}

#[test]
fn all_that_wait_for_a_breaker_are_awakened_when_it_closes() {
    let mut desk = Desk::open(SETTINGS, &[("a", 3), ("b", 7)]);
    desk.offer("c", 1, None);
    let _ = desk.awakened();
    desk.at(at(60));
    desk.set_probe_owner(ProbeOwner::Ours);
    let ticket = desk.probe("b");
    assert_eq!(desk.awakened(), jobs([]), "one at a time");
    desk.end("b", ticket, TargetSignal::Up);
    assert_eq!(desk.state().word(), "closed");
    assert_eq!(desk.awakened(), jobs(["a", "b", "c"]));
}

#[test]
fn the_next_probe_waits_until_the_result_of_the_last_one_is_on_the_disk() {
    let settings = BreakerSettings { half_open_max_calls: 3, ..SETTINGS };
    let mut desk = Desk::open(settings, &[("a", 9), ("b", 9)]);
    desk.at(at(60));
    desk.set_probe_owner(ProbeOwner::Ours);
    let ticket = desk.probe("a");
    desk.end("a", ticket, TargetSignal::Up);
    assert!(!desk.state().is_probing());
    // If the start of another job was written before the result, two would be under way.
    assert!(is_held(&desk.ask("b", 9)) && is_held(&desk.ask("a", 9)));
    assert_eq!(desk.admission.allowance(NAME, "b"), StartAllowance::Holds);
    assert!(!desk.admission.may_probe(NAME));
    let _ = desk.awakened();
    assert!(desk.write("a"));
    assert_eq!(desk.awakened(), jobs(["a"]), "somebody has to ask again");
    assert!(is_probe(&desk.ask("b", 9)));
    // Results from before the opening change nothing, and are not waited for.
    desk.fail("a");
    assert!(is_probe(&desk.ask("b", 9)));
}

#[test]
fn a_result_that_is_not_written_keeps_no_start_from_a_breaker_that_fails() {
    let settings = BreakerSettings { half_open_max_calls: 3, when_open: WhenOpen::Fail, ..SETTINGS };
    let mut desk = Desk::open(settings, &[]);
    desk.at(at(60));
    desk.set_probe_owner(ProbeOwner::Ours);
    let ticket = desk.probe("a");
    assert_eq!(desk.ask("a", 9), BreakerAnswer::Refused { breaker: name() });
    desk.end("a", ticket, TargetSignal::Up);
    assert!(is_probe(&desk.ask("a", 9)), "the next item does not fail for that");
}

#[test]
fn a_claim_is_of_use_while_the_process_probes_or_has_something_to_probe_with() {
    let mut desk = Desk::open(SETTINGS, &[("a", 9)]);
    desk.at(at(60));
    desk.set_probe_owner(ProbeOwner::Ours);
    assert!(desk.admission.needs_claim(NAME));
    let ticket = desk.probe("a");
    desk.offer_nothing("a");
    assert!(desk.admission.needs_claim(NAME), "its probe is under way");
    desk.end("a", ticket, TargetSignal::Down);
    assert_eq!(desk.state().word(), "open");
    assert!(!desk.admission.needs_claim(NAME), "it has nothing left");
    desk.offer("a", 1, Some(8));
    assert!(desk.admission.needs_claim(NAME));
    desk.others(None, vec![BreakerFact::Reset { at: at(60) }]);
    assert!(!desk.admission.needs_claim(NAME), "it is closed");
    assert_eq!(*desk.admission.awaited(), [name()].into());
}

#[test]
fn a_breaker_that_was_opened_by_a_clock_ahead_is_open_for_no_longer_than_its_timeout() {
    let mut desk = Desk::of(SETTINGS);
    let (now, settings) = (T0, SETTINGS);
    desk.others(
        None,
        vec![BreakerFact::Configured { at: now, settings }, BreakerFact::Tripped { at: at(100_000) }],
    );
    assert_eq!(desk.state().until(), Some(at(60)));
    let mut other = Desk::of(SETTINGS);
    other.at(at(30));
    other.admission.load(&name(), desk.journals.fold(NAME));
    assert_eq!(other.state().until(), Some(at(90)));
    // It is probed then, and what is appended to make records dispensable is what they come to.
    desk.offer("a", 1, Some(3));
    desk.at(at(60));
    desk.set_probe_owner(ProbeOwner::Ours);
    assert!(is_probe(&desk.ask("a", 3)));
    assert_eq!(desk.admission.fold(NAME), Some(desk.journals.fold(NAME).folded()));
}

#[test]
fn who_goes_first_is_awakened_once_when_the_recovery_timeout_has_passed() {
    let mut desk = Desk::open(SETTINGS, &[("a", 3), ("b", 7)]);
    assert_eq!(desk.admission.next_probe(), Some(at(60)));
    desk.at(at(59));
    desk.admission.wake_due_probers();
    assert_eq!(desk.awakened(), jobs([]));
    desk.at(at(60));
    assert_eq!(desk.admission.next_probe(), None);
    desk.admission.wake_due_probers();
    assert_eq!(desk.awakened(), jobs(["b"]));
    desk.admission.wake_due_probers();
    assert_eq!(desk.awakened(), jobs([]), "it has been told");
    desk.set_probe_owner(ProbeOwner::Ours);
    let ticket = desk.probe("b");
    desk.end("b", ticket, TargetSignal::Down);
    assert!(desk.write("b"));
    let _ = desk.awakened();
    assert_eq!(desk.admission.next_probe(), Some(at(120)));
    desk.at(at(120));
    desk.admission.wake_due_probers();
    assert_eq!(desk.awakened(), jobs(["b"]), "once for each opening");
}

#[test]
fn nobody_is_awakened_for_a_breaker_that_nothing_waits_for() {
    let mut desk = Desk::open(SETTINGS, &[("a", 3)]);
    desk.offer("a", 1, None);
    let _ = desk.awakened();
    assert_eq!(desk.admission.next_probe(), None);
    desk.at(at(60));
    desk.admission.wake_due_probers();
    assert!(!desk.admission.has_changes());
    desk.offer("a", 1, Some(3));
    assert_eq!(desk.awakened(), jobs(["a"]), "it has a free slot again");
}
