//! Results that come later: those that were taken, and what the journal says of them.

use super::case::{Case, SLACK};
use crate::kill::found::{Found, Kind};
use crate::kill::journal::Event;
use crate::kill::plan::Means;
use crate::kill::step_server::Posted;

pub(super) fn check(case: &Case<'_>, found: &mut Found) {
    let mine = case.posted.iter().filter(|post| {
        let mut events = case.events.iter();
        events.any(|it| is_of(post, it))
    });
    for post in mine {
        found.claim(Kind::Lost, post.refused.is_none(), || format!("a result was refused: {post:?}"));
        if let Some(taken) = post.taken
            && !is_on_record(case, post)
            && !is_over(case, post, taken)
        {
            found.lost(format!("a result was answered 200 and is not on record: {post:?}"));
        }
    }
    for event in case.events.iter().filter(|it| it.is("attempt_succeeded")) {
        let drawn = case.plan.commands.get(event.text("command"));
        if drawn.is_some_and(|it| it.means == Means::Later) {
            let until = event.at.saturating_add(SLACK);
            let mut posted = case.posted.iter();
            let told = posted.any(|post| is_of(post, event) && post.first <= until);
            found.claim(Kind::Lost, told, || format!("nobody sent this result: {}", event.told()));
        }
    }
}

fn is_of(post: &Posted, event: &Event) -> bool {
    let (correlation, command) = event.place();
    correlation == post.correlation && command == post.command
}

fn is_on_record(case: &Case<'_>, post: &Posted) -> bool {
    let mut events = case.events.iter();
    events.any(|it| it.is("attempt_succeeded") && is_of(post, it))
}

/// Whether the item had ended without it. What comes after that changes nothing, and whoever sent it need
/// not send it again (decision 0011).
fn is_over(case: &Case<'_>, post: &Posted, taken: u64) -> bool {
    case.events.iter().any(|it| {
        let gave_up = it.is("item_dead_lettered") || it.is("item_skipped");
        gave_up && it.text("correlation_id") == post.correlation && it.at <= taken
    })
}
