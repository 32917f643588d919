//! Which flows a client asks for, page by page.
//!
//! Active flows come first, then those that have ended; each group ordered by the time they began or ended,
//! then by id. A cursor is the position of the last flow shown, so that flows that come or go meanwhile
//! shift nothing.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;

use undaunted_engine::catalog::{Catalog, FlowEntry, FlowStatus};
use undaunted_engine::view::{FlowLine, FlowPage};

use crate::answer::HttpRefusal;
use crate::fields::Fields;

/// The most flows on a page, and the default.
const MAX_PAGE: u64 = 1000;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    prefix: String,
    labels: BTreeMap<String, String>,
    statuses: Vec<FlowStatus>,
    limit: Option<usize>,
    after: Option<FlowCursor>,
    newest_first: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FlowCursor {
    ended: bool,
    since: u64,
    flow: String,
}

impl Query {
    pub(crate) fn all() -> Self {
        Self { newest_first: true, ..Self::default() }
    }

    pub(crate) fn read(fields: &Fields) -> Result<Self, HttpRefusal> {
        let prefix = fields.text("id_prefix")?.unwrap_or_default();
        if !prefix.chars().all(is_of_id) {
            return Err(HttpRefusal::bad_request("`id_prefix` contains a character that ids cannot have"));
        }
        let labels = fields.labels("labels")?;
        if labels.iter().any(|(name, it)| name.is_empty() || it.is_empty()) {
            return Err(HttpRefusal::bad_request("`labels` has an empty name or value"));
        }
        let limit = match fields.number("limit")?.unwrap_or_default() {
            0 => MAX_PAGE,
            limit if limit <= MAX_PAGE => limit,
            _ => return Err(HttpRefusal::bad_request(format!("`limit` must be at most {MAX_PAGE}"))),
        };
        let newest_first = match fields.text("sort")?.as_deref() {
            None | Some("" | "recent_asc") => false,
            Some("recent_desc") => true,
            Some(_) => {
                let wrong = "`sort` must be `recent_desc` or `recent_asc`";
                return Err(HttpRefusal::bad_request(wrong));
            }
        };
        let cursor = fields.text("cursor")?.filter(|cursor| !cursor.is_empty());
        let after = cursor.map(|cursor| {
            let position = FlowCursor::read(&cursor);
            position.ok_or_else(|| HttpRefusal::bad_request("`cursor` was not returned by this server"))
        });
        Ok(Self {
            prefix,
            labels,
            statuses: statuses(&fields.texts("statuses")?)?,
            limit: usize::try_from(limit).ok(),
            after: after.transpose()?,
            newest_first,
        })
    }

    pub(crate) fn page(&self, catalog: &Catalog) -> FlowPage {
        let range = (Bound::Included(self.prefix.as_str()), Bound::Unbounded);
        let from = catalog.flows.range::<str, _>(range);
        let of = from.take_while(|(flow, _)| flow.starts_with(&self.prefix));
        let mut found: Vec<(&str, &FlowEntry)> = of
            .filter(|(flow, entry)| self.wants(flow, entry))
            .map(|(flow, entry)| (&**flow, entry))
            .collect();
        found.sort_by(|one, other| self.order(&cursor(*one), &cursor(*other)));
        let total = found.len();
        let later = |flow: &(&str, &FlowEntry)| {
            let after = self.after.as_ref();
            after.is_none_or(|after| self.order(after, &cursor(*flow)) == Ordering::Less)
        };
        let mut rest = found.into_iter().filter(later);
        let page: Vec<_> = rest.by_ref().take(self.limit.unwrap_or(usize::MAX)).collect();
        let more = rest.next().is_some();
        let next = page.last().filter(|_| more);
        FlowPage {
            count: page.len(),
            flows: page.iter().map(|(flow, entry)| FlowLine::of(flow, entry)).collect(),
            total,
            has_more: more.then_some(true),
            next_cursor: next.map(|last| cursor(*last).write()),
        }
    }

    fn wants(&self, flow: &str, entry: &FlowEntry) -> bool {
        let mut labels = self.labels.iter();
        // Flows of steps are listed in the flow they belong to.
        entry.parent.is_none()
            && !flow.contains(':')
            && (self.statuses.is_empty() || self.statuses.contains(&entry.status))
            && labels.all(|(name, value)| entry.labels.get(name) == Some(value))
    }

    fn order(&self, one: &FlowCursor, other: &FlowCursor) -> Ordering {
        let mut by_time = one.since.cmp(&other.since);
        if self.newest_first {
            by_time = by_time.reverse();
        }
        let groups = one.ended.cmp(&other.ended);
        groups.then(by_time).then_with(|| one.flow.cmp(&other.flow))
    }
}

impl FlowCursor {
    fn write(&self) -> String {
        let Self { ended, since, flow } = self;
        format!("{}-{since}-{flow}", u8::from(*ended))
    }

    fn read(cursor: &str) -> Option<Self> {
        let (ended, rest) = cursor.split_once('-')?;
        let (since, flow) = rest.split_once('-')?;
        let ended = match ended {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        Some(Self { ended, since: since.parse().ok()?, flow: flow.to_owned() })
    }
}

fn cursor((flow, entry): (&str, &FlowEntry)) -> FlowCursor {
    FlowCursor {
        ended: entry.status != FlowStatus::Active,
        since: entry.ended.unwrap_or(entry.since).as_nanos(),
        flow: flow.to_owned(),
    }
}

fn statuses(words: &[String]) -> Result<Vec<FlowStatus>, HttpRefusal> {
    let all = [FlowStatus::Active, FlowStatus::Completed, FlowStatus::Failed];
    let status = |word: &String| {
        let found = all.into_iter().find(|status| status.word() == word);
        found.ok_or_else(|| {
            HttpRefusal::bad_request(format!("`statuses` contains `{word}`; use active, completed or failed"))
        })
    };
    words.iter().map(status).collect()
}

pub(crate) const fn is_of_id(found: char) -> bool {
    found.is_ascii_alphanumeric() || matches!(found, '_' | '.' | '-' | '+')
}

#[cfg(test)]
mod tests;
