//! Items held by breakers, and their release.

use std::cmp::Reverse;
use std::time::Duration;

use super::breaker::ModelBreaker;
use super::run::{ItemPlace, ModelRun};
use super::state::{ModelItemPart, ModelItemState};

impl ModelRun<'_> {
    /// The breaker that the next start of an item asks.
    pub(super) fn breaker_of(&self, place: ItemPlace) -> Option<(String, &ModelBreaker)> {
        let name = self.work(place)?.breaker.clone()?;
        let breaker = self.breakers.get(&name)?;
        Some((name, breaker))
    }

    /// Whether an item waits for the next probe of a breaker: held, or never started because of it.
    fn waits_for(&self, place: ItemPlace, name: &str) -> bool {
        let item = self.item(place);
        // The origin of a request is known when it is about to be sent.
        let knows = |breaker: &ModelBreaker| breaker.settings.place.is_none();
        let breaker = self.breaker_of(place);
        let asks = breaker.is_some_and(|(of, breaker)| of == name && knows(breaker));
        let begins = self.steps[place.0].takes_more();
        match &item.state {
            ModelItemState::Held { breaker, .. } => breaker == name,
            ModelItemState::New => begins && asks,
            ModelItemState::Ready { .. } | ModelItemState::Running(_) | ModelItemState::Settled(_) => false,
        }
    }

    pub(super) fn has_waiting_items(&self, name: &str) -> bool {
        let mut places = self.places().into_iter();
        places.any(|place| self.waits_for(place, name))
    }

    /// Starts one probe: the item with the most attempts left, the first of several. If that item has never
    /// started, it comes after due retries.
    pub(super) fn probe(&mut self) -> bool {
        let breakers = self.breakers.iter();
        let looking = breakers.filter(|(_, breaker)| breaker.may_probe(self.now) && !breaker.settings.fails);
        let looking: Vec<String> = looking.map(|(name, _)| name.clone()).collect();
        for name in looking {
            let best = self.next_probe(self.places(), &name);
            if let Some(place) = best
                && self.is_held(place)
            {
                self.give_up_on_ambiguous_probe(place, &name);
                self.release(place);
                self.start(place);
                return true;
            }
        }
        false
    }

    fn is_held(&self, place: ItemPlace) -> bool {
        matches!(self.item(place).state, ModelItemState::Held { .. })
    }

    /// The item that probes: of those that wait for the breaker and have a slot, the one with the most
    /// attempts left.
    fn next_probe(&self, places: Vec<ItemPlace>, name: &str) -> Option<ItemPlace> {
        let may_start = |it: &ItemPlace| self.has_room(it.0) && self.waits_for(*it, name);
        let waiting = places.into_iter().filter(may_start);
        waiting.max_by_key(|place| (self.attempts_left(*place), Reverse(*place)))
    }

    /// The order of steps is unspecified: an item of another step with as many attempts left could probe as
    /// well.
    pub(super) fn give_up_on_ambiguous_probe(&mut self, place: ItemPlace, name: &str) {
        let left = self.attempts_left(place);
        let mut others = self.places().into_iter().filter(|it| it.0 != place.0);
        let may_start = |it: &ItemPlace| match &self.item(*it).state {
            ModelItemState::Held { .. } => true,
            ModelItemState::New => self.steps[it.0].takes_more(),
            ModelItemState::Ready { since } => *since <= self.now,
            _ => false,
        };
        let asks = |it: ItemPlace| self.breaker_of(it).is_some_and(|(of, _)| of == name);
        if others.any(|it| may_start(&it) && asks(it) && self.attempts_left(it) >= left) {
            self.give_up("which of two steps finds out whether a target is back");
        }
    }

    /// Whether an item that asks a breaker now is the one to probe.
    pub(super) fn is_next_probe(&self, place: ItemPlace, name: &str) -> bool {
        let others = self.places().into_iter().filter(|it| *it != place);
        let best = self.next_probe(others.collect(), name);
        let rank = |place: ItemPlace| (self.attempts_left(place), Reverse(place));
        best.is_none_or(|best| rank(place) > rank(best))
    }

    /// Starts an item that was observed to be released now. Whether that comes before a probe of another
    /// breaker is unspecified.
    pub(super) fn start_released(&mut self) -> bool {
        if self.choices.fixed_percent.is_some() {
            return false;
        }
        let mut places = self.places().into_iter();
        let goes = |it: &ItemPlace| self.release_of(*it) == Some(self.now) && self.has_room(it.0);
        let Some(place) = places.find(goes) else {
            return false;
        };
        self.release(place);
        self.start(place);
        true
    }

    /// Ends holds that have lasted too long; whether there was one.
    pub(super) fn expire_holds(&mut self) -> bool {
        let places = self.places().into_iter();
        let over = |place: &ItemPlace| self.hold_expires(*place).is_some_and(|at| at <= self.now);
        let over: Vec<ItemPlace> = places.filter(over).collect();
        let Some(place) = over.first() else {
            return false;
        };
        self.hold_expired(*place);
        if over.len() > 1 && self.is_stopping(place.0) {
            self.give_up("several holds end at once, and the first of them is one too many");
        }
        true
    }

    /// Unlimited attempts are more than any number.
    fn attempts_left(&self, place: ItemPlace) -> u64 {
        let most = self.work(place).and_then(|work| work.terms.most_retries());
        let item = self.item(place);
        let made = match item.part {
            ModelItemPart::Command => item.main.attempts,
            ModelItemPart::Handler(_) | ModelItemPart::After(_) => item.below.attempts,
        };
        let left = most.map(|it| u64::from(it.saturating_add(1).saturating_sub(made)));
        left.unwrap_or(u64::MAX)
    }

    pub(super) fn has_room(&self, step: usize) -> bool {
        let (state, plan) = self.step(step);
        state.running() < plan.width
    }

    pub(super) fn hold(&mut self, place: ItemPlace, breaker: String) -> bool {
        let since = self.now;
        let item = self.item_mut(place);
        item.state = ModelItemState::Held { since, breaker };
        true
    }

    /// Of items that never started, no more are held than could run, unless their hold is limited.
    pub(super) fn may_hold_another(&self, step: usize, breaker: &str) -> bool {
        let settings = self.breakers.get(breaker).map(|it| &it.settings);
        let limited = settings.is_some_and(|it| it.max_hold.is_some());
        // The origin of a request is known when it is about to be sent, so each item asks.
        if limited || settings.is_some_and(|it| it.place.is_some()) {
            return true;
        }
        let (state, plan) = self.step(step);
        let mut held = state.items.iter();
        let held = held.by_ref().filter(|it| matches!(it.state, ModelItemState::Held { .. }));
        held.count() < plan.width
    }

    /// When the hold of an item ends with a failure.
    pub(super) fn hold_expires(&self, place: ItemPlace) -> Option<Duration> {
        let item = self.item(place);
        let ModelItemState::Held { since, breaker } = &item.state else {
            return None;
        };
        let longest = self.breakers.get(breaker)?.settings.max_hold;
        let held = longest.map(|longest| since.saturating_add(longest));
        let deadline = item.began.and_then(|_| self.own_deadline(place));
        held.into_iter().chain(deadline).min()
    }

    fn hold_expired(&mut self, place: ItemPlace) {
        let began = self.item(place).began;
        let deadline = began.and_then(|_| self.own_deadline(place));
        let reason = if deadline.is_some_and(|at| at <= self.now) { "deadline" } else { "circuit_open" };
        self.start_refused(place, reason);
    }

    /// When a held item is released because its breaker has closed.
    pub(super) fn release_of(&self, place: ItemPlace) -> Option<Duration> {
        let item = self.item(place);
        let ModelItemState::Held { breaker, since } = &item.state else {
            return None;
        };
        let breaker = self.breakers.get(breaker)?;
        if !breaker.is_closed() {
            return None;
        }
        let closed = breaker.closed_at.unwrap_or(*since).max(*since);
        if let Some(fixed_percent) = self.choices.fixed_percent {
            let tenth = breaker.settings.recovery.checked_div(10)?;
            let window = tenth.min(Duration::from_secs(5));
            let offset = window.saturating_mul(fixed_percent).checked_div(100)?;
            return Some(closed.saturating_add(offset));
        }
        let done = self.released.get(&item.name).copied().unwrap_or_default();
        let all = self.choices.releases.get(&item.name)?;
        all.get(done).copied().map(|at| at.max(closed))
    }

    pub(super) fn release(&mut self, place: ItemPlace) {
        let item = self.item(place);
        if matches!(item.state, ModelItemState::Held { .. }) {
            let name = item.name.clone();
            *self.released.entry(name).or_default() += 1;
        }
    }
}
