//! The workflow of a round, generated from its seed, and the limits that its journal has to keep.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::policy::DrawnPolicy;
use crate::random::SeededRandom;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    /// A process that records itself.
    Process,
    /// A request to the step server.
    Call,
    /// A request whose result is sent to a webhook later.
    Later,
    /// A file that is written; it may be written again.
    File,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannedCommand {
    pub(crate) kind: CommandKind,
    pub(crate) policy: DrawnPolicy,
    /// How often a handler gives it one more attempt.
    pub(crate) rounds: u64,
    /// Whether it is the handler of another command; then it may begin again from its first attempt.
    pub(crate) is_handler: bool,
    /// Whether an attempt may time out.
    pub(crate) has_timeout: bool,
    /// The command whose output it is given.
    pub(crate) given: Option<String>,
}

impl PlannedCommand {
    pub(crate) const fn of(kind: CommandKind, policy: DrawnPolicy) -> Self {
        Self { kind, policy, rounds: 0, is_handler: false, has_timeout: false, given: None }
    }

    /// The most attempts in all.
    pub(crate) const fn most(&self) -> u64 {
        let first = self.policy.retries.saturating_add(1);
        first.saturating_add(self.rounds)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KillPlan {
    /// As JSON, which is YAML too.
    pub(crate) workflow: Value,
    /// The items of the map; empty without a map.
    pub(crate) items: Vec<String>,
    pub(crate) commands: BTreeMap<String, PlannedCommand>,
    /// Retries for the whole job, and for one item.
    pub(crate) pool: Option<(u64, u64)>,
    /// Whether it is a flow, whose interrupted calls are made again at once.
    pub(crate) is_flow: bool,
    /// How many attempts run at a time; one if it is not set.
    pub(crate) width: Option<usize>,
}

/// What the commands of a round have in common.
pub(crate) struct PlanContext<'w> {
    /// The program that acts as a command.
    pub(crate) actor: &'w Path,
    /// The folder of the round.
    pub(crate) folder: &'w Path,
    /// The origin of the step server, `http://…`.
    pub(crate) calls: &'w str,
}

struct PlanGenerator<'d, 'w> {
    random: &'d mut SeededRandom,
    stage: &'d PlanContext<'w>,
    plan: KillPlan,
    failpoint: &'d str,
    /// Failure threshold, recovery timeout in milliseconds, and successes that close a breaker.
    breaker: (u64, u64, u64),
}

/// Generates a workflow that can reach a failpoint.
pub(crate) fn draw(random: &mut SeededRandom, stage: &PlanContext<'_>, failpoint: &str) -> KillPlan {
    let breaker = (random.between(2, 4), random.between(20, 120), random.between(1, 2));
    let mut drawing = PlanGenerator { breaker, failpoint, random, stage, plan: KillPlan::default() };
    drawing.workflow();
    drawing.plan
}

impl PlanGenerator<'_, '_> {
    fn workflow(&mut self) {
        let needs_map = ["items", "results"].iter().any(|it| self.failpoint.starts_with(it));
        let is_map = self.random.chance(2, 3) || needs_map;
        let mut workflow = if is_map { self.map() } else { self.list() };
        if self.random.chance(1, 3) {
            let (total, share) = (self.random.between(3, 20), self.random.between(1, 5));
            put(&mut workflow, "retry_budget", json!(total));
            put(&mut workflow, "retry_budget_per_workflow", json!(share));
            self.plan.pool = Some((total, share));
        }
        self.plan.workflow = workflow;
    }

    fn list(&mut self) -> Value {
        let many = self.random.between(2, 5);
        let commands = self.chain("c", many, false);
        json!({ "commands": commands })
    }

    fn map(&mut self) -> Value {
        let items = self.random.between(2, 12);
        self.plan.items = (1..=items).map(|number| format!("i{number}")).collect();
        let width = self.random.between(1, 4);
        self.plan.width = usize::try_from(width).ok();
        let (before, inner) = (self.random.between(0, 1), self.random.between(1, 3));
        let setup = self.chain("s", before, false);
        let template = self.chain("m", inner, true);
        let mut workflow = json!({
            "mode": "mapreduce",
            "map": {"input": "items.txt", "max_parallel": width, "agent_template": template},
        });
        if before > 0 {
            put(&mut workflow, "setup", json!(setup));
        }
        if self.random.chance(1, 2) || self.failpoint.starts_with("results") {
            let mut command = self.process("sum", 0, &["${map.results}"]);
            put(
                &mut command,
                "retry_config",
                json!({"attempts": 9, "initial_delay": "10ms", "max_delay": "20ms"}),
            );
            let policy = DrawnPolicy::of_flow(9, 10, 20, true);
            self.add_command("sum", PlannedCommand::of(CommandKind::Process, policy));
            put(&mut workflow, "reduce", json!([command]));
        }
        workflow
    }

    /// Commands in sequence, some of which are given the output of the one before.
    fn chain(&mut self, prefix: &str, many: u64, in_map: bool) -> Vec<Value> {
        let mut commands = Vec::new();
        let mut output_of: Option<String> = None;
        for number in 1..=many {
            let id = format!("{prefix}{number}");
            let (command, has_output) = self.command(&id, output_of.as_deref(), in_map);
            commands.push(command);
            output_of = has_output.then_some(id);
        }
        commands
    }

    fn command(&mut self, id: &str, output_of: Option<&str>, in_map: bool) -> (Value, bool) {
        let retried = self.random.chance(4, 5);
        let policy = if retried { DrawnPolicy::draw(self.random) } else { DrawnPolicy::none() };
        let kind = match self.random.below(8) {
            _ if self.failpoint.starts_with("file") => CommandKind::File,
            _ if self.failpoint.starts_with("call") => CommandKind::Call,
            0 => CommandKind::File,
            1 | 2 => CommandKind::Call,
            _ => CommandKind::Process,
        };
        let mut drawn = PlannedCommand::of(kind, policy);
        let fails = self.random.one_of(&[0, 20, 40, 60, 100]).copied().unwrap_or_default();
        let mut has_output = false;
        let mut command = match kind {
            CommandKind::File => {
                let name = if in_map { "out/${item}.txt" } else { "out/list.txt" };
                json!({"id": id, "write_file": {"path": name, "content": format!("by {id}"), "create_dirs": true}})
            }
            CommandKind::Call | CommandKind::Later => self.call(id, fails),
            CommandKind::Process => {
                let given = output_of.map(|output_of| format!("${{{}}}", captured(output_of)));
                let given: Vec<&str> = given.as_deref().into_iter().collect();
                drawn.given = output_of.map(str::to_owned);
                let mut command = self.process(id, fails, &given);
                has_output = self.random.chance(1, 2);
                if has_output {
                    put(&mut command, "capture_output", json!(captured(id)));
                } else {
                    self.handled(id, &mut command, &mut drawn);
                }
                if self.random.chance(1, 10) {
                    drawn.has_timeout = true;
                    put(&mut command, "timeout", json!("40ms"));
                }
                command
            }
        };
        if kind != CommandKind::Call && self.random.chance(1, 6) {
            put(&mut command, "breaker", self.breaker(Some("shared")));
        }
        if retried {
            put(&mut command, "retry_config", drawn.policy.json());
        }
        self.add_command(id, drawn);
        (command, has_output)
    }

    /// A breaker has the same settings wherever it is named.
    fn breaker(&self, name: Option<&str>) -> Value {
        let (failures, recovery, calls) = self.breaker;
        let mut breaker = json!({
            "failure_threshold": failures, "recovery_timeout": format!("{recovery}ms"),
            "half_open_max_calls": calls,
        });
        if let Some(name) = name {
            put(&mut breaker, "name", json!(name));
        }
        breaker
    }

    fn call(&mut self, id: &str, fails: u64) -> Value {
        let takes = self.takes();
        let url = format!("{}/{id}?fails={fails}&takes={takes}", self.stage.calls);
        // Every origin has a breaker, whose default recovery of a minute would take as long as a round.
        let breaker = self.breaker(None);
        json!({"id": id, "http": {"method": "POST", "url": url}, "breaker": breaker})
    }

    fn process(&mut self, id: &str, fails: u64, given: &[&str]) -> Value {
        let text = [
            format!("exec '{}' act", self.stage.actor.display()),
            format!("--record '{}'", self.stage.folder.join("record").display()),
            format!("--locks '{}'", self.stage.folder.join("locks").display()),
            format!("--command {id} --takes {} --fails {fails}", self.takes()),
            format!("--seed {} -- {}", self.random.between(0, u64::MAX), given.join(" ")),
        ];
        json!({"id": id, "shell": text.join(" ")})
    }

    /// The longest running time, in milliseconds.
    fn takes(&mut self) -> u64 {
        self.random.one_of(&[0, 10, 40, 100, 200]).copied().unwrap_or_default()
    }

    fn handled(&mut self, id: &str, command: &mut Value, drawn: &mut PlannedCommand) {
        if !self.random.chance(1, 3) {
            return;
        }
        let name = format!("h-{id}");
        let mut handler = self.process(&name, 20, &[]);
        if self.random.chance(1, 2) {
            drawn.rounds = self.random.between(1, 2);
            put(&mut handler, "max_attempts", json!(drawn.rounds));
        }
        let mut of = PlannedCommand::of(CommandKind::Process, DrawnPolicy::none());
        of.is_handler = true;
        if self.random.chance(1, 3) {
            of.policy = DrawnPolicy::draw(self.random);
            put(&mut handler, "retry_config", of.policy.json());
        }
        self.add_command(&name, of);
        put(command, "on_failure", handler);
    }

    fn add_command(&mut self, id: &str, drawn: PlannedCommand) {
        self.plan.commands.insert(id.to_owned(), drawn);
    }
}

/// The variable that captures the output of a command.
fn captured(id: &str) -> String {
    format!("said_{id}")
}

fn put(object: &mut Value, key: &str, value: Value) {
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}
