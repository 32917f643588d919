//! Keepers and the commands they run.
//!
//! The rules are those of real keepers: a keeper outlives its engine and reports to the next one; commands
//! outlive a killed keeper until the next keeper finds and ends them; a keeper's notes of starts and ends
//! survive its death, but not a power failure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use undaunted_engine::id::StartId;
use undaunted_policy::Timestamp;
use undaunted_runner::AttemptFate;
use undaunted_runner::drive::Notifier;
use undaunted_runner::keeper::{CommandSpec, KeeperEvent, KeeperRefusal};
use undaunted_runner::machine::{AttemptEnds, CapturedOutputs, KeeperAddress};
use undaunted_runner::spool::{
    CaptureError, CommandEnd, CommandExit, CommandFate, EndedBy, RecoveredSpool, RunningCommand,
    SpooledOutput, VanishedCommand,
};

use super::case::{ScriptedAttempt, ScriptedEnd};
use super::world::{KeeperMessage, SimEvent, SimWorld};

/// How long a hanging command without a timeout runs before it is ended.
const ENOUGH: Duration = Duration::from_mins(2);

/// The keeper of one job, and what is left of its predecessors.
#[derive(Default)]
pub(super) struct KeeperProcess {
    /// Counted from 1; 0 if no keeper runs.
    pub(super) generation: u64,
    /// How many keepers there were.
    generations: u64,
    /// The engine that is connected.
    listener: Option<KeeperListener>,
    /// The keeper's notes, by command.
    entries: BTreeMap<u64, KeeperEntry>,
    /// Commands that were cancelled before they began.
    unwanted: Vec<u64>,
    /// Commands that begin when fewer than so many run.
    reserved: VecDeque<(CommandSpec, u32)>,
    /// Whether commands may have begun that are not noted.
    is_uncertain: bool,
    /// Outputs of commands, by offset.
    outputs: Vec<String>,
    /// Whether its spool folder exists.
    pub(super) is_there: bool,
}

/// An engine that is connected to a keeper.
struct KeeperListener {
    process: usize,
    endings: Arc<AttemptEnds>,
    notifier: Notifier,
}

/// The fates of the recorded attempts, and the other attempts that a keeper knows.
type AttemptFates = (BTreeMap<StartId, AttemptFate>, BTreeSet<StartId>);

/// A command, from its start until it is forgotten.
#[derive(Clone)]
struct KeeperEntry {
    token: String,
    began: Timestamp,
    /// How it ends if it is not ended before.
    end: (CommandEnd, EndedBy, String),
    state: CommandState,
}

#[derive(Clone)]
enum CommandState {
    Runs,
    /// It has ended, and its keeper has noted how.
    Exited(Box<CommandExit>),
    /// It has ended without a keeper.
    Gone,
}

fn system(at: Timestamp) -> SystemTime {
    let since = at.since(Timestamp::ZERO);
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}

impl KeeperProcess {
    pub(super) fn is_connected_to(&self, process: usize) -> bool {
        let listener = self.listener.as_ref();
        listener.is_some_and(|it| it.process == process)
    }

    /// Starts the keeper if none runs, and ends the commands that its predecessor left. Returns what it found
    /// and what it ended.
    fn begin(&mut self, is_new: bool) -> (RecoveredSpool, Vec<(u64, String)>) {
        let (mut recovered, mut ended) = (RecoveredSpool::default(), Vec::new());
        if self.generation > 0 {
            return (recovered, ended);
        }
        self.generations += 1;
        self.generation = self.generations;
        // A new spool must be confirmed first.
        self.is_uncertain |= is_new;
        self.is_there = true;
        for (id, entry) in &mut self.entries {
            let found = match &entry.state {
                CommandState::Runs => 1,
                CommandState::Gone => 0,
                CommandState::Exited(_) => continue,
            };
            if found > 0 {
                ended.push((*id, entry.token.clone()));
            }
            entry.state = CommandState::Gone;
            let vanished = VanishedCommand {
                id: *id,
                began: system(entry.began),
                stdout: SpooledOutput::default(),
                stderr: SpooledOutput::default(),
                ended: found,
                survived: 0,
            };
            recovered.fates.insert(*id, CommandFate::Vanished(Some(vanished)));
        }
        (recovered, ended)
    }

    fn store_output(&mut self, text: &str) -> SpooledOutput {
        if text.is_empty() {
            return SpooledOutput::default();
        }
        self.outputs.push(text.to_owned());
        let length = u64::try_from(text.len()).unwrap_or_default();
        SpooledOutput {
            length,
            head: length,
            offset: u64::try_from(self.outputs.len().saturating_sub(1)).unwrap_or_default(),
            ..SpooledOutput::default()
        }
    }

    fn send(&self, event: KeeperEvent) -> Option<usize> {
        let listener = self.listener.as_ref()?;
        if let Some(message) = listener.endings.message(event, self) {
            listener.notifier.send(message);
        }
        Some(listener.process)
    }
}

impl CapturedOutputs for KeeperProcess {
    fn capture(&self, kept: &SpooledOutput, _: u64) -> Result<Vec<u8>, CaptureError> {
        let place = usize::try_from(kept.offset).unwrap_or(usize::MAX);
        let text = self.outputs.get(place).filter(|_| kept.length > 0);
        Ok(text.cloned().unwrap_or_default().into_bytes())
    }

    fn last_lines(&self, _: &SpooledOutput, _: usize) -> io::Result<String> {
        Ok(String::new())
    }

    fn slot(&self, _: u32) -> [PathBuf; 2] {
        [PathBuf::new(), PathBuf::new()]
    }
}

impl SimWorld {
    /// An engine connects to the keeper of a job; `None` if another living engine is connected.
    pub(super) fn reach_keeper(
        &mut self,
        job: &str,
        process: usize,
        reach: KeeperAddress<'_>,
        endings: Arc<AttemptEnds>,
    ) -> Option<AttemptFates> {
        let busy = self.keepers.get(job).and_then(|it| it.listener.as_ref());
        if let Some(other) = busy
            && other.process != process
            && self.is_alive(other.process)
        {
            return None;
        }
        let is_new = !self.keepers.get(job).is_some_and(|it| it.is_there);
        let keeper = self.keepers.entry(job.to_owned()).or_default();
        let (mut recovered, ended) = keeper.begin(is_new);
        for (id, entry) in &keeper.entries {
            let fate = match &entry.state {
                CommandState::Runs => CommandFate::Running(RunningCommand {
                    id: *id,
                    pid: None,
                    slot: None,
                    began: Some(system(entry.began)),
                }),
                CommandState::Exited(exited) => CommandFate::Exited((**exited).clone()),
                CommandState::Gone => {
                    let known = recovered.fates.contains_key(id);
                    if known {
                        continue;
                    }
                    CommandFate::Vanished(None)
                }
            };
            recovered.fates.insert(*id, fate);
        }
        recovered.uncertain = keeper.is_uncertain;
        let fates = endings.fates(&reach.started, &recovered, keeper, reach.now);
        // The last engine is dead, if it has not left.
        keeper.reserved.clear();
        keeper.listener = Some(KeeperListener { process, endings, notifier: reach.notifier });
        for (id, token) in ended {
            self.oracle.command_ended(job, StartId(id), &token, false);
        }
        self.log(|| format!("engine {process} reaches the keeper of {job}"));
        Some(fates)
    }

    pub(super) fn leave_keeper(&mut self, job: &str, process: usize) {
        let keeper = self.keepers.get_mut(job);
        if let Some(keeper) = keeper.filter(|it| it.is_connected_to(process)) {
            keeper.listener = None;
            keeper.reserved.clear();
        }
    }

    /// A message reaches the keeper a little later.
    pub(super) fn send_to_keeper(&mut self, job: &str, message: KeeperMessage) {
        let generation = self.keepers.get(job).map_or(0, |it| it.generation);
        let job = job.to_owned();
        self.after(self.fault_plan.message_delay, SimEvent::KeeperReceives { job, generation, message });
    }

    pub(super) fn keeper_receives(&mut self, job: &str, generation: u64, message: KeeperMessage) {
        let keeper = self.keepers.get_mut(job);
        let Some(keeper) = keeper.filter(|it| it.generation > 0 && it.generation == generation) else {
            return;
        };
        match message {
            KeeperMessage::Run(spec) => self.keeper_runs(job, &spec),
            KeeperMessage::Reserve(spec, slots) => {
                keeper.reserved.push_back((*spec, slots));
                self.begin_reserved(job);
            }
            KeeperMessage::Withdraw => self.withdraw_reserved(job),
            KeeperMessage::Cancel(id) => {
                if keeper.entries.contains_key(&id) {
                    self.end_command(job, id, EndedBy::Cancelled);
                } else {
                    keeper.unwanted.push(id);
                }
            }
            KeeperMessage::CancelAll => {
                self.withdraw_reserved(job);
                let Some(keeper) = self.keepers.get_mut(job) else { return };
                let ids: Vec<u64> = keeper.entries.keys().copied().collect();
                for id in ids {
                    self.end_command(job, id, EndedBy::Cancelled);
                }
            }
            KeeperMessage::Forget(id) => {
                keeper.entries.remove(&id);
            }
            KeeperMessage::Trust => keeper.is_uncertain = false,
        }
    }

    fn begin_reserved(&mut self, job: &str) {
        loop {
            let Some(keeper) = self.keepers.get_mut(job) else { return };
            let runs = |entry: &&KeeperEntry| matches!(entry.state, CommandState::Runs);
            let running = u32::try_from(keeper.entries.values().filter(runs).count()).unwrap_or(u32::MAX);
            if keeper.reserved.front().is_none_or(|(_, slots)| running >= *slots) {
                return;
            }
            if let Some((spec, _)) = keeper.reserved.pop_front() {
                self.keeper_runs(job, &spec);
            }
        }
    }

    fn withdraw_reserved(&mut self, job: &str) {
        let Some(keeper) = self.keepers.get_mut(job) else { return };
        let withdrawn = std::mem::take(&mut keeper.reserved).into_iter();
        let why = KeeperRefusal::Cancelled;
        let heard =
            withdrawn.filter_map(|(spec, _)| keeper.send(KeeperEvent::Refused { id: Some(spec.id), why }));
        if let Some(process) = heard.last() {
            self.wake(process);
        }
    }

    fn keeper_runs(&mut self, job: &str, spec: &CommandSpec) {
        let id = spec.id;
        let now = self.wall();
        let Some(keeper) = self.keepers.get_mut(job) else {
            return;
        };
        let refused = if keeper.entries.contains_key(&id) {
            Some(KeeperRefusal::Known)
        } else if keeper.unwanted.contains(&id) {
            Some(KeeperRefusal::Cancelled)
        } else {
            None
        };
        if let Some(why) = refused {
            let heard = keeper.send(KeeperEvent::Refused { id: Some(id), why });
            if let Some(process) = heard {
                self.wake(process);
            }
            return;
        }
        let words = spec.argv.last().map(|it| it.to_string_lossy().into_owned());
        let words = words.unwrap_or_default();
        let token = variable(spec, "UNDAUNTED_RECEIPT_TOKEN");
        self.oracle.command_began(job, StartId(id), &token);
        let label = words.split_whitespace().next().unwrap_or_default();
        let item = variable(spec, "UNDAUNTED_ITEM");
        let attempt = variable(spec, "UNDAUNTED_ATTEMPT").parse().unwrap_or(1);
        let mut act = self.act(job, label, &item, attempt);
        if label == "items" {
            let items = self.cases.get(job).map(super::case::JobCase::items);
            act.end = ScriptedEnd::Success(items.unwrap_or_default());
            act.takes = self.fault_plan.message_delay;
        }
        let (takes, end) = self.end_of(job, spec, act);
        let entry = KeeperEntry { token, began: now, end, state: CommandState::Runs };
        let Some(keeper) = self.keepers.get_mut(job) else {
            return;
        };
        keeper.entries.insert(id, entry);
        let heard = keeper.send(KeeperEvent::Began(RunningCommand {
            id,
            pid: None,
            slot: None,
            began: Some(system(now)),
        }));
        let generation = keeper.generation;
        if let Some(process) = heard {
            self.wake(process);
        }
        self.log(|| format!("command {id} of {job} begins: {words} (attempt {attempt})"));
        let job = job.to_owned();
        self.after(takes, SimEvent::CommandEnds { job, start: id, generation });
    }

    /// When and how a command ends if it is not ended before.
    fn end_of(
        &mut self,
        job: &str,
        spec: &CommandSpec,
        act: ScriptedAttempt,
    ) -> (Duration, (CommandEnd, EndedBy, String)) {
        let hangs = matches!(act.end, ScriptedEnd::Hang);
        let (mut end, output) = match act.end {
            ScriptedEnd::Exit(code) => (CommandEnd::Code(code), String::new()),
            ScriptedEnd::Signal(signal) => (CommandEnd::Signal(signal), String::new()),
            ScriptedEnd::Success(output) => (CommandEnd::Code(0), output),
            _ => (CommandEnd::Code(1), String::new()),
        };
        let mut takes = act.takes;
        let command = self.fault_plan.command;
        if command > 0 && self.random.chance(command, 100_000) {
            end = CommandEnd::Signal(9);
            takes /= 2;
            self.crashes += 1;
            self.log(|| format!("command {} of {job} will be killed", spec.id));
        }
        if hangs {
            // A hanging command without a timeout is ended some day.
            takes = ENOUGH;
        }
        match spec.timeout {
            Some(timeout) if timeout <= takes => {
                (timeout, (CommandEnd::Signal(15), EndedBy::Timeout, String::new()))
            }
            _ => (takes, (end, EndedBy::Itself, output)),
        }
    }

    /// A command ends by itself, with or without a keeper.
    pub(super) fn command_ends(&mut self, job: &str, id: u64, generation: u64) {
        let Some(keeper) = self.keepers.get_mut(job) else {
            return;
        };
        let kept = keeper.generation == generation;
        let Some(entry) = keeper.entries.get_mut(&id) else {
            return;
        };
        if !matches!(entry.state, CommandState::Runs) {
            return;
        }
        let (end, why, _) = &entry.end;
        if kept {
            let why = *why;
            return self.end_command(job, id, why);
        }
        // Without a keeper no timeout is enforced and no end is noted.
        let (token, good) = (entry.token.clone(), end.is_success());
        entry.state = CommandState::Gone;
        self.oracle.command_ended(job, StartId(id), &token, good);
        self.log(|| format!("command {id} of {job} ends without a keeper"));
    }

    /// Ends a command that has a keeper.
    pub(super) fn end_command(&mut self, job: &str, id: u64, why: EndedBy) {
        let now = self.wall();
        let twice = self.fault_plan.twice;
        let twice = twice > 0 && self.random.chance(twice, 100_000);
        let Some(keeper) = self.keepers.get_mut(job) else {
            return;
        };
        let Some(entry) = keeper.entries.get(&id).cloned() else {
            return;
        };
        if !matches!(entry.state, CommandState::Runs) {
            return;
        }
        let (mut end, _, output) = entry.end;
        let mut text = output.as_str();
        if why == EndedBy::Cancelled {
            end = CommandEnd::Signal(15);
            text = "";
        }
        let exited = CommandExit {
            id,
            end,
            why,
            began: system(entry.began),
            ended: system(now),
            stdout: keeper.store_output(text),
            stderr: SpooledOutput::default(),
            left: 0,
        };
        if let Some(entry) = keeper.entries.get_mut(&id) {
            entry.state = CommandState::Exited(Box::new(exited.clone()));
        }
        let mut heard = keeper.send(KeeperEvent::Exited(exited.clone()));
        if twice {
            heard = keeper.send(KeeperEvent::Exited(exited));
        }
        let good = end.is_success() && why == EndedBy::Itself;
        self.oracle.command_ended(job, StartId(id), &entry.token, good);
        if let Some(process) = heard {
            self.wake(process);
        }
        self.log(|| format!("command {id} of {job} has ended: {end:?}, {why:?}"));
        self.begin_reserved(job);
    }

    /// Its commands keep running.
    pub(super) fn kill_keeper(&mut self, job: &str) {
        let Some(keeper) = self.keepers.get_mut(job).filter(|it| it.generation > 0) else {
            return;
        };
        keeper.generation = 0;
        keeper.unwanted.clear();
        keeper.reserved.clear();
        self.crashes += 1;
        let listener = keeper.listener.as_ref().map(|it| it.process);
        self.log(|| format!("the keeper of {job} is killed"));
        if let Some(process) = listener {
            let job = job.to_owned();
            self.after(self.fault_plan.message_delay, SimEvent::KeeperGone { process, job });
        }
    }

    /// An engine notices that its keeper has died.
    pub(super) fn keeper_is_gone(&mut self, process: usize, job: &str) {
        if let Some(keeper) = self.keepers.get_mut(job)
            && keeper.generation == 0
            && keeper.is_connected_to(process)
            && keeper.send(KeeperEvent::Gone).is_some()
        {
            keeper.listener = None;
            self.wake(process);
        }
    }

    /// Kills a running command from outside.
    pub(super) fn kill_command(&mut self, job: &str) {
        let Some(keeper) = self.keepers.get_mut(job).filter(|it| it.generation > 0) else {
            return;
        };
        let mut running = keeper.entries.iter_mut();
        let running = running.find(|(_, entry)| matches!(entry.state, CommandState::Runs));
        if let Some((&id, entry)) = running {
            entry.end = (CommandEnd::Signal(9), EndedBy::Itself, String::new());
            self.crashes += 1;
            self.log(|| format!("command {id} of {job} is killed"));
            self.end_command(job, id, EndedBy::Itself);
        }
    }

    /// Kills the keeper of a job and all its commands. A power failure also loses the keeper's notes.
    pub(super) fn kill_everything(&mut self, job: &str, power: bool) {
        self.kill_keeper(job);
        let Some(keeper) = self.keepers.get_mut(job) else {
            return;
        };
        let mut ended = Vec::new();
        for (id, entry) in &mut keeper.entries {
            if matches!(entry.state, CommandState::Runs) {
                entry.state = CommandState::Gone;
                ended.push((*id, entry.token.clone()));
            }
        }
        if power {
            keeper.entries.clear();
            keeper.is_uncertain = true;
        }
        for (id, token) in ended {
            self.oracle.command_ended(job, StartId(id), &token, false);
        }
    }
}

fn variable(spec: &CommandSpec, name: &str) -> String {
    let mut env = spec.env.iter();
    let found = env.find(|(known, _)| known == name);
    found.map_or_else(String::new, |(_, value)| value.to_string_lossy().into_owned())
}
