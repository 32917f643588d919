//! One event of each kind, with every field that may be missing there.

use std::time::Duration;

use undaunted_engine::event::{
    CompletionDefaults, Counts, Ended, Event, Failed, FlowRun, Held, ImportedCommand, Kept, Late,
    NewItem, Opened, Parent, Pass, Passing, PolicyChange, Reached, Released, Restored, Resumed,
    Retrying, Started, Stopped, Subject, Submitted, Succeeded, Sum, Text, Why, WorkDefaultsStored,
};
use undaunted_policy::{Cause, Class, Reason};

use crate::scene::{at, secs};

/// The event of each golden file, by its name.
pub(crate) fn facts() -> Vec<(&'static str, Event)> {
    let mut facts = of_the_job();
    facts.extend(of_the_job_later());
    facts.extend(of_items());
    facts.extend(ends());
    facts.extend(imports());
    facts.extend(shared_limits());
    facts.extend(of_flows());
    facts
}

fn resumed() -> Resumed {
    Resumed {
        run: 2,
        away: secs(90),
        planned: true,
        restored: Restored {
            running: 1,
            waiting: 2,
            settled: 3,
            pending: 4,
            attempts: 500,
            ..Restored::default()
        },
    }
}

fn of_the_job() -> Vec<(&'static str, Event)> {
    let item = |name: &str| NewItem {
        identity: name.to_owned(),
        input: format!("{{\"id\":\"{name}\"}}"),
    };
    vec![
        (
            "job_submitted",
            Event::JobSubmitted(Box::new(Submitted {
                job: "7f3k".to_owned(),
                text: "- shell: echo é\n".to_owned(),
                file: "/w/w.yaml".to_owned(),
                working_dir: "/w".to_owned(),
                env: vec![("HOME".to_owned(), "/h/me".to_owned())],
                seed: u64::MAX,
                parallel: vec![(1, 10)],
                pool: Some((20, 3)),
                ceilings: Some((20, 50, 3, 5)),
                release: Some("0.1.0".to_owned()),
                ..Submitted::default()
            })),
        ),
        (
            "job_submitted_passing",
            Event::JobSubmitted(Box::new(Submitted {
                job: "7f3k".to_owned(),
                stdin: Some("/w/stdin".to_owned()),
                passing: Some(Passing::InOrder),
                ..Submitted::default()
            })),
        ),
        ("job_redriven", Event::JobRedriven { reduce: true }),
        ("item_redriven", Event::ItemRedriven { step: 1, item: 2 }),
        ("item_dropped", Event::ItemDropped { step: 1, item: 2 }),
        ("job_paused", Event::JobPaused),
        ("job_unpaused", Event::JobUnpaused { away: secs(30) }),
        ("job_resumed", Event::JobResumed(resumed())),
        (
            "step_started",
            Event::StepStarted {
                step: 1,
                start: Some(7),
            },
        ),
        (
            "items_read",
            Event::ItemsRead {
                step: 1,
                items: vec![item("a"), item("b")],
                last: true,
            },
        ),
        (
            "input_failed",
            Event::InputFailed {
                step: 1,
                reason: Reason::Permanent,
                error: Text::Itself("not there".to_owned()),
                stderr: Some(KEPT),
            },
        ),
        (
            "text_kept",
            Event::TextKept {
                text: "connection refused".to_owned(),
            },
        ),
        (
            "job_stopping",
            Event::JobStopping {
                reason: Reason::Tolerance,
            },
        ),
        ("step_completed", Event::StepCompleted { step: 1 }),
        ("step_failed", Event::StepFailed { step: 1 }),
        ("job_suspended", Event::JobSuspended),
        (
            "policy_changed",
            Event::PolicyChanged {
                text: "- shell: b\n".to_owned(),
                changes: vec![PolicyChange {
                    of: "shell-1".to_owned(),
                    setting: "attempts".to_owned(),
                    old: "3".to_owned(),
                    new: "unlimited".to_owned(),
                }],
            },
        ),
    ]
}

/// Fields that came later.
fn of_the_job_later() -> Vec<(&'static str, Event)> {
    vec![
        (
            "job_submitted_completion",
            Event::JobSubmitted(Box::new(Submitted {
                job: "7f3k".to_owned(),
                completion: Some(CompletionDefaults {
                    min: 2,
                    deadline: secs(300),
                }),
                late_results_count: Some(true),
                ..Submitted::default()
            })),
        ),
        // What a release wrote whose requests all had a breaker, and what is written since.
        (
            "job_submitted_http",
            Event::JobSubmitted(Box::new(requesting())),
        ),
        (
            "job_submitted_opt_in",
            Event::JobSubmitted(Box::new(Submitted {
                origin_breakers: Some(false),
                ..requesting()
            })),
        ),
        (
            "job_resumed_held",
            Event::JobResumed(Resumed {
                restored: Restored {
                    held: Some(6),
                    ..resumed().restored
                },
                ..resumed()
            }),
        ),
    ]
}

/// A job that sends a request and says nothing of a breaker.
fn requesting() -> Submitted {
    let lines = [
        "- http: {url: 'http://pay.test/charge'}",
        "  retry_config: {attempts: 7, backoff: fixed, initial_delay: 1s}",
    ];
    Submitted {
        job: "7f3k".to_owned(),
        text: lines.map(|line| format!("{line}\n")).concat(),
        file: "/w/w.yaml".to_owned(),
        working_dir: "/w".to_owned(),
        seed: 7,
        release: Some("0.1.0".to_owned()),
        late_results_count: Some(false),
        token_key: Some(1),
        ..Submitted::default()
    }
}

fn of_items() -> Vec<(&'static str, Event)> {
    vec![
        (
            "attempt_started",
            Event::AttemptStarted(Started {
                subject: OF,
                start: 4_294_967_296,
                pass: None,
            }),
        ),
        (
            "attempt_succeeded",
            Event::AttemptSucceeded(Box::new(Succeeded {
                subject: OF,
                took: Duration::from_millis(1500),
                next: Some(4),
                output: Some("{\"a\": 1}\n".to_owned()),
                stdout: Some(KEPT),
                stderr: Some(KEPT),
                left: Some(2),
            })),
        ),
        (
            "attempt_failed",
            Event::AttemptFailed(Box::new(Failed {
                subject: OF,
                took: Duration::from_millis(1500),
                cause: Cause::Exit(-1),
                class: Class::Transient,
                error: Some(Text::Kept(3)),
                rule: Some(1),
                output: Some(String::new()),
                stdout: Some(KEPT),
                stderr: Some(KEPT),
            })),
        ),
        (
            "retry_scheduled",
            Event::RetryScheduled(Box::new(Retrying {
                subject: OF,
                sum: sum(),
                due: at(31),
                delay: secs(31),
            })),
        ),
        (
            "command_stopped",
            Event::CommandStopped(Box::new(Stopped {
                subject: OF,
                reason: Reason::RetryBudget,
                error: Text::Kept(4),
                sum: Some(sum()),
                handler: Some(5),
                rule: Some(0),
            })),
        ),
        ("command_repeated", Event::CommandRepeated { subject: OF }),
        (
            "command_recovered",
            Event::CommandRecovered {
                subject: OF,
                next: Some(6),
            },
        ),
        (
            "item_succeeded",
            Event::ItemSucceeded { step: 1, item: 299 },
        ),
        (
            "item_dead_lettered",
            Event::ItemDeadLettered {
                subject: OF,
                reason: Reason::Attempts,
                error: Text::Kept(4),
            },
        ),
        (
            "item_skipped",
            Event::ItemSkipped {
                step: 1,
                item: 299,
                reason: Reason::Cancelled,
            },
        ),
    ]
}

fn ends() -> Vec<(&'static str, Event)> {
    let ended = Ended {
        counts: Counts {
            total: 1_000_000,
            succeeded: 999_990,
            dead: 7,
            skipped: 3,
            attempts: 1_000_020,
            retries: 20,
            delay: secs(91),
        },
        reason: Some(Reason::Deadline),
        error: Some(Text::Kept(4)),
        submitted: Some(at(0)),
    };
    vec![
        (
            "job_completed",
            Event::JobCompleted(Box::new(ended.clone())),
        ),
        ("job_partial", Event::JobPartial(Box::new(ended.clone()))),
        ("job_failed", Event::JobFailed(Box::new(ended.clone()))),
        ("job_cancelled", Event::JobCancelled(Box::new(ended))),
    ]
}

fn shared_limits() -> Vec<(&'static str, Event)> {
    let breaker = || Text::Itself("payments".to_owned());
    let held = |sum| {
        Event::Held(Box::new(Held {
            subject: OF,
            breaker: breaker(),
            until: Some(at(60)),
            expires: Some(at(600)),
            left: Some(3),
            sum,
        }))
    };
    let opened = |by_rule, failures| {
        Event::BreakerOpened(Opened {
            breaker: breaker(),
            until: at(65),
            failures,
            by_rule,
        })
    };
    vec![
        (
            "attempt_started_through_a_breaker",
            Event::AttemptStarted(Started {
                subject: OF,
                start: 7,
                pass: Some(Pass {
                    breaker: Text::Kept(2),
                    generation: 4,
                    probe: true,
                }),
            }),
        ),
        (
            "pool_topped_up",
            Event::PoolToppedUp {
                asked: 10,
                added: 5,
                total: 50,
                per_item: Some(5),
            },
        ),
        ("held", held(None)),
        ("held_by_rule", held(Some(sum()))),
        (
            "released",
            Event::Released(Released {
                subject: OF,
                breaker: breaker(),
                held: secs(61),
            }),
        ),
        ("breaker_opened", opened(false, 5)),
        ("breaker_opened_by_rule", opened(true, 0)),
        (
            "breaker_half_opened",
            Event::BreakerHalfOpened { breaker: breaker() },
        ),
        (
            "breaker_closed",
            Event::BreakerClosed { breaker: breaker() },
        ),
        (
            "breaker_configured",
            Event::BreakerConfigured {
                breaker: breaker(),
                changes: vec![PolicyChange {
                    of: "payments".to_owned(),
                    setting: "failure_threshold".to_owned(),
                    old: "5".to_owned(),
                    new: "3".to_owned(),
                }],
            },
        ),
        (
            "completion_reached",
            Event::CompletionReached(Box::new(Reached {
                step: 1,
                why: Why::DeadlineExpired,
                success: false,
                completed: 2,
                failed: 1,
                target: 5,
                min: 3,
                deadline: at(300),
            })),
        ),
        (
            "late_result",
            Event::LateResult(Late {
                step: 1,
                item: 4,
                reason: Some(Reason::Attempts),
                counted: true,
            }),
        ),
    ]
}

fn of_flows() -> Vec<(&'static str, Event)> {
    vec![
        (
            "job_submitted_work",
            Event::JobSubmitted(Box::new(Submitted {
                job: "wf-1".to_owned(),
                work: Some(WorkDefaultsStored {
                    max_retries: Some(10),
                    backoff: secs(1),
                    max_backoff: secs(60),
                    growth: 2,
                }),
                ..Submitted::default()
            })),
        ),
        (
            "job_submitted_flow",
            Event::JobSubmitted(Box::new(Submitted {
                job: "wf-1:ship:51ab".to_owned(),
                flow: Some(FlowRun {
                    goals: vec!["process".to_owned(), "notify".to_owned()],
                    init: "{\"region\":\"US\"}".to_owned(),
                    labels: vec![("team".to_owned(), "blue".to_owned())],
                    parent: Some(Parent {
                        flow: "wf-1".to_owned(),
                        step: "ship".to_owned(),
                        token: "51ab".to_owned(),
                        depth: 1,
                    }),
                }),
                token_key: Some(u64::MAX),
                ..Submitted::default()
            })),
        ),
        ("step_skipped", Event::StepSkipped { step: 1 }),
        (
            "step_unreachable",
            Event::StepUnreachable {
                step: 1,
                missing: "order".to_owned(),
            },
        ),
        (
            "attribute_set",
            Event::AttributeSet {
                step: 1,
                name: "order".to_owned(),
                value: "{\"id\":7}".to_owned(),
            },
        ),
        (
            "attempt_accepted",
            Event::AttemptAccepted {
                subject: OF,
                until: at(86_400),
            },
        ),
    ]
}

fn imports() -> Vec<(&'static str, Event)> {
    let command = ImportedCommand {
        item: "a".to_owned(),
        command: 3,
        attempts: 2,
        retries: 2,
        spent: secs(3),
        previous: Some(secs(2)),
        due: Some(at(31)),
        expires: Some(at(100)),
        error: Some(Text::Itself("refused".to_owned())),
    };
    vec![(
        "state_imported",
        Event::StateImported {
            commands: vec![command],
        },
    )]
}

const OF: Subject = Subject {
    step: 1,
    item: 299,
    command: 3,
    attempt: 2,
};

const KEPT: Kept = Kept {
    length: 5_000_000,
    head: 1_048_576,
    tail: 1_048_576,
    segment: 2,
    offset: 77,
};

fn sum() -> Sum {
    Sum {
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
