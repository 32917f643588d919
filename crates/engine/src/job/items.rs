//! The items of a step: their names and values in one piece of memory, their states in another.
//!
//! There may be a million of them, so what an item does not need it does not have: one that was
//! never started is two words, and so is one that is settled.

use super::item::Item;
use crate::event::NewItem;

/// The items of a step, in input order.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// Identity and value of every item, one behind the other.
    texts: String,
    /// Where identity and value of each end.
    ends: Vec<[usize; 2]>,
    states: Vec<Item>,
}

impl Items {
    pub(crate) fn push(&mut self, new: &NewItem) {
        self.texts.push_str(&new.identity);
        let identity = self.texts.len();
        self.texts.push_str(&new.input);
        self.ends.push([identity, self.texts.len()]);
        self.states.push(Item::Pending);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// The state of an item.
    #[must_use]
    pub fn get(&self, item: u32) -> Option<&Item> {
        self.states.get(usize::try_from(item).ok()?)
    }

    pub(crate) fn get_mut(&mut self, item: u32) -> Option<&mut Item> {
        self.states.get_mut(usize::try_from(item).ok()?)
    }

    /// What an item is called.
    #[must_use]
    pub fn identity(&self, item: u32) -> &str {
        self.texts_of(item).0
    }

    /// The value of an item, as JSON.
    #[must_use]
    pub fn input(&self, item: u32) -> &str {
        self.texts_of(item).1
    }

    /// Every item with its place.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Item)> {
        (0_u32..).zip(&self.states)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Item)> {
        (0_u32..).zip(&mut self.states)
    }

    fn texts_of(&self, item: u32) -> (&str, &str) {
        let at = usize::try_from(item).unwrap_or(usize::MAX);
        let begin = match at.checked_sub(1) {
            Some(before) => self.ends.get(before).map_or(0, |[_, end]| *end),
            None => 0,
        };
        let [middle, end] = self.ends.get(at).copied().unwrap_or([begin, begin]);
        let piece = |range| self.texts.get(range).unwrap_or_default();
        (piece(begin..middle), piece(middle..end))
    }
}
