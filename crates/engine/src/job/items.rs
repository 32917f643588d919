//! The items of a step: names and values in one buffer, states in another.
//!
//! There may be a million, so an item that never started takes one word, and so does one that is settled.

use std::fmt;

use super::inputs::ItemInputs;
use super::item::{ActiveItem, ItemState, SettledItem};
use crate::event::NewItem;

#[derive(Clone, Default)]
pub struct Items {
    pub(super) inputs: ItemInputs,
    states: Vec<StoredItemState>,
    /// Items that were started and are not settled, by slot.
    active: Vec<Option<ActiveItem>>,
    /// Unused slots of `active`.
    free: Vec<u32>,
}

impl fmt::Debug for Items {
    /// Slots say nothing about the items.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.iter().map(|(item, state)| (self.identity(item), self.input(item), state));
        f.debug_list().entries(items).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredItemState {
    Pending,
    Active(u32),
    Settled(SettledItem),
}

impl Items {
    pub(super) fn of(inputs: ItemInputs, count: usize) -> Self {
        Self { inputs, states: vec![StoredItemState::Pending; count], ..Self::default() }
    }

    pub(crate) fn push(&mut self, new: &NewItem) {
        self.inputs.push(&new.identity, &new.input);
        self.states.push(StoredItemState::Pending);
    }

    /// Whether names and values were left out when the job was saved.
    pub fn are_left_out(&self) -> bool {
        self.inputs.are_left_out()
    }

    /// Whether the name and value of an item are in memory.
    pub fn knows(&self, item: u32) -> bool {
        self.inputs.get(index(item)).is_some()
    }

    /// The items whose names and values are in memory.
    pub fn known(&self) -> impl Iterator<Item = u32> {
        let learned = self.inputs.learned();
        let all = (0..self.len()).filter(|_| !self.are_left_out());
        learned.filter_map(|item| u32::try_from(item).ok()).chain(all)
    }

    /// Adds the name and value of an item that was left out.
    pub fn learn(&mut self, item: u32, identity: &str, input: &str) {
        self.inputs.learn(index(item), identity, input);
    }

    /// Removes the names and values added by [`Self::learn`].
    pub fn forget(&mut self) {
        self.inputs.forget();
    }

    pub fn len(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    pub fn get(&self, item: u32) -> Option<ItemState<'_>> {
        self.states.get(index(item)).map(|state| self.read(*state))
    }

    pub fn active(&self, item: u32) -> Option<&ActiveItem> {
        match self.get(item)? {
            ItemState::Active(active) => Some(active),
            ItemState::Pending | ItemState::Settled(_) => None,
        }
    }

    pub(crate) fn active_mut(&mut self, item: u32) -> Option<&mut ActiveItem> {
        match self.states.get(index(item))? {
            StoredItemState::Active(slot) => self.active.get_mut(index(*slot))?.as_mut(),
            StoredItemState::Pending | StoredItemState::Settled(_) => None,
        }
    }

    /// Activates an item from any state.
    pub(crate) fn begin(&mut self, item: u32, active: ActiveItem) {
        self.put(item, StoredItemState::Pending);
        let slot = self.free.pop().unwrap_or_else(|| {
            let last = u32::try_from(self.active.len()).unwrap_or(u32::MAX);
            self.active.push(None);
            last
        });
        if let Some(free) = self.active.get_mut(index(slot)) {
            *free = Some(active);
        }
        self.put(item, StoredItemState::Active(slot));
    }

    pub(crate) fn settle(&mut self, item: u32, settled: SettledItem) {
        self.put(item, StoredItemState::Settled(settled));
    }

    pub(crate) fn put_back(&mut self, item: u32) {
        self.put(item, StoredItemState::Pending);
    }

    fn put(&mut self, item: u32, state: StoredItemState) {
        let Some(found) = self.states.get_mut(index(item)) else { return };
        if let StoredItemState::Active(slot) = std::mem::replace(found, state) {
            if let Some(freed) = self.active.get_mut(index(slot)) {
                *freed = None;
            }
            self.free.push(slot);
        }
    }

    /// Its name, and its value as JSON.
    pub(crate) fn texts(&self, item: u32) -> Option<(&str, &str)> {
        self.inputs.get(index(item))
    }

    pub fn identity(&self, item: u32) -> &str {
        self.inputs.get(index(item)).unwrap_or_default().0
    }

    /// As JSON.
    pub fn input(&self, item: u32) -> &str {
        self.inputs.get(index(item)).unwrap_or_default().1
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, ItemState<'_>)> {
        (0_u32..).zip(self.states.iter().map(|state| self.read(*state)))
    }

    pub(crate) fn each_active(&mut self, mut each: impl FnMut(u32, &mut ActiveItem)) {
        for (item, state) in (0_u32..).zip(&self.states) {
            if let StoredItemState::Active(slot) = state
                && let Some(Some(active)) = self.active.get_mut(index(*slot))
            {
                each(item, active);
            }
        }
    }

    fn read(&self, state: StoredItemState) -> ItemState<'_> {
        match state {
            StoredItemState::Pending => ItemState::Pending,
            StoredItemState::Settled(settled) => ItemState::Settled(settled),
            StoredItemState::Active(slot) => match self.active.get(index(slot)) {
                Some(Some(active)) => ItemState::Active(active),
                // The slot of an active item is never empty.
                _ => ItemState::Pending,
            },
        }
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::{ActiveItem, StoredItemState};

    #[test]
    fn a_waiting_item_costs_few_bytes() {
        assert_eq!(size_of::<StoredItemState>(), 8);
        assert_eq!(size_of::<Option<ActiveItem>>(), 56);
    }
}
