//! What `resume --update` may change, and what it may not.
//!
//! A job keeps its work: results of the old commands must not count for new ones. Everything about
//! retries, time limits and parallelism is a setting.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::spelling::format_duration;
use undaunted_policy::{BreakerSettings, Policy, RetryConfig, WhenOpen};

use crate::event::PolicyChange;
use crate::workflow::{
    Command, Handler, Map, MaxParallel, OnInterrupt, OnItemFailure, Step, StepWork, Workflow,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkflowUpdate {
    /// They differ in these settings only.
    Settings(Vec<PolicyChange>),
    /// They differ in the work: one line for each difference.
    Work(Vec<String>),
}

pub fn compare(old: &Workflow, new: &Workflow) -> WorkflowUpdate {
    let mut found = Differences::default();
    found.workflow(old, new);
    if found.work.is_empty() {
        WorkflowUpdate::Settings(found.settings)
    } else {
        WorkflowUpdate::Work(found.work)
    }
}

/// A setting as a file writes it.
trait Shown {
    fn shown(&self) -> String;
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), T::shown)
    }
}

impl<T: Display + Plain> Shown for T {
    fn shown(&self) -> String {
        self.to_string()
    }
}

/// Values that files write as `Display` prints them.
trait Plain {}

impl Plain for u32 {}
impl Plain for u64 {}
impl Plain for f64 {}
impl Plain for bool {}

impl Shown for MaxParallel {
    fn shown(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Variable(name) => format!("${name}"),
        }
    }
}

impl Shown for Duration {
    fn shown(&self) -> String {
        format_duration(*self)
    }
}

impl Shown for WhenOpen {
    fn shown(&self) -> String {
        match self {
            Self::Hold => "hold".to_owned(),
            Self::Fail => "fail".to_owned(),
        }
    }
}

impl Shown for OnInterrupt {
    fn shown(&self) -> String {
        match self {
            Self::Retry => "retry".to_owned(),
            Self::Stop => "stop".to_owned(),
        }
    }
}

impl Shown for OnItemFailure {
    fn shown(&self) -> String {
        match self {
            Self::DeadLetter => "dlq".to_owned(),
            Self::Skip => "skip".to_owned(),
            Self::Stop => "stop".to_owned(),
        }
    }
}

pub fn settings_of_breakers(
    breaker: &str,
    old: &BreakerSettings,
    new: &BreakerSettings,
) -> Vec<PolicyChange> {
    let mut differences = Differences::default();
    differences.breaker(breaker, old, new);
    differences.settings
}

#[derive(Default)]
struct Differences {
    settings: Vec<PolicyChange>,
    work: Vec<String>,
}

impl Differences {
    fn setting<T: Shown + PartialEq>(&mut self, of: &str, setting: &str, old: &T, new: &T) {
        if old != new {
            self.settings.push(PolicyChange {
                of: of.to_owned(),
                setting: setting.to_owned(),
                old: old.shown(),
                new: new.shown(),
            });
        }
    }

    fn work<T: PartialEq>(&mut self, of: &str, what: &str, old: &T, new: &T) {
        if old != new {
            self.work.push(format!("{of}: {what} differs"));
        }
    }

    fn workflow(&mut self, old: &Workflow, new: &Workflow) {
        const OF: &str = "the workflow";
        self.setting(OF, "deadline", &old.deadline, &new.deadline);
        self.work(OF, "mode", &old.mode, &new.mode);
        self.work(OF, "shell", &old.shell, &new.shell);
        self.work(OF, "agents", &old.agents, &new.agents);
        self.work(OF, "env", &old.env, &new.env);
        self.work(OF, "secrets", &old.secrets, &new.secrets);
        let pool = |workflow: &Workflow| workflow.pool.map(|pool| (pool.total, pool.per_item));
        self.work(OF, "retry_budget", &pool(old), &pool(new));
        let names = |workflow: &Workflow| -> Vec<String> {
            let steps = workflow.steps.iter();
            steps.map(|step| step.name.clone()).collect()
        };
        if names(old) != names(new) {
            return self.work(OF, "the list of steps", &names(old), &names(new));
        }
        for (old, new) in old.steps.iter().zip(&new.steps) {
            self.step(old, new);
        }
    }

    fn step(&mut self, old: &Step, new: &Step) {
        self.work(&old.name, "what it needs", &old.needs, &new.needs);
        if let (StepWork::Map(old_map), StepWork::Map(new_map)) = (&old.work, &new.work) {
            self.map(&old.name, old_map, new_map);
        }
        self.commands(&old.name, &old.commands, &new.commands);
    }

    fn map(&mut self, of: &str, old: &Map, new: &Map) {
        self.work(of, "input", &old.input, &new.input);
        self.work(of, "the selection of items", &old.selection, &new.selection);
        self.work(of, "best_effort", &old.completion, &new.completion);
        self.work(of, "on_complete", &old.on_complete, &new.on_complete);
        self.setting(of, "max_parallel", &old.max_parallel, &new.max_parallel);
        let (limit, new_limit) = (&old.item_deadline, &new.item_deadline);
        self.setting(of, "agent_timeout_secs", limit, new_limit);
        let (old_most, new_most) = (&old.tolerance.max_failures, &new.tolerance.max_failures);
        self.setting(of, "max_failures", old_most, new_most);
        let share = |map: &Map| map.tolerance.failure_threshold;
        self.setting(of, "failure_threshold", &share(old), &share(new));
        let (rule, new_rule) = (&old.on_item_failure, &new.on_item_failure);
        self.setting(of, "on_item_failure", rule, new_rule);
    }

    fn commands(&mut self, of: &str, old: &[Command], new: &[Command]) {
        let ids = |commands: &[Command]| -> Vec<String> {
            commands.iter().map(|command| command.id.clone()).collect()
        };
        if ids(old) != ids(new) {
            return self.work(of, "the list of commands", &ids(old), &ids(new));
        }
        for (old, new) in old.iter().zip(new) {
            self.command(old, new);
        }
    }

    fn command(&mut self, old: &Command, new: &Command) {
        let of = &old.id;
        self.work(of, old.action.kind(), &old.action, &new.action);
        self.work(of, "env", &old.env, &new.env);
        self.work(of, "working_dir", &old.working_dir, &new.working_dir);
        self.work(of, "capture_output", &old.capture, &new.capture);
        let name = |command: &Command| {
            let breaker = command.breaker.as_ref()?;
            Some(breaker.name.clone())
        };
        self.work(of, "breaker", &name(old), &name(new));
        if let (Some(old), Some(new)) = (&old.breaker, &new.breaker) {
            self.breaker(of, &old.settings, &new.settings);
        }
        self.setting(of, "timeout", &old.timeout, &new.timeout);
        self.setting(of, "output_limit", &old.output_limit, &new.output_limit);
        self.setting(of, "on_interrupt", &old.on_interrupt, &new.on_interrupt);
        self.policy(of, &old.retry.policy, &new.retry.policy);
        self.handler(of, old.on_failure.as_deref(), new.on_failure.as_deref());
        self.commands(of, &old.on_success, &new.on_success);
    }

    fn breaker(&mut self, of: &str, old: &BreakerSettings, new: &BreakerSettings) {
        let (count, new_count) = (&old.failure_threshold, &new.failure_threshold);
        self.setting(of, "breaker.failure_threshold", count, new_count);
        let (time, new_time) = (&old.recovery_timeout, &new.recovery_timeout);
        self.setting(of, "breaker.recovery_timeout", time, new_time);
        let (calls, new_calls) = (&old.half_open_max_calls, &new.half_open_max_calls);
        self.setting(of, "breaker.half_open_max_calls", calls, new_calls);
        self.setting(of, "breaker.when_open", &old.when_open, &new.when_open);
        self.setting(of, "breaker.max_hold", &old.max_hold, &new.max_hold);
    }

    /// Compares setting by setting, as a file writes them.
    fn policy(&mut self, of: &str, old: &Policy, new: &Policy) {
        let settings = |policy| match serde_json::to_value(RetryConfig::from(policy)) {
            Ok(Value::Object(settings)) => settings,
            _ => serde_json::Map::new(),
        };
        let (old, new) = (settings(old), settings(new));
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            let value = |settings: &serde_json::Map<String, Value>| match settings.get(name) {
                None | Some(Value::Null) => "none".to_owned(),
                Some(Value::String(text)) => text.clone(),
                Some(other) => other.to_string(),
            };
            let (old, new) = (value(&old), value(&new));
            if old != new {
                self.settings.push(PolicyChange {
                    of: of.to_owned(),
                    setting: format!("retry_config.{name}"),
                    old,
                    new,
                });
            }
        }
    }

    fn handler(&mut self, of: &str, old: Option<&Handler>, new: Option<&Handler>) {
        match (old, new) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                let (rounds, new_rounds) = (&old.max_attempts, &new.max_attempts);
                self.setting(of, "on_failure.max_attempts", rounds, new_rounds);
                let (fails, new_fails) = (&old.fail_workflow, &new.fail_workflow);
                self.setting(of, "on_failure.fail_workflow", fails, new_fails);
                self.commands(of, &old.commands, &new.commands);
            }
            _ => self.work.push(format!("{of}: on_failure differs")),
        }
    }
}
