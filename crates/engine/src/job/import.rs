//! Attempts and delays that were used up before the job was submitted.
//!
//! They are kept beside the items until an item reaches the command they belong to, because the items of a
//! map are not known before they are read. An item whose first command was tried before is started at once,
//! so that its retry keeps its time even if items before it have not started.

use undaunted_policy::RetryProgress;

use super::item::{ActiveItem, Activity, ItemState};
use super::state::Job;
use super::step::StepState;
use crate::event::ImportedCommand;
use crate::id::{CommandId, ItemId, StepId};

impl Job {
    pub(super) fn import(&mut self, commands: &[ImportedCommand]) {
        for command in commands {
            let key = (command.command, command.item.clone());
            self.imported.insert(key, command.clone());
        }
    }

    /// Starts those items from `from` on whose first command was tried before.
    pub(super) fn start_imported(&mut self, step: StepId, from: u32) {
        let first = self.plan().first(step);
        let Some(first) = first.filter(|_| !self.imported.is_empty()) else { return };
        let count = self.step(step).map_or(0, |state| state.items.len());
        for index in from..count {
            let item = step.item(index);
            let Some(found) = self.take_imported(item, first) else { continue };
            let due = found.due.unwrap_or_default();
            let mut active = ActiveItem::new(first, due);
            active.use_import(&found);
            if let Some(state) = self.step_mut(step)
                && state.items.get(index) == Some(ItemState::Pending)
            {
                state.items.begin(index, active);
                state.waiting.insert(due, index);
                state.ahead.insert(index);
                state.pass_those_ahead();
            }
        }
    }

    /// Moves an item to its next command. Without one, a later event settles the item.
    pub(super) fn turn_to_next(&mut self, item: ItemId, next: Option<CommandId>) {
        if let Some(next) = next {
            let known = self.take_imported(item, next);
            if let Some(active) = self.active_mut(item) {
                active.turn_to(next);
            }
            let due = known.as_ref().and_then(|known| known.due);
            self.wait(item, due.unwrap_or_default());
            if let (Some(active), Some(known)) = (self.active_mut(item), known) {
                active.use_import(&known);
            }
        }
    }

    pub(super) fn take_imported(&mut self, item: ItemId, command: CommandId) -> Option<ImportedCommand> {
        if self.imported.is_empty() {
            return None;
        }
        let identity = self.identity(item).to_owned();
        self.imported.remove(&(command, identity))
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
        self.attempts > self.retries && self.repeated().is_none()
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
