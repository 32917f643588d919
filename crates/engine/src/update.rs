//! What `resume --update` may change, and what it may not.
//!
//! A job keeps its work, because results of the old commands must not count for new ones. Everything about
//! retries, time limits and parallelism is a setting. This file only compares: `decide` records the change.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use undaunted_policy::spelling::format_duration;
use undaunted_policy::{BreakerSettings, CompletionRule, Policy, RetryConfig, WhenOpen};

use crate::event::PolicyChange;
use crate::workflow::{
    Command, FlowStep, FlowStepKind, Handler, Map, MaxParallel, OnComplete, OnInterrupt, OnItemFailure, Step,
    StepWork, Workflow,
};

/// Settings whose effect also depends on the job: what it has used of its pool, and the time.
pub(crate) const POOL_TOTAL: &str = "retry_budget";
pub(crate) const POOL_SHARE: &str = "retry_budget_per_workflow";
pub(crate) const DEADLINE: &str = "deadline";
pub(crate) const COMPLETION_DEADLINE: &str = "best_effort_deadline_seconds";
/// The part of a workflow that these settings belong to, but for those of steps.
pub(crate) const WHOLE: &str = "the workflow";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkflowUpdate {
    /// The workflows differ in these settings only.
    Settings(Vec<PolicyChange>),
    /// The workflows differ in their work: one clause for each difference.
    Work(Vec<String>),
}

pub fn compare(old: &Workflow, new: &Workflow) -> WorkflowUpdate {
    let mut differences = Differences::default();
    differences.workflow([old, new]);
    if differences.work.is_empty() {
        WorkflowUpdate::Settings(differences.settings)
    } else {
        WorkflowUpdate::Work(differences.work)
    }
}

pub fn settings_of_breakers(
    breaker: &str,
    old: &BreakerSettings,
    new: &BreakerSettings,
) -> Vec<PolicyChange> {
    let mut differences = Differences::default();
    differences.breaker(breaker, [old, new]);
    differences.settings
}

/// A setting as a file writes it.
trait SettingText {
    fn text(&self) -> String;
}

impl<T: SettingText> SettingText for Option<T> {
    fn text(&self) -> String {
        self.as_ref().map_or_else(|| "none".to_owned(), T::text)
    }
}

/// Settings that files write as `Display` prints them.
macro_rules! displayed {
    ($($type:ty),*) => {
        $(impl SettingText for $type {
            fn text(&self) -> String {
                self.to_string()
            }
        })*
    };
}

displayed!(u32, u64, f64, bool);

impl SettingText for MaxParallel {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Variable(name) => format!("${name}"),
        }
    }
}

impl SettingText for Duration {
    fn text(&self) -> String {
        format_duration(*self)
    }
}

impl SettingText for OnInterrupt {
    fn text(&self) -> String {
        self.word().to_owned()
    }
}

impl SettingText for OnComplete {
    fn text(&self) -> String {
        self.word().to_owned()
    }
}

macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal),* }) => {
        impl SettingText for $type {
            fn text(&self) -> String {
                match self {
                    $(Self::$variant => $word.to_owned(),)*
                }
            }
        }
    };
}

words!(WhenOpen { Hold => "hold", Fail => "fail" });
words!(OnItemFailure { DeadLetter => "dlq", Skip => "skip", Stop => "stop" });

#[derive(Default)]
struct Differences {
    settings: Vec<PolicyChange>,
    work: Vec<String>,
}

/// Each function takes the old and the new version of a part.
impl Differences {
    fn setting<P, T: SettingText + PartialEq>(
        &mut self,
        of: &str,
        setting: &str,
        [old, new]: [&P; 2],
        field: impl Fn(&P) -> &T,
    ) {
        if field(old) != field(new) {
            self.change(of, setting, field(old).text(), field(new).text());
        }
    }

    fn change(&mut self, of: &str, setting: &str, old: String, new: String) {
        self.settings.push(PolicyChange { of: of.to_owned(), setting: setting.to_owned(), old, new });
    }

    /// Returns whether the part is equal in both.
    fn work<P, T: PartialEq>(
        &mut self,
        of: &str,
        what: &str,
        [old, new]: [&P; 2],
        part: impl Fn(&P) -> T,
    ) -> bool {
        let is_equal = part(old) == part(new);
        if !is_equal {
            self.work.push(format!("{of}: {what} differs"));
        }
        is_equal
    }

    fn workflow(&mut self, both: [&Workflow; 2]) {
        const OF: &str = WHOLE;
        self.setting(OF, DEADLINE, both, |it| &it.deadline);
        self.work(OF, "mode", both, |it| it.mode);
        self.work(OF, "shell", both, |it| it.shell.clone());
        self.work(OF, "agents", both, |it| it.agents.clone());
        self.work(OF, "env", both, |it| it.env.clone());
        self.work(OF, "secrets", both, |it| it.secrets.clone());
        self.work(OF, "goals", both, |it| it.flow.as_ref().map(|flow| flow.goals.clone()));
        self.work(OF, "init", both, |it| it.flow.as_ref().map(|flow| flow.init.clone()));
        self.pool(OF, both);
        let names =
            |it: &Workflow| -> Vec<String> { it.steps.iter().map(|step| step.name.clone()).collect() };
        if self.work(OF, "the list of steps", both, names) {
            for (old, new) in both[0].steps.iter().zip(&both[1].steps) {
                self.step([old, new]);
            }
        }
    }

    fn pool(&mut self, of: &str, both: [&Workflow; 2]) {
        let totals = both.map(|it| Some(it.pool?.total));
        let shares = both.map(|it| Some(it.pool?.per_item));
        self.setting(of, POOL_TOTAL, totals.each_ref(), |number| number);
        self.setting(of, POOL_SHARE, shares.each_ref(), |number| number);
    }

    fn completion(&mut self, of: &str, both: [(&CompletionRule, &OnComplete); 2]) {
        let [old, new] = &both;
        self.setting(of, "best_effort", [old, new], |(rule, _)| &rule.best_effort);
        self.setting(of, "best_effort_min_dcs", [old, new], |(rule, _)| &rule.min);
        let [was, is] = both.map(|(rule, _)| rule.deadline.as_secs_f64());
        if was.to_bits() != is.to_bits() {
            self.change(of, COMPLETION_DEADLINE, was.text(), is.text());
        }
        self.setting(of, "on_complete", [old, new], |(_, rest)| *rest);
    }

    fn step(&mut self, both: [&Step; 2]) {
        let [old, new] = both;
        self.work(&old.name, "the list of steps that it needs", both, |it| it.needs.clone());
        match (&old.work, &new.work) {
            (StepWork::Map(old_map), StepWork::Map(new_map)) => self.map(&old.name, [old_map, new_map]),
            (StepWork::Call(old_step), StepWork::Call(new_step)) => {
                self.flow_step(&old.name, [old_step, new_step]);
            }
            _ => {}
        }
        self.commands(&old.name, &old.commands, &new.commands);
    }

    fn map(&mut self, of: &str, both: [&Map; 2]) {
        self.work(of, "input", both, |it| it.input.clone());
        self.work(of, "the selection of items", both, |it| it.selection.clone());
        self.completion(of, both.map(|it| (&it.completion, &it.on_complete)));
        self.setting(of, "max_parallel", both, |it| &it.max_parallel);
        self.setting(of, "agent_timeout_secs", both, |it| &it.item_deadline);
        self.setting(of, "max_failures", both, |it| &it.tolerance.max_failures);
        self.setting(of, "failure_threshold", both, |it| &it.tolerance.failure_threshold);
        self.setting(of, "on_item_failure", both, |it| &it.on_item_failure);
    }

    fn flow_step(&mut self, of: &str, both: [&FlowStep; 2]) {
        self.work(of, "attributes", both, |it| it.attributes.clone());
        self.work(of, "predicate", both, |it| it.predicate.clone());
        self.work(of, "labels", both, |it| it.labels.clone());
        self.completion(of, both.map(|it| (&it.completion, &it.on_complete)));
        self.setting(of, "completion_timeout", both, |it| match &it.kind {
            FlowStepKind::Call { patience, .. } => patience,
            FlowStepKind::SubFlow { .. } => &None,
        });
        self.work(of, "work_config.parallelism", both, |it| it.parallelism);
    }

    fn commands(&mut self, of: &str, old: &[Command], new: &[Command]) {
        let ids = |it: &&[Command]| -> Vec<String> { it.iter().map(|command| command.id.clone()).collect() };
        if self.work(of, "the list of commands", [&old, &new], ids) {
            for (old, new) in old.iter().zip(new) {
                self.command([old, new]);
            }
        }
    }

    fn command(&mut self, both: [&Command; 2]) {
        let [old, new] = both;
        let of = &old.id;
        self.work(of, old.action.kind(), both, |it| it.action.clone());
        self.work(of, "env", both, |it| it.env.clone());
        self.work(of, "working_dir", both, |it| it.working_dir.clone());
        self.work(of, "capture_output", both, |it| it.capture.clone());
        self.work(of, "breaker", both, |it| Some(it.breaker.as_ref()?.name.clone()));
        if let (Some(old), Some(new)) = (&old.breaker, &new.breaker) {
            self.breaker(of, [&old.settings, &new.settings]);
        }
        self.setting(of, "timeout", both, |it| &it.timeout);
        self.setting(of, "output_limit", both, |it| &it.output_limit);
        self.setting(of, "on_interrupt", both, |it| &it.on_interrupt);
        self.policy(of, &old.retry.policy, &new.retry.policy);
        match (old.on_failure.as_deref(), new.on_failure.as_deref()) {
            (None, None) => {}
            (Some(old), Some(new)) => self.handler(of, [old, new]),
            _ => self.work.push(format!("{of}: on_failure differs")),
        }
        self.commands(of, &old.on_success, &new.on_success);
    }

    fn breaker(&mut self, of: &str, both: [&BreakerSettings; 2]) {
        self.setting(of, "breaker.failure_threshold", both, |it| &it.failure_threshold);
        self.setting(of, "breaker.recovery_timeout", both, |it| &it.recovery_timeout);
        self.setting(of, "breaker.half_open_max_calls", both, |it| &it.half_open_max_calls);
        self.setting(of, "breaker.when_open", both, |it| &it.when_open);
        self.setting(of, "breaker.max_hold", both, |it| &it.max_hold);
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
                self.change(of, &format!("retry_config.{name}"), old, new);
            }
        }
    }

    fn handler(&mut self, of: &str, both: [&Handler; 2]) {
        self.setting(of, "on_failure.max_attempts", both, |it| &it.max_attempts);
        self.setting(of, "on_failure.fail_workflow", both, |it| &it.fail_workflow);
        self.commands(of, &both[0].commands, &both[1].commands);
    }
}
