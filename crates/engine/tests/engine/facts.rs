//! One event of each kind, with every field that may be missing there.

use std::time::Duration;

use undaunted_engine::event::{
    AttemptFailed, AttemptId, AttemptStarted, AttemptSucceeded, BreakerEvent, BreakerOpened, BreakerPass,
    CommandStopped, CompletionDefaults, CompletionReached, CompletionWhy, EndCounts, Event, FlowRun,
    ImportedCommand, ItemEvent, JobEnded, JobEvent, JobResumed, JobSubmitted, LateResult, NewItem,
    OutputPassing, ParentItem, PolicyChange, RestoredWork, RetryArithmetic, RetryScheduled, SpooledPart,
    StartHeld, StartReleased, StepEvent, StoredText,
};
use undaunted_engine::id::{AttemptNumber, CommandId, StartId, StepId};
use undaunted_policy::spelling::{BackoffType, WorkDefaults};
use undaunted_policy::{Attempts, FailureCause, FailureClass, Reason};

use crate::scene::{at, secs};

/// The event of each golden file, by its name.
pub(crate) fn facts() -> Vec<(&'static str, Event)> {
    let mut facts = of_the_job();
    facts.extend(of_steps());
    facts.extend(of_the_job_later());
    facts.extend(of_items());
    facts.extend(ends());
    facts.extend(imports());
    facts.extend(shared_limits());
    facts.extend(of_flows());
    facts
}

fn resumed() -> JobResumed {
    JobResumed {
        run: 2,
        away: secs(90),
        planned: true,
        restored: RestoredWork {
            running: 1,
            waiting: 2,
            settled: 3,
            pending: 4,
            attempts: 500,
            ..RestoredWork::default()
        },
    }
}

fn of_the_job() -> Vec<(&'static str, Event)> {
    vec![
        (
            "job_submitted",
            Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                job: "7f3k".to_owned(),
                text: "- shell: echo é\n".into(),
                file: "/w/w.yaml".to_owned(),
                working_dir: "/w".to_owned(),
                env: vec![("HOME".to_owned(), "/h/me".to_owned())],
                seed: u64::MAX,
                parallel: vec![(StepId(1), 10)],
                pool: Some((20, 3)),
                ceilings: Some((20, 50, 3, 5)),
                release: Some("0.1.0".to_owned()),
                ..JobSubmitted::default()
            }))),
        ),
        (
            "job_submitted_passing",
            Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                job: "7f3k".to_owned(),
                stdin: Some("/w/stdin".to_owned()),
                passing: Some(OutputPassing::InOrder),
                ..JobSubmitted::default()
            }))),
        ),
        ("job_redriven", Event::Job(JobEvent::Redriven { reduce: true })),
        ("item_redriven", Event::Item(ItemEvent::Redriven { step: StepId(1), index: 2 })),
        ("item_dropped", Event::Item(ItemEvent::Dropped { step: StepId(1), index: 2 })),
        ("job_paused", Event::Job(JobEvent::Paused)),
        ("job_unpaused", Event::Job(JobEvent::Unpaused { away: secs(30) })),
        ("job_resumed", Event::Job(JobEvent::Resumed(resumed()))),
    ]
}

/// Of steps, and how a job with them comes to an end or is changed.
fn of_steps() -> Vec<(&'static str, Event)> {
    let item = |name: &str| NewItem { identity: name.to_owned(), input: format!("{{\"id\":\"{name}\"}}") };
    vec![
        ("step_started", Event::Step(StepEvent::Started { step: StepId(1), start: Some(StartId(7)) })),
        (
            "items_read",
            Event::Step(StepEvent::ItemsRead {
                step: StepId(1),
                items: vec![item("a"), item("b")],
                last: true,
            }),
        ),
        (
            "input_failed",
            Event::Step(StepEvent::InputFailed {
                step: StepId(1),
                reason: Reason::Permanent,
                error: StoredText::Itself("not there".to_owned()),
                stderr: Some(Box::new(KEPT)),
            }),
        ),
        ("text_kept", Event::Job(JobEvent::TextKept { text: "connection refused".to_owned() })),
        ("job_stopping", Event::Job(JobEvent::Stopping { reason: Reason::Tolerance })),
        ("step_completed", Event::Step(StepEvent::Completed { step: StepId(1) })),
        ("step_failed", Event::Step(StepEvent::Failed { step: StepId(1) })),
        ("job_suspended", Event::Job(JobEvent::Suspended)),
        (
            "policy_changed",
            Event::Job(JobEvent::PolicyChanged {
                text: "- shell: b\n".into(),
                changes: vec![PolicyChange {
                    of: "shell-1".to_owned(),
                    setting: "attempts".to_owned(),
                    old: "3".to_owned(),
                    new: "unlimited".to_owned(),
                }],
            }),
        ),
    ]
}

/// Fields that came later.
fn of_the_job_later() -> Vec<(&'static str, Event)> {
    vec![
        (
            "job_submitted_completion",
            Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                job: "7f3k".to_owned(),
                completion: Some(CompletionDefaults { min: 2, deadline: secs(300) }),
                late_results_count: Some(true),
                ..JobSubmitted::default()
            }))),
        ),
        // What a release wrote whose requests all had a breaker, and what is written since.
        ("job_submitted_http", Event::Job(JobEvent::Submitted(Box::new(requesting())))),
        (
            "job_submitted_opt_in",
            Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                origin_breakers: Some(false),
                ..requesting()
            }))),
        ),
        (
            "job_resumed_held",
            Event::Job(JobEvent::Resumed(JobResumed {
                restored: RestoredWork { held: Some(6), ..resumed().restored },
                ..resumed()
            })),
        ),
    ]
}

/// A job that sends a request and says nothing of a breaker.
fn requesting() -> JobSubmitted {
    let lines = [
        "- http: {url: 'http://pay.test/charge'}",
        "  retry_config: {attempts: 7, backoff: fixed, initial_delay: 1s}",
    ];
    JobSubmitted {
        job: "7f3k".to_owned(),
        text: lines.map(|line| format!("{line}\n")).concat().into(),
        file: "/w/w.yaml".to_owned(),
        working_dir: "/w".to_owned(),
        seed: 7,
        release: Some("0.1.0".to_owned()),
        late_results_count: Some(false),
        token_key: Some(1),
        ..JobSubmitted::default()
    }
}

fn of_items() -> Vec<(&'static str, Event)> {
    vec![
        (
            "attempt_started",
            Event::Item(ItemEvent::AttemptStarted(AttemptStarted {
                of: OF,
                start: StartId(4_294_967_296),
                pass: None,
            })),
        ),
        (
            "attempt_succeeded",
            Event::Item(ItemEvent::AttemptSucceeded(Box::new(AttemptSucceeded {
                of: OF,
                took: Duration::from_millis(1500),
                next: Some(CommandId(4)),
                output: Some("{\"a\": 1}\n".to_owned()),
                stdout: Some(KEPT),
                stderr: Some(KEPT),
                left: Some(2),
            }))),
        ),
        (
            "attempt_failed",
            Event::Item(ItemEvent::AttemptFailed(Box::new(AttemptFailed {
                of: OF,
                took: Duration::from_millis(1500),
                cause: FailureCause::Exit(-1),
                class: FailureClass::Transient,
                error: Some(StoredText::Kept(3)),
                rule: Some(1),
                output: Some(String::new()),
                stdout: Some(KEPT),
                stderr: Some(KEPT),
            }))),
        ),
        (
            "retry_scheduled",
            Event::Item(ItemEvent::RetryScheduled(Box::new(RetryScheduled {
                of: OF,
                sum: sum(),
                due: at(31),
                delay: secs(31),
            }))),
        ),
        (
            "command_stopped",
            Event::Item(ItemEvent::CommandStopped(Box::new(CommandStopped {
                of: OF,
                reason: Reason::RetryBudget,
                error: StoredText::Kept(4),
                sum: Some(sum()),
                handler: Some(CommandId(5)),
                rule: Some(0),
            }))),
        ),
        ("command_repeated", Event::Item(ItemEvent::CommandRepeated { of: OF })),
        ("command_recovered", Event::Item(ItemEvent::CommandRecovered { of: OF, next: Some(CommandId(6)) })),
        ("item_succeeded", Event::Item(ItemEvent::Succeeded { step: StepId(1), index: 299 })),
        (
            "item_dead_lettered",
            Event::Item(ItemEvent::DeadLettered {
                of: OF,
                reason: Reason::Attempts,
                error: StoredText::Kept(4),
            }),
        ),
        (
            "item_skipped",
            Event::Item(ItemEvent::Skipped { step: StepId(1), index: 299, reason: Reason::Cancelled }),
        ),
    ]
}

fn ends() -> Vec<(&'static str, Event)> {
    let ended = JobEnded {
        counts: EndCounts {
            total: 1_000_000,
            succeeded: 999_990,
            dead: 7,
            skipped: 3,
            attempts: 1_000_020,
            retries: 20,
            delay: secs(91),
        },
        reason: Some(Reason::Deadline),
        error: Some(StoredText::Kept(4)),
        submitted: Some(at(0)),
    };
    vec![
        ("job_completed", Event::Job(JobEvent::Completed(Box::new(ended.clone())))),
        ("job_partial", Event::Job(JobEvent::Partial(Box::new(ended.clone())))),
        ("job_failed", Event::Job(JobEvent::Failed(Box::new(ended.clone())))),
        ("job_cancelled", Event::Job(JobEvent::Cancelled(Box::new(ended)))),
    ]
}

fn shared_limits() -> Vec<(&'static str, Event)> {
    let breaker = || StoredText::Itself("payments".to_owned());
    let held = |sum| {
        Event::Item(ItemEvent::Held(Box::new(StartHeld {
            of: OF,
            breaker: breaker(),
            until: Some(at(60)),
            expires: Some(at(600)),
            left: Some(3),
            sum,
        })))
    };
    let opened = |by_rule, failures| {
        Event::Breaker(BreakerEvent::Opened(BreakerOpened {
            breaker: breaker(),
            until: at(65),
            failures,
            by_rule,
        }))
    };
    vec![
        (
            "attempt_started_through_a_breaker",
            Event::Item(ItemEvent::AttemptStarted(AttemptStarted {
                of: OF,
                start: StartId(7),
                pass: Some(BreakerPass { breaker: StoredText::Kept(2), generation: 4, probe: true }),
            })),
        ),
        (
            "pool_topped_up",
            Event::Job(JobEvent::PoolToppedUp { asked: 10, added: 5, total: 50, per_item: Some(5) }),
        ),
        ("held", held(None)),
        ("held_by_rule", held(Some(sum()))),
        (
            "released",
            Event::Item(ItemEvent::Released(StartReleased { of: OF, breaker: breaker(), held: secs(61) })),
        ),
        ("breaker_opened", opened(false, 5)),
        ("breaker_opened_by_rule", opened(true, 0)),
        ("breaker_half_opened", Event::Breaker(BreakerEvent::HalfOpened { breaker: breaker() })),
        ("breaker_closed", Event::Breaker(BreakerEvent::Closed { breaker: breaker() })),
        (
            "breaker_configured",
            Event::Breaker(BreakerEvent::Configured {
                breaker: breaker(),
                changes: vec![PolicyChange {
                    of: "payments".to_owned(),
                    setting: "failure_threshold".to_owned(),
                    old: "5".to_owned(),
                    new: "3".to_owned(),
                }],
            }),
        ),
        (
            "completion_reached",
            Event::Step(StepEvent::CompletionReached(Box::new(CompletionReached {
                step: StepId(1),
                why: CompletionWhy::DeadlineExpired,
                success: false,
                completed: 2,
                failed: 1,
                target: 5,
                min: 3,
                deadline: at(300),
            }))),
        ),
        (
            "late_result",
            Event::Item(ItemEvent::LateResult(LateResult {
                step: StepId(1),
                index: 4,
                reason: Some(Reason::Attempts),
                counted: true,
            })),
        ),
    ]
}

fn of_flows() -> Vec<(&'static str, Event)> {
    vec![
        (
            "job_submitted_work",
            Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                job: "wf-1".to_owned(),
                work: Some(WorkDefaults {
                    max_retries: Attempts::AtMost(10),
                    backoff: secs(1),
                    max_backoff: secs(60),
                    backoff_type: BackoffType::Exponential,
                }),
                ..JobSubmitted::default()
            }))),
        ),
        (
            "job_submitted_flow",
            Event::Job(JobEvent::Submitted(Box::new(JobSubmitted {
                job: "wf-1:ship:51ab".to_owned(),
                flow: Some(FlowRun {
                    goals: vec!["process".to_owned(), "notify".to_owned()],
                    init: "{\"region\":\"US\"}".to_owned(),
                    labels: vec![("team".to_owned(), "blue".to_owned())],
                    parent: Some(ParentItem {
                        flow: "wf-1".to_owned(),
                        step: "ship".to_owned(),
                        token: "51ab".to_owned(),
                        depth: 1,
                    }),
                }),
                token_key: Some(u64::MAX),
                ..JobSubmitted::default()
            }))),
        ),
        ("step_skipped", Event::Step(StepEvent::Skipped { step: StepId(1) })),
        (
            "step_unreachable",
            Event::Step(StepEvent::Unreachable { step: StepId(1), missing: "order".to_owned() }),
        ),
        (
            "attribute_set",
            Event::Step(StepEvent::AttributeSet {
                step: StepId(1),
                name: "order".to_owned(),
                value: "{\"id\":7}".to_owned(),
            }),
        ),
        ("attempt_accepted", Event::Item(ItemEvent::AttemptAccepted { of: OF, until: at(86_400) })),
    ]
}

fn imports() -> Vec<(&'static str, Event)> {
    let command = ImportedCommand {
        item: "a".to_owned(),
        command: CommandId(3),
        attempts: 2,
        retries: 2,
        spent: secs(3),
        previous: Some(secs(2)),
        due: Some(at(31)),
        expires: Some(at(100)),
        error: Some(StoredText::Itself("refused".to_owned())),
    };
    vec![("state_imported", Event::Job(JobEvent::StateImported { commands: vec![command] }))]
}

const OF: AttemptId =
    AttemptId { step: StepId(1), index: 299, command: CommandId(3), attempt: AttemptNumber(2) };

const KEPT: SpooledPart =
    SpooledPart { length: 5_000_000, head: 1_048_576, tail: 1_048_576, segment: 2, offset: 77 };

fn sum() -> RetryArithmetic {
    RetryArithmetic {
        retry: 2,
        allowed: Some(9),
        computed: Some(secs(40)),
        capped: Some(secs(30)),
        drawn: Some(secs(31)),
        spent_before: secs(20),
        spent_after: secs(51),
        budget: Some(secs(120)),
        expires: Some(at(100)),
        retry_after: Some(secs(3)),
        deadline: Some(at(3600)),
        pool: Some((4, 20)),
        share: Some((1, 3)),
    }
}
