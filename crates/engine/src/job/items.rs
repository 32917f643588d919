//! The items of a step: their names and values in one piece of memory, their states in another.
//!
//! There may be a million of them, so what an item does not need it does not have: one that was
//! never started is one word, and so is one that is settled.

use std::fmt;

use super::inputs::Inputs;
use super::item::{Active, Item, Settled};
use crate::event::NewItem;

/// The items of a step, in input order.
#[derive(Clone, Default)]
pub struct Items {
    pub(super) inputs: Inputs,
    states: Vec<State>,
    /// Those that were started and are not settled, each in a place of its own.
    active: Vec<Option<Active>>,
    /// Places among those that nobody has.
    free: Vec<u32>,
}

impl fmt::Debug for Items {
    /// Who is where among those that are active says nothing about them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.iter();
        let items = items.map(|(item, state)| (self.identity(item), self.input(item), state));
        f.debug_list().entries(items).finish()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    /// Where it is among those.
    Active(u32),
    Settled(Settled),
}

impl Items {
    /// As many as there are names and values, none of them started.
    pub(super) fn of(inputs: Inputs, many: usize) -> Self {
        Self {
            inputs,
            states: vec![State::Pending; many],
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, new: &NewItem) {
        self.inputs.push(&new.identity, &new.input);
        self.states.push(State::Pending);
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The state of an item.
    pub fn get(&self, item: u32) -> Option<Item<'_>> {
        self.states.get(index(item)).map(|state| self.read(*state))
    }

    /// An item that was started and is not settled.
    pub fn active(&self, item: u32) -> Option<&Active> {
        match self.get(item)? {
            Item::Active(active) => Some(active),
            Item::Pending | Item::Settled(_) => None,
        }
    }

    pub(crate) fn active_mut(&mut self, item: u32) -> Option<&mut Active> {
        match self.states.get(index(item))? {
            State::Active(place) => self.active.get_mut(index(*place))?.as_mut(),
            State::Pending | State::Settled(_) => None,
        }
    }

    /// An item goes on, from wherever it was.
    pub(crate) fn begin(&mut self, item: u32, active: Active) {
        self.put(item, State::Pending);
        let place = self.free.pop().unwrap_or_else(|| {
            let last = u32::try_from(self.active.len()).unwrap_or(u32::MAX);
            self.active.push(None);
            last
        });
        if let Some(free) = self.active.get_mut(index(place)) {
            *free = Some(active);
        }
        self.put(item, State::Active(place));
    }

    /// Nothing more happens to an item.
    pub(crate) fn settle(&mut self, item: u32, settled: Settled) {
        self.put(item, State::Settled(settled));
    }

    /// An item is as if it had never been started.
    pub(crate) fn put_back(&mut self, item: u32) {
        self.put(item, State::Pending);
    }

    fn put(&mut self, item: u32, state: State) {
        let Some(found) = self.states.get_mut(index(item)) else {
            return;
        };
        if let State::Active(place) = std::mem::replace(found, state) {
            if let Some(left) = self.active.get_mut(index(place)) {
                *left = None;
            }
            self.free.push(place);
        }
    }

    /// What an item is called.
    pub fn identity(&self, item: u32) -> &str {
        self.inputs.get(index(item)).unwrap_or_default().0
    }

    /// The value of an item, as JSON.
    pub fn input(&self, item: u32) -> &str {
        self.inputs.get(index(item)).unwrap_or_default().1
    }

    /// Every item with its place.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Item<'_>)> {
        (0_u32..).zip(self.states.iter().map(|state| self.read(*state)))
    }

    /// Does something to all that were started and are not settled.
    pub(crate) fn each_active(&mut self, mut each: impl FnMut(u32, &mut Active)) {
        for (item, state) in (0_u32..).zip(&self.states) {
            if let State::Active(place) = state
                && let Some(Some(active)) = self.active.get_mut(index(*place))
            {
                each(item, active);
            }
        }
    }

    fn read(&self, state: State) -> Item<'_> {
        match state {
            State::Pending => Item::Pending,
            State::Settled(settled) => Item::Settled(settled),
            State::Active(place) => match self.active.get(index(place)) {
                Some(Some(active)) => Item::Active(active),
                // Whoever has a place there is there.
                _ => Item::Pending,
            },
        }
    }
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Active, State};

    #[test]
    fn a_waiting_item_costs_few_bytes() {
        assert_eq!(size_of::<State>(), 8);
        assert_eq!(size_of::<Option<Active>>(), 56);
    }
}
