//! Doing what a job asks for. Only records that are on the disk lead here.

use std::path::Path;
use std::sync::Arc;

use undaunted_engine::effect::Effect;
use undaunted_engine::event::Subject;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::{
    Files, InputTask, SubFlow, Task, TaskWork, input_task, receipt_token,
};
use undaunted_policy::mutant::{self, Mutant};
use undaunted_policy::{Cause, Class};

use super::error::DriveError;
use super::news::{Ask, News};
use super::running::Drive;
use crate::executor::{Answered, FunctionOrder, NewFile, Order, Reading, items_of, spec};
use crate::failpoint;
use crate::keeper::KeeperError;

/// What is said of an attempt that was to begin while everything is ended.
const UNBEGUN: &str = "it was ended before it began";

impl Drive<'_> {
    pub(super) fn act(&mut self, effect: Effect) -> Result<(), DriveError> {
        match effect {
            Effect::Begin { start, step, item } => self.begin_attempt(start, step, item),
            Effect::ReadInput { step, start } => self.read_input(step, start),
            Effect::EndStep { step } => {
                self.end_step(step);
                Ok(())
            }
            Effect::EndAll => {
                if let Some(keeper) = &self.keeper {
                    keeper.cancel_all();
                }
                self.end_calls();
                Ok(())
            }
        }
    }

    /// Ends requests that are under way, and waits no longer for results that would come later.
    pub(super) fn end_calls(&mut self) {
        let mut ends = self.calls.cancel_all();
        ends.extend(self.job.accepted.keys().map(|start| no_longer(*start)));
        for end in ends {
            self.end_sub_flow(end.start);
            self.attempt_ended(end);
        }
    }

    /// Ends the flow of an attempt that nobody waits for any more. One that is only left goes on with
    /// whoever goes on with the job.
    fn end_sub_flow(&mut self, start: u64) {
        let flow = self.sub_flows.get(&start).map(Arc::clone);
        if let Some(flow) = flow.filter(|_| self.interrupts < 2) {
            self.asks.push(Ask::Cancel(flow));
        }
    }

    pub(super) fn begin_attempt(
        &mut self,
        start: u64,
        step: u32,
        item: u32,
    ) -> Result<(), DriveError> {
        if !self.job.running.contains_key(&start) {
            return Ok(());
        }
        if self.job.ends(step, item) {
            self.fail(
                start,
                Cause::Interrupted,
                "it was cancelled before it began",
            );
            return Ok(());
        }
        let prepared = if let Some(task) = self.prepared.remove(&start) {
            Ok(task)
        } else {
            if self.needs_results(step) {
                self.read_results()?;
            }
            self.task(step, item)
        };
        match prepared {
            Ok(task) => {
                if task.reads_item_file {
                    self.write_item(step, item)?;
                }
                let reading = Reading {
                    output: task.wants_output,
                    output_limit: task.output_limit,
                    is_input: false,
                };
                self.begin_task(start, task, reading)
            }
            Err(why) => {
                self.fail(start, Cause::Other(Class::Permanent), &why);
                Ok(())
            }
        }
    }

    /// Ends what runs of a step that is complete without it, unless it is left to go on.
    fn end_step(&mut self, step: u32) {
        let running = self.job.running.iter();
        let running = running.filter(|(_, (of, item))| *of == step && self.job.ends(step, *item));
        let running: Vec<u64> = running.map(|(start, _)| *start).collect();
        for start in running {
            if let Some(end) = self.calls.cancel(start) {
                self.attempt_ended(end);
            } else if self.job.accepted.contains_key(&start) {
                self.end_sub_flow(start);
                self.attempt_ended(no_longer(start));
            } else if let Some(keeper) = &self.keeper {
                keeper.cancel(start);
            }
        }
    }

    fn write_item(&self, step: u32, item: u32) -> Result<(), DriveError> {
        let state = self.job.step(step);
        let input = state.map_or("null", |state| state.items.input(item));
        let path = self.folder.item(step, item);
        let written = self.world.machine.keep(&path, input.as_bytes());
        written.map_err(|source| DriveError::File { path, source })
    }

    /// An attempt that cannot be made any more, though it was recorded that it would be.
    fn fail(&self, start: u64, cause: Cause, why: &str) {
        let end = AttemptEnd {
            start,
            failure: Some(cause),
            error: why.to_owned(),
            ..AttemptEnd::default()
        };
        drop(self.tell.send(News::Ended(Box::new(end))));
    }

    fn begin_task(&mut self, start: u64, task: Task, reading: Reading) -> Result<(), DriveError> {
        failpoint::reach("begin-before", start);
        match task.work {
            TaskWork::Write { .. } => {
                self.begin_write(start, task);
                return Ok(());
            }
            TaskWork::Call(call) => {
                self.begin_call(Order {
                    start,
                    call: *call,
                    timeout: task.timeout,
                    output_limit: task.output_limit,
                    wants_output: task.wants_output,
                    secrets: self.secrets.clone(),
                });
                return Ok(());
            }
            TaskWork::Function(call) => {
                self.begin_function(FunctionOrder {
                    start,
                    call,
                    timeout: task.timeout,
                    output_limit: task.output_limit,
                    secrets: self.secrets.clone(),
                });
                return Ok(());
            }
            TaskWork::Flow(flow) => {
                self.begin_flow(start, *flow);
                return Ok(());
            }
            TaskWork::Run { .. } => {}
        }
        let grace = self.world.grace;
        let spec = spec(
            &task,
            start,
            &self.world.around,
            &self.secrets,
            grace,
            reading,
        );
        let Some(spec) = spec else { return Ok(()) };
        self.told.insert(start);
        let Some(keeper) = &self.keeper else {
            return Ok(());
        };
        match keeper.run(spec) {
            Err(error @ KeeperError::TooLarge { .. }) => {
                let why = error.to_string();
                self.fail(start, Cause::Other(Class::Permanent), &why);
                Ok(())
            }
            told => Ok(told?),
        }
    }

    fn begin_flow(&mut self, start: u64, flow: SubFlow) {
        if flow.is_too_deep() {
            let why =
                "too many flows are inside each other; do steps stand for each other's flows?";
            return self.fail(start, Cause::Other(Class::Permanent), why);
        }
        let flow = Arc::new(flow);
        self.sub_flows.insert(start, Arc::clone(&flow));
        self.asks.push(Ask::Run { start, flow });
    }

    fn begin_function(&mut self, order: FunctionOrder) {
        let start = order.start;
        if self.interrupts > 1 {
            return self.fail(start, Cause::Interrupted, UNBEGUN);
        }
        let tell = self.tell.clone();
        let tell = move |end| drop(tell.send(News::Ended(Box::new(end))));
        let withdraw = self.world.machine.call(order, Box::new(tell));
        self.calls.sent(start, withdraw);
    }

    fn begin_call(&mut self, order: Order) {
        if self.interrupts > 1 {
            return self.fail(order.start, Cause::Interrupted, UNBEGUN);
        }
        let (tell, start) = (self.tell.clone(), order.start);
        let tell = move |answered| {
            drop(tell.send(match answered {
                Answered::Done(end) => News::Ended(end),
                Answered::Later(start) => News::Accepted(start),
            }));
        };
        let withdraw = self.world.machine.send(order, Box::new(tell));
        self.calls.sent(start, withdraw);
    }

    /// The receipt token of the command that an attempt is of.
    pub(super) fn token_of(&self, start: u64) -> Option<String> {
        let &(step, item) = self.job.running.get(&start)?;
        let active = self.job.active(step, item)?;
        let of = Subject {
            step,
            item,
            command: active.command,
            attempt: active.attempts,
        };
        Some(receipt_token(&self.job, of, active.round))
    }

    fn begin_write(&self, start: u64, task: Task) {
        let (tell, machine) = (self.tell.clone(), Arc::clone(&self.world.machine));
        let began = machine.uptime();
        let token = self.token_of(start).unwrap_or_default();
        self.world.machine.aside(Box::new(move || {
            let TaskWork::Write {
                path,
                content,
                create_dirs,
                mode,
            } = &task.work
            else {
                return;
            };
            let path = Path::new(&task.working_dir).join(path);
            let written = machine.write(&NewFile {
                path: &path,
                content,
                create_dirs: *create_dirs,
                mode: *mode,
                start,
                token: &token,
            });
            let error = written
                .as_ref()
                .err()
                .map(|error| format!("`{}` cannot be written: {error}", path.display()));
            let end = AttemptEnd {
                start,
                failure: written.err().map(|_| Cause::Other(Class::Transient)),
                took: machine.uptime().saturating_sub(began),
                output: task.wants_output.then(String::new),
                error: error.unwrap_or_default(),
                ..AttemptEnd::default()
            };
            drop(tell.send(News::Ended(Box::new(end))));
        }));
    }

    fn read_input(&mut self, step: u32, start: Option<u64>) -> Result<(), DriveError> {
        if let Some(start) = start
            && (self.interrupts > 1 || (self.interrupts > 0 && mutant::is(Mutant::NeverLeaves)))
        {
            // Whoever goes on with the job begins it.
            self.unbegun.insert(start);
            return Ok(());
        }
        if !self.reading.insert(step) {
            return Ok(());
        }
        let wrong = |drive: &Self, why: String| {
            let items = Err(why);
            drop(drive.tell.send(News::Items { step, items }));
        };
        match (input_task(&self.job, step, Files::default()), start) {
            (Ok(Some(InputTask::Run(task))), Some(start)) => {
                let reading = Reading {
                    output: true,
                    is_input: true,
                    output_limit: None,
                };
                return self.begin_task(start, task, reading);
            }
            (Ok(Some(InputTask::File(path))), _) => {
                let (tell, job) = (self.tell.clone(), self.job.plan().map(step).cloned());
                let machine = Arc::clone(&self.world.machine);
                self.world.machine.aside(Box::new(move || {
                    let Some(map) = job else { return };
                    let name = format!("`{path}`");
                    let items = match machine.read(Path::new(&path)) {
                        Ok(bytes) => items_of(&map, &name, &bytes),
                        Err(error) => Err(format!("the input {name} cannot be read: {error}")),
                    };
                    drop(tell.send(News::Items { step, items }));
                }));
            }
            (Err(error), _) => wrong(self, format!("the input cannot be found: {error}")),
            _ => wrong(self, "the input cannot be read by this release".to_owned()),
        }
        Ok(())
    }
}

/// An attempt that was taken on, and whose result nobody waits for any more.
fn no_longer(start: u64) -> AttemptEnd {
    AttemptEnd {
        start,
        failure: Some(Cause::Interrupted),
        error: "it was ended while its result was waited for".to_owned(),
        ..AttemptEnd::default()
    }
}
