//! Timelines: the attempts and holds of a few items.

use std::collections::BTreeMap;

use serde::Serialize;

use super::attempt::{AttemptView, attempt};
use super::context::steps;
use super::history::History;
use super::time::InstantView;
use crate::id::ItemId;
use crate::job::{ItemState, Job, SettledItem};

const DRAWN: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineView {
    pub item: String,
    pub index: u32,
    /// When the item was settled.
    pub ended_at: Option<InstantView>,
    pub attempts: Vec<AttemptView>,
    pub holds: Vec<TimelineHold>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineHold {
    pub breaker: String,
    pub at: InstantView,
    pub released_at: Option<InstantView>,
}

/// The items that have timelines: dead letters first, then unsettled items, then others; in input order.
pub fn worth_drawing(job: &Job) -> Vec<ItemId> {
    let kind = |wanted: fn(&ItemState<'_>) -> bool| {
        steps(job).flat_map(move |(step, state)| {
            let items = state.items.iter();
            let items = items.filter(move |(_, item)| wanted(item));
            items.map(move |(index, _)| step.item(index))
        })
    };
    let dead = job.dead.keys().copied();
    let active = kind(|item| matches!(item, ItemState::Active(_)));
    let settled = kind(|item| {
        matches!(
            item,
            ItemState::Settled(SettledItem::Succeeded | SettledItem::Skipped(_) | SettledItem::Missing(_))
        )
    });
    let all = dead.take(DRAWN / 2).chain(active.take(DRAWN / 2));
    let mut chosen: Vec<_> = all.chain(settled).take(DRAWN).collect();
    chosen.sort_unstable();
    chosen
}

impl TimelineView {
    pub(super) fn of(job: &Job, histories: &BTreeMap<ItemId, History>) -> Vec<Self> {
        let items = histories.iter();
        let views = items.map(|(item, history)| Self {
            item: job.identity(*item).to_owned(),
            index: item.index,
            ended_at: history.end.as_ref().map(|end| InstantView(end.at)),
            attempts: history.attempts.iter().map(|it| attempt(job, it)).collect(),
            holds: history
                .holds
                .iter()
                .map(|hold| TimelineHold {
                    breaker: job.texts.read(&hold.held.breaker).to_owned(),
                    at: InstantView(hold.at),
                    released_at: hold.released.map(|(at, _)| InstantView(at)),
                })
                .collect(),
        });
        views.collect()
    }
}
