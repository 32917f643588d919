//! A workflow prepared for a job: every command by its number, and what follows it.
//!
//! Commands are in lists: of a step, of a handler (`on_failure`), of `on_success`. A job names a command by
//! its number; the plan says which list it is in and which command comes next. All of it is computed from
//! the workflow, so nothing is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use undaunted_policy::{BreakerSettings, CompletionRule};

use crate::id::{CommandId, StepId};
use crate::workflow::template::{Reference, Root, Segment};
use crate::workflow::{
    Action, Command, FlowStep, FlowStepKind, InputSource, Map, OnComplete, Step, StepWork, Workflow,
};

#[derive(Clone, Debug)]
pub struct Plan {
    workflow: Arc<Workflow>,
    locations: Vec<CommandLocation>,
    /// The commands whose output is needed.
    outputs: BTreeSet<CommandId>,
    /// Of those, the ones that a template names; their output is needed even if they fail.
    named: BTreeSet<CommandId>,
    /// Whether a template refers to the results of the map.
    results: bool,
    /// Whether a template refers to the file of its item.
    item_files: bool,
    breakers: bool,
    /// By step: the steps that need it.
    needing: Vec<Vec<StepId>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CommandLocation {
    step: StepId,
    list: CommandList,
    position: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandList {
    Step,
    OnFailure(CommandId),
    OnSuccess(CommandId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    Command(CommandId),
    /// The handler of this command has ended.
    Handler(CommandId),
    /// The item has ended.
    Item,
}

impl Plan {
    pub fn new(workflow: Workflow) -> Self {
        let workflow = Arc::new(workflow);
        let mut plan = Self {
            workflow: Arc::clone(&workflow),
            locations: Vec::new(),
            outputs: BTreeSet::new(),
            named: BTreeSet::new(),
            results: false,
            item_files: false,
            breakers: false,
            needing: vec![Vec::new(); workflow.steps.len()],
        };
        for (step, found) in StepId::all().zip(&workflow.steps) {
            plan.add_commands(step, CommandList::Step, &found.commands);
            for need in &found.needs {
                if let Some(needing) = plan.needing.get_mut(*need) {
                    needing.push(step);
                }
            }
        }
        plan.note_references();
        plan
    }

    fn add_commands(&mut self, step: StepId, list: CommandList, commands: &[Command]) {
        for (position, command) in commands.iter().enumerate() {
            let number = number(command);
            let at = number.position();
            let location = CommandLocation { step, list, position };
            if self.locations.len() <= at {
                self.locations.resize(at.saturating_add(1), location);
            }
            if let Some(slot) = self.locations.get_mut(at) {
                *slot = location;
            }
            self.breakers |= command.breaker.is_some();
            if let Some(handler) = &command.on_failure {
                self.add_commands(step, CommandList::OnFailure(number), &handler.commands);
            }
            self.add_commands(step, CommandList::OnSuccess(number), &command.on_success);
        }
    }

    fn note_references(&mut self) {
        let mut named = BTreeSet::new();
        let (mut results, mut item_files) = (false, false);
        every_reference(&self.workflow, &mut |reference| match reference.root() {
            Root::Step(name) => {
                named.insert(name.clone());
            }
            Root::ItemFile => item_files = true,
            Root::Map => {
                results |= matches!(reference.path().first(),
                    Some(Segment::Field(field)) if field.starts_with("results"));
            }
            _ => {}
        });
        (self.results, self.item_files) = (results, item_files);
        let by_name = self.numbered().filter(|(_, command)| named.contains(&command.id));
        let by_name: BTreeSet<CommandId> = by_name.map(|(number, _)| number).collect();
        let is_result = |number: CommandId| {
            results && self.is_map(self.step_of(number)) && self.after(number) == Successor::Item
        };
        let wanted = self.numbered().filter(|(number, command)| {
            command.action.always_keeps_output()
                || command.capture.is_some()
                || by_name.contains(number)
                || is_result(*number)
        });
        self.outputs = wanted.map(|(number, _)| number).collect();
        self.named = by_name;
    }

    pub fn workflow(&self) -> &Workflow {
        &self.workflow
    }

    pub fn step(&self, step: StepId) -> Option<&Step> {
        self.workflow.steps.get(step.position())
    }

    pub fn map(&self, step: StepId) -> Option<&Map> {
        match &self.step(step)?.work {
            StepWork::Map(map) => Some(map),
            StepWork::One | StepWork::Call(_) => None,
        }
    }

    pub fn call(&self, step: StepId) -> Option<&FlowStep> {
        match &self.step(step)?.work {
            StepWork::Call(call) => Some(call),
            StepWork::One | StepWork::Map(_) => None,
        }
    }

    /// How long to wait for a result that comes by webhook.
    pub fn completion_timeout(&self, step: StepId) -> Duration {
        const DEFAULT: Duration = Duration::from_hours(24);
        /// No timeout: a sub-flow may take as long as it needs.
        const LIFETIME: Duration = Duration::from_hours(100 * 365 * 24);
        let kind = self.call(step).map(|call| &call.kind);
        match kind {
            Some(FlowStepKind::Call { patience, .. }) => patience.unwrap_or(DEFAULT),
            Some(FlowStepKind::SubFlow { .. }) => LIFETIME,
            None => DEFAULT,
        }
    }

    /// Whether results of the step come by webhook.
    pub fn reports_later(&self, step: StepId) -> bool {
        self.call(step).is_some_and(|call| matches!(call.kind, FlowStepKind::Call { later: true, .. }))
    }

    /// `None` for a step that always has one item.
    pub fn completion(&self, step: StepId) -> Option<(&CompletionRule, OnComplete)> {
        match &self.step(step)?.work {
            StepWork::Map(map) => Some((&map.completion, map.on_complete)),
            StepWork::Call(call) => Some((&call.completion, call.on_complete)),
            StepWork::One => None,
        }
    }

    /// The completion rule of a step whose items it counts: a step without `for_each` has one only if the
    /// workflow says so.
    pub fn rule(&self, step: StepId) -> Option<&CompletionRule> {
        let (rule, _) = self.completion(step)?;
        let counts = |call: &FlowStep| call.attributes.values().any(|attribute| attribute.for_each);
        (rule.best_effort || self.call(step).is_none_or(counts)).then_some(rule)
    }

    pub fn is_map(&self, step: StepId) -> bool {
        self.map(step).is_some()
    }

    /// Whether a step has one item, which is known before the step starts.
    pub(crate) fn is_one(&self, step: StepId) -> bool {
        self.step(step).is_some_and(|step| matches!(step.work, StepWork::One))
    }

    pub fn command(&self, number: CommandId) -> Option<&Command> {
        let location = self.location(number)?;
        self.list_of(location)?.get(location.position)
    }

    fn list_of(&self, location: CommandLocation) -> Option<&[Command]> {
        Some(match location.list {
            CommandList::Step => &self.step(location.step)?.commands,
            CommandList::OnFailure(parent) => &self.command(parent)?.on_failure.as_deref()?.commands,
            CommandList::OnSuccess(parent) => &self.command(parent)?.on_success,
        })
    }

    pub fn numbered(&self) -> impl Iterator<Item = (CommandId, &Command)> {
        CommandId::all().take(self.locations.len()).filter_map(|number| Some((number, self.command(number)?)))
    }

    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.numbered().map(|(_, command)| command)
    }

    pub const fn has_breakers(&self) -> bool {
        self.breakers
    }

    /// The settings of the breakers that commands name.
    pub fn breakers(&self) -> BTreeMap<String, BreakerSettings> {
        let commands = self.commands();
        let named = commands.filter_map(|command| {
            let breaker = command.breaker.as_deref()?;
            Some((breaker.name.clone()?, breaker.settings))
        });
        named.collect()
    }

    /// Whether a command is in the list of its step, not in one of another command.
    pub fn is_main(&self, number: CommandId) -> bool {
        self.location(number).is_some_and(|location| location.list == CommandList::Step)
    }

    pub fn wants_output(&self, number: CommandId) -> bool {
        self.outputs.contains(&number)
    }

    /// Whether the output is needed even if the command fails.
    pub fn wants_output_of_failure(&self, number: CommandId) -> bool {
        self.named.contains(&number)
    }

    pub const fn wants_results(&self) -> bool {
        self.results
    }

    /// Whether a command refers to the file of its item.
    pub const fn wants_item_files(&self) -> bool {
        self.item_files
    }

    /// Whether a command or the input of a map is a program.
    pub fn has_programs(&self) -> bool {
        let by_command = |step: &Step| match &step.work {
            StepWork::Map(map) => matches!(map.input.source, InputSource::Shell(_)),
            StepWork::One | StepWork::Call(_) => false,
        };
        self.commands().any(|command| command.action.is_program())
            || self.workflow.steps.iter().any(by_command)
    }

    pub fn functions(&self) -> BTreeSet<&str> {
        let commands = self.commands();
        let named = commands.filter_map(|command| {
            let Action::Function(function) = &command.action else { return None };
            Some(function.name.as_str())
        });
        named.collect()
    }

    pub(crate) fn needing(&self, step: StepId) -> &[StepId] {
        self.needing.get(step.position()).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn step_of(&self, number: CommandId) -> StepId {
        self.location(number).map_or_else(StepId::default, |location| location.step)
    }

    pub fn first(&self, step: StepId) -> Option<CommandId> {
        self.step(step)?.commands.first().map(number)
    }

    pub(crate) fn handler_of(&self, command: CommandId) -> Option<CommandId> {
        let handler = self.command(command)?.on_failure.as_deref()?;
        handler.commands.first().map(number)
    }

    pub(crate) fn after_success(&self, command: CommandId) -> Successor {
        let follow_up = self.command(command).and_then(|it| it.on_success.first());
        match follow_up {
            Some(first) => Successor::Command(number(first)),
            None => self.after(command),
        }
    }

    /// What follows a command, its handler and its `on_success` commands.
    pub(crate) fn after(&self, command: CommandId) -> Successor {
        let Some(location) = self.location(command) else { return Successor::Item };
        let list = self.list_of(location);
        let next = list.and_then(|list| list.get(location.position.saturating_add(1)));
        match (next, location.list) {
            (Some(next), _) => Successor::Command(number(next)),
            (None, CommandList::Step) => Successor::Item,
            (None, CommandList::OnFailure(parent)) => Successor::Handler(parent),
            (None, CommandList::OnSuccess(parent)) => self.after(parent),
        }
    }

    /// The command whose handler this one belongs to, directly or as an `on_success` command.
    pub(crate) fn handled_by(&self, command: CommandId) -> Option<CommandId> {
        match self.location(command)?.list {
            CommandList::Step => None,
            CommandList::OnFailure(parent) => Some(parent),
            CommandList::OnSuccess(parent) => self.handled_by(parent),
        }
    }

    /// Whether a command that succeeded before a state was imported does not run again. The success of a handler says
    /// nothing about its command, and the steps of a flow are needed for their outputs.
    pub(crate) fn is_skipped_after_import(&self, number: CommandId) -> bool {
        self.handled_by(number).is_none() && self.workflow.flow.is_none()
    }

    fn location(&self, number: CommandId) -> Option<CommandLocation> {
        self.locations.get(number.position()).copied()
    }
}

/// The largest workflow that is accepted has far fewer commands than there are numbers.
fn number(command: &Command) -> CommandId {
    CommandId(u32::try_from(command.index).unwrap_or(u32::MAX))
}

fn each_reference(command: &Command, take: &mut dyn FnMut(&Reference)) {
    command.action.each_reference(take);
    for (_, value) in &command.env {
        value.references().for_each(&mut *take);
    }
    if let Some(path) = &command.working_dir {
        path.references().for_each(&mut *take);
    }
}

fn every_reference(workflow: &Workflow, take: &mut dyn FnMut(&Reference)) {
    for (_, value) in &workflow.env {
        value.references().for_each(&mut *take);
    }
    for step in &workflow.steps {
        if let StepWork::Map(map) = &step.work {
            match &map.input.source {
                InputSource::File(path) => path.references().for_each(&mut *take),
                InputSource::Shell(text) => text.references().for_each(&mut *take),
            }
        }
        let mut waiting: Vec<&Command> = step.commands.iter().collect();
        while let Some(command) = waiting.pop() {
            each_reference(command, take);
            waiting.extend(&command.on_success);
            waiting.extend(command.on_failure.iter().flat_map(|it| &it.commands));
        }
    }
}

pub fn environment_of(workflow: &Workflow) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    every_reference(workflow, &mut |reference| {
        if let (Root::Env, [Segment::Field(name)]) = (reference.root(), reference.path()) {
            names.insert(name.clone());
        }
    });
    names
}
