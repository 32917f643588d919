//! Random walks: whatever a workflow is, whatever its commands do and whenever whoever runs it dies,
//! every law holds after every record, and every job ends.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::decide::decide;
use undaunted_engine::effect::{next_admission, next_wake, offers, ready, wanted};
use undaunted_engine::event::{Event, ItemEvent, JobEvent, Record};
use undaunted_engine::id::{AttemptNumber, CommandId, ItemId, StartId, StepId};
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::job::{Activity, Job, JobStage, StepStage};
use undaunted_engine::view::report;
use undaunted_policy::{FailureCause, Reason};

use crate::scene::{SECOND, Scene, digest};
use crate::workflows::workflow;

/// Something that happens.
#[derive(Clone, Debug)]
pub(crate) enum Happening {
    /// What is ready starts.
    Start,
    /// Somebody asks for a start that may be out of turn, or refuses it.
    StartAny {
        item: u32,
        refused: bool,
    },
    /// One of the attempts that run ends.
    End {
        which: usize,
        how: How,
    },
    /// A report comes that came before, or about nothing.
    Report {
        start: StartId,
        failed: bool,
    },
    /// The items of a map are read, or cannot be.
    Read {
        items: u32,
        failed: bool,
    },
    /// Time passes: to the next wake-up, or so many milliseconds.
    Wake,
    Pass {
        millis: u64,
    },
    /// Whoever runs it dies; after so many milliseconds somebody goes on, the clock set back or not.
    Crash {
        millis: u64,
        back: bool,
    },
    /// It is suspended if it can be, and gone on with after so many milliseconds.
    Suspend {
        millis: u64,
    },
    /// It is paused, or goes on.
    Pause,
    /// Somebody else opens or closes its breakers.
    Breakers {
        trip: bool,
    },
    Cancel,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Success,
    /// Output that is no number.
    Words,
    Failure(FailureCause),
}

fn how() -> impl Strategy<Value = How> {
    prop_oneof![
        5 => Just(How::Success),
        1 => Just(How::Words),
        6 => Just(How::Failure(FailureCause::Exit(1))),
        1 => Just(How::Failure(FailureCause::Exit(3))),
        1 => Just(How::Failure(FailureCause::Exit(127))),
        1 => Just(How::Failure(FailureCause::Timeout)),
        1 => Just(How::Failure(FailureCause::Interrupted)),
    ]
}

pub(crate) fn happening() -> impl Strategy<Value = Happening> {
    let start = (0_u32..6, any::<bool>());
    prop_oneof![
        20 => Just(Happening::Start),
        2 => start.prop_map(|(item, refused)| Happening::StartAny { item, refused }),
        30 => (any::<usize>(), how()).prop_map(|(which, how)| Happening::End { which, how }),
        2 => (0_u64..9, any::<bool>()).prop_map(|(start, failed)| Happening::Report { start: StartId(start), failed }),
        4 => (0_u32..6, prop::bool::weighted(0.1)).prop_map(|(items, failed)| Happening::Read { items, failed }),
        12 => Just(Happening::Wake),
        4 => (0_u64..3000).prop_map(|millis| Happening::Pass { millis }),
        5 => (0_u64..9000, prop::bool::weighted(0.2)).prop_map(|(millis, back)| Happening::Crash { millis, back }),
        3 => (0_u64..90_000).prop_map(|millis| Happening::Suspend { millis }),
        2 => Just(Happening::Pause),
        2 => any::<bool>().prop_map(|trip| Happening::Breakers { trip }),
        1 => Just(Happening::Cancel),
    ]
}

/// A scene that also compares what the journal decides with what the live job decides.
pub(crate) struct Walk {
    pub(crate) scene: Scene,
}

impl Walk {
    pub(crate) fn tell(&mut self, input: &Input) {
        let scene = &mut self.scene;
        let found = scene.refolded();
        same_wishes(&found, &scene.job, &scene.asked());
        let live = decide(&scene.job, input, scene.now);
        assert_eq!(decide(&found, input, scene.now), live, "{input:?}");
        let _ = scene.tell(input);
    }

    pub(crate) fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Start => self.start(),
            Happening::StartAny { item, refused } => {
                let item = self.scene.map_step().item(item);
                let gate = self.scene.gate(item);
                self.tell(&Input::Start {
                    item,
                    refused: refused.then(|| "`item.x` has no value".to_owned()),
                    gate,
                });
            }
            Happening::End { which, how } => self.end(which, how),
            Happening::Report { start, failed } => {
                // One about an attempt that runs would be its end.
                if !self.scene.job.starts.running.contains_key(&start) {
                    self.tell(&Input::Ended(Box::new(AttemptEnd {
                        start,
                        failure: failed.then_some(FailureCause::Exit(1)),
                        ..AttemptEnd::default()
                    })));
                }
            }
            Happening::Read { items, failed } => self.read(items, failed),
            Happening::Wake => {
                if let Some(due) = self.scene.next_wake() {
                    self.scene.now = self.scene.now.max(due);
                }
                self.tell(&Input::Woke);
            }
            Happening::Pass { millis } => {
                self.scene.pass(Duration::from_millis(millis));
            }
            Happening::Crash { millis, back } => self.crash(millis, back),
            Happening::Suspend { millis } => {
                self.tell(&Input::Suspend);
                if self.scene.job.stage == JobStage::Suspended {
                    self.crash(millis, false);
                }
            }
            Happening::Pause => {
                let paused = self.scene.job.times.paused.is_some();
                self.tell(if paused { &Input::Unpause } else { &Input::Pause });
            }
            Happening::Breakers { trip } => self.turn_breakers(trip),
            Happening::Cancel => self.tell(&Input::Cancel),
        }
    }

    fn turn_breakers(&mut self, trip: bool) {
        let scene = &mut self.scene;
        for name in scene.job.breakers() {
            if trip {
                scene.trip(&name);
            } else {
                scene.reset(&name);
            }
        }
    }

    fn start(&mut self) {
        for item in self.scene.ready() {
            let gate = self.scene.gate(item);
            self.tell(&Input::Start { item, refused: None, gate });
        }
    }

    fn end(&mut self, which: usize, how: How) {
        let running: Vec<StartId> = self.scene.job.starts.running.keys().copied().collect();
        let Some(start) = running.get(which % running.len().max(1)) else {
            return;
        };
        let (failure, output) = match how {
            How::Success => (None, "12\n"),
            How::Words => (None, "twelve\n"),
            How::Failure(cause) => (Some(cause), ""),
        };
        self.tell(&Input::Ended(Box::new(AttemptEnd {
            start: *start,
            failure,
            output: Some(output.to_owned()),
            error: failure.map_or_else(String::new, |cause| format!("it failed: {cause:?}")),
            ..AttemptEnd::default()
        })));
    }

    fn read(&mut self, items: u32, failed: bool) {
        let mut steps = StepId::all().zip(&self.scene.job.steps);
        let reading = steps.find(|(_, state)| matches!(state.stage, StepStage::Reading(_)));
        let Some((step, _)) = reading else { return };
        if failed {
            self.tell(&Input::InputFailed {
                step,
                reason: Reason::Permanent,
                error: "a.json is not there".to_owned(),
                stderr: None,
            });
        } else {
            self.scene.items(items);
        }
    }

    fn crash(&mut self, millis: u64, back: bool) {
        let scene = &mut self.scene;
        if back {
            let nanos = scene.now.as_nanos().saturating_sub(millis * 1_000_000);
            scene.now = undaunted_policy::Timestamp::from_nanos(nanos);
        } else {
            scene.pass(Duration::from_millis(millis));
        }
        let (planned, waits) = (scene.job.stage == JobStage::Suspended, waits(&scene.job));
        scene.restart();
        self.tell(&Input::Resume { seen: None });
        if !planned {
            assert_ne!(self.scene.job.stage, JobStage::Suspended);
        }
        let now = self.scene.now;
        for (item, (due, delay)) in self::waits(&self.scene.job) {
            let Some((before, _)) = waits.get(&item) else {
                continue;
            };
            assert!(due <= *before, "a wait became longer");
            assert!(due <= now.after(delay), "a wait is longer than its delay");
            let kept = due == *before || due == now.after(delay);
            assert!(kept, "a wait was shortened without need");
        }
    }

    /// From here on everything goes well.
    pub(crate) fn finish(&mut self) {
        if self.scene.job.times.paused.is_some() {
            self.tell(&Input::Unpause);
        }
        for _ in 0..5000 {
            if self.scene.job.stage.has_ended() {
                return;
            }
            self.read(3, false);
            self.start();
            if !self.scene.job.starts.running.is_empty() {
                self.end(0, How::Success);
            } else if let Some(due) = self.scene.next_wake() {
                self.scene.now = self.scene.now.max(due);
                self.tell(&Input::Woke);
            } else if self.scene.ready().is_empty() && !self.scene.job.stage.has_ended() {
                panic!("it is stuck: {}", digest(&self.scene.job));
            }
        }
        panic!("it does not end: {}", digest(&self.scene.job));
    }
}

type Waits = BTreeMap<ItemId, (undaunted_policy::Timestamp, Duration)>;

/// Every retry that waits: when it is due, and its delay.
fn waits(job: &Job) -> Waits {
    let steps = StepId::all().zip(&job.steps);
    let items = steps.flat_map(|(step, state)| {
        let waiting = state.waiting.iter();
        waiting.map(move |(_, index)| step.item(index))
    });
    let waits = items.filter_map(|item| {
        let active = job.active(item)?;
        match active.activity {
            Activity::Waiting(due) if due.as_nanos() > 0 => Some((item, (due, active.progress().previous?))),
            _ => None,
        }
    });
    waits.collect()
}

fn same_wishes(found: &Job, live: &Job, admission: &AdmissionControl) {
    let now = admission.now();
    assert_eq!(digest(found), digest(live));
    assert_eq!(wanted(found), wanted(live));
    assert_eq!(ready(found, admission, now), ready(live, admission, now));
    assert_eq!(offers(found, admission), offers(live, admission));
    assert_eq!(next_wake(found, now), next_wake(live, now));
    assert_eq!(next_admission(found, admission), next_admission(live, admission));
}

/// What the journal of a job that has ended must add up to, counted without the engine's help.
fn adds_up(scene: &Scene) {
    let job = &scene.job;
    let records = scene.journal.iter();
    let records: Vec<Record> = records.map(|it| Record::decode(it).unwrap()).collect();
    let mut attempts: BTreeMap<(ItemId, CommandId), u64> = BTreeMap::new();
    let mut numbers: BTreeMap<(ItemId, CommandId), Vec<AttemptNumber>> = BTreeMap::new();
    let (mut main, mut delay, mut charged) = (0_u64, Duration::ZERO, 0_u32);
    for record in &records {
        match &record.event {
            Event::Item(ItemEvent::AttemptStarted(started)) => {
                let of = started.of;
                let place = (of.item(), of.command);
                *attempts.entry(place).or_default() += 1;
                numbers.entry(place).or_default().push(of.attempt);
                main += u64::from(job.plan().is_main(of.command));
            }
            Event::Item(ItemEvent::RetryScheduled(retrying)) => {
                charged += 1;
                if job.plan().is_main(retrying.of.command) {
                    delay += retrying.delay;
                }
            }
            Event::Item(ItemEvent::CommandRepeated { .. }) => charged += 1,
            Event::Item(ItemEvent::Held(held)) if held.sum.is_some() => charged += 1,
            _ => {}
        }
    }
    for ((item, number), made) in attempts {
        let command = job.plan().command(number).unwrap();
        let numbers = numbers.get(&(item, number)).unwrap();
        if job.plan().is_main(number) {
            let expected = (1..=u32::try_from(made).unwrap()).map(AttemptNumber);
            let in_order = numbers.iter().copied().eq(expected);
            assert!(in_order, "{numbers:?} of {item:?} {number}");
        }
        let rounds = command.on_failure.as_ref().map_or(0, |it| it.max_attempts);
        if let Some(most) = command.retry.policy.bound().executions() {
            // A handler runs again with every round, and so do its commands.
            let rounds_of_all = if job.plan().is_main(number) { 1 } else { 3 };
            let most = (most + u64::from(rounds)) * rounds_of_all;
            assert!(made <= most, "{made} attempts of {item:?} {number}");
        }
    }
    let report = report(job);
    assert_eq!((report.attempts, report.delay_ms.0), (main, delay));
    if let Some(pool) = job.pool {
        assert_eq!(pool.consumed, charged);
        assert!(charged <= pool.limits.total);
    }
    let counts = report.items;
    let missing = u64::try_from(report.missing.len()).unwrap();
    let settled = counts.succeeded + counts.dead + counts.skipped;
    assert_eq!(settled + missing, counts.total);
    let ends = records.iter().filter(|record| {
        matches!(
            record.event,
            Event::Job(
                JobEvent::Completed(_) | JobEvent::Partial(_) | JobEvent::Failed(_) | JobEvent::Cancelled(_)
            )
        )
    });
    assert_eq!(ends.count(), 1);
}

proptest! {
    #[test]
    fn every_job_keeps_every_law_and_ends_whatever_happens_to_it(
        text in workflow(),
        seed in any::<u64>(),
        happenings in vec(happening(), 0..60),
    ) {
        let mut walk = Walk { scene: Scene::seeded(&text, seed) };
        for happening in &happenings {
            walk.happen(happening);
        }
        walk.finish();
        adds_up(&walk.scene);
    }

    #[test]
    fn a_job_whose_commands_all_fail_ends_too(
        text in workflow().prop_filter("ends", |text| !text.contains("unlimited")),
        seed in any::<u64>(),
    ) {
        let mut walk = Walk { scene: Scene::seeded(&text, seed) };
        for _ in 0..2000 {
            if walk.scene.job.stage.has_ended() {
                break;
            }
            walk.read(3, false);
            walk.start();
            walk.end(0, How::Failure(FailureCause::Exit(1)));
            if walk.scene.job.starts.running.is_empty() && walk.scene.ready().is_empty() {
                walk.scene.pass(SECOND * 30);
                walk.tell(&Input::Woke);
            }
        }
        prop_assert!(walk.scene.job.stage.has_ended());
        adds_up(&walk.scene);
    }
}
