//! Attempts and delays that were used up before the job was submitted.
//!
//! They are kept beside the items until an item reaches the command they belong to, because the items of a
//! map are not known before they are read. An item whose first command was tried before is started at once,
//! so that its retry keeps its time even if items before it have not started. Commands that had succeeded are passed
//! over; an item without further commands has succeeded, which the next event of the same decision says.

use undaunted_policy::{RetryProgress, Timestamp};

use super::item::{ActiveItem, Activity, HandlerFrame, ItemState};
use super::state::Job;
use super::step::StepState;
use crate::event::{ImportedCommand, ImportedCorrelation};
use crate::id::{CommandId, ItemId, StepId};
use crate::plan::Successor;

impl Job {
    /// Keeps what the next decisions need. Histories stay in the journal, where an export finds them.
    pub(super) fn import(
        &mut self,
        commands: impl IntoIterator<Item = ImportedCommand>,
        correlations: &[ImportedCorrelation],
    ) {
        // There may be a million, so the map is built at once.
        let commands = commands.into_iter().map(|command| {
            let key = (command.command, command.item.clone());
            (key, command)
        });
        self.imported.append(&mut commands.collect());
        self.correlations.extend(correlations.iter().map(|known| (known.item.clone(), known.id.clone())));
    }

    /// Starts those items from `from` on whose first command was tried before.
    pub(super) fn start_imported(&mut self, step: StepId, from: u32) {
        let first = self.plan().first(step);
        let Some(first) = first.filter(|_| !self.imported.is_empty()) else { return };
        let count = self.step(step).map_or(0, |state| state.items.len());
        for index in from..count {
            let item = step.item(index);
            let Some(found) = self.take_imported(item, first) else { continue };
            let Some(state) = self.step_mut(step) else { continue };
            if state.items.get(index) != Some(ItemState::Pending) {
                continue;
            }
            state.items.begin(index, ActiveItem::new(first, Timestamp::ZERO));
            state.ahead.insert(index);
            state.pass_those_ahead();
            self.begin_command(item, first, Some(found));
        }
    }

    /// Moves an item to its next command. Without one, a later event settles the item.
    pub(super) fn turn_to_next(&mut self, item: ItemId, next: Option<CommandId>) {
        if let Some(next) = next {
            let known = self.take_imported(item, next);
            self.begin_command(item, next, known);
        }
    }

    /// Moves an item to this command, or to the first one after it that has not succeeded.
    fn begin_command(&mut self, item: ItemId, mut command: CommandId, mut known: Option<ImportedCommand>) {
        while known.as_ref().is_some_and(ImportedCommand::has_succeeded) {
            let Successor::Command(next) = self.plan.after_success(command) else {
                self.stop_waiting(item);
                if let Some(active) = self.active_mut(item) {
                    active.turn_to(command);
                    active.activity = Activity::Undecided;
                }
                self.succeeded_before.insert(item);
                return;
            };
            command = next;
            known = self.take_imported(item, next);
        }
        self.stop_waiting(item);
        let due = known.as_ref().and_then(|known| known.due).unwrap_or_default();
        let Some(active) = self.active_mut(item) else { return };
        active.turn_to(command);
        active.activity = Activity::Waiting(due);
        active.set_expires(None);
        if let Some(known) = known {
            active.use_import(&known);
        }
        if let Some(step) = self.step_mut(item.step) {
            step.waiting.insert(due, item.index);
        }
        self.share(item);
    }

    fn take_imported(&mut self, item: ItemId, command: CommandId) -> Option<ImportedCommand> {
        if self.imported.is_empty() {
            return None;
        }
        let identity = self.identity(item).to_owned();
        let found = self.imported.remove(&(command, identity))?;
        (!found.has_succeeded() || self.plan.is_skipped_after_import(command)).then_some(found)
    }
}

impl ActiveItem {
    pub(crate) fn use_import(&mut self, found: &ImportedCommand) {
        self.attempts = found.attempts;
        self.set_progress(RetryProgress {
            retries: found.retries,
            spent: found.spent,
            previous: found.previous,
        });
        self.error.clone_from(&found.error);
        self.set_expires(found.expires);
        self.activity = Activity::Waiting(found.due.unwrap_or_default());
    }

    /// Whether all attempts were made before the job was submitted, so the command can only stop.
    pub(crate) fn is_used_up(&self) -> bool {
        // The attempts of a handler are numbered over its rounds, each of which has all retries.
        let is_handled = |frame: &HandlerFrame| {
            frame.handled.as_ref().is_some_and(|handled| handled.contains_key(&self.command))
        };
        self.attempts > self.retries && self.repeated().is_none() && !self.frames.iter().any(is_handled)
    }
}

impl StepState {
    /// Moves the cursor past an item.
    pub(super) fn pass(&mut self, item: u32) {
        if self.ahead.contains(&item) {
            return;
        }
        self.cursor = self.cursor.max(item.saturating_add(1));
        self.pass_those_ahead();
    }

    fn pass_those_ahead(&mut self) {
        while self.ahead.remove(&self.cursor) {
            self.cursor = self.cursor.saturating_add(1);
        }
    }
}
