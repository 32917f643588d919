//! The items of a map: from a file, or from what a command has written.
//!
//! A command that gives items is a program like any other; only what its end means is different.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use undaunted_engine::decide::cause_in_words;
use undaunted_engine::event::NewItem;
use undaunted_engine::id::StepId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::workflow::Map;
use undaunted_engine::workflow::input::read;
use undaunted_policy::{Cause, Reason};

use super::message::{ExecutorMessage, ReadItems};
use crate::drive::JobContext;

/// The maps whose items are being read.
#[derive(Default)]
pub(crate) struct Inputs {
    reading: BTreeSet<StepId>,
}

impl Inputs {
    /// Whether the items of a map are to be read: not if they are being read already.
    pub(crate) fn begin(&mut self, step: StepId) -> bool {
        self.reading.insert(step)
    }

    /// Whether none are being read.
    pub(crate) fn is_empty(&self) -> bool {
        self.reading.is_empty()
    }

    /// The items of a map are not being read any more.
    pub(crate) fn forget(&mut self, step: StepId) {
        self.reading.remove(&step);
    }
}

/// Reads the items of a map from a file, beside the loop. Reading it twice comes to the same.
pub(crate) fn read_file(step: StepId, map: Map, path: String, context: &JobContext<'_>) {
    let notifier = context.notifier.clone();
    let machine = Arc::clone(&context.world.machine);
    context.world.machine.aside(Box::new(move || {
        let name = format!("`{path}`");
        let items = match machine.read(Path::new(&path)) {
            Ok(bytes) => items_of(&map, &name, &bytes),
            Err(error) => Err(format!("the input {name} cannot be read: {error}")),
        };
        notifier.send(ExecutorMessage::Items { step, items });
    }));
}

/// What the end of a command means that gives the items of a map.
pub(crate) fn of_command(step: StepId, map: &Map, end: &AttemptEnd) -> Input {
    let Some(cause) = end.failure else {
        let output = end.output.as_deref().unwrap_or_default();
        return of_items(step, items_of(map, "from the command", output.as_bytes()));
    };
    let said = match (cause_in_words(cause), end.error.as_str()) {
        (cause, "") => cause,
        (cause, said) => format!("{cause}: {said}"),
    };
    Input::InputFailed {
        step,
        reason: match cause {
            Cause::Interrupted => Reason::Interrupted,
            _ => Reason::Attempts,
        },
        error: format!("the command that gives the items failed: {said}"),
        stderr: end.stderr,
    }
}

/// What is decided about items that were read, or could not be.
pub(crate) fn of_items(step: StepId, items: ReadItems) -> Input {
    match items {
        Ok(items) => Input::ItemsRead { step, items },
        Err(error) => Input::InputFailed {
            step,
            reason: Reason::Permanent,
            error,
            stderr: None,
        },
    }
}

/// Reads, selects and names the items of a map.
fn items_of(map: &Map, name: &str, bytes: &[u8]) -> ReadItems {
    let wrong = |error: undaunted_engine::workflow::input::InputError| {
        let help = error.help.as_ref().map(|help| format!(" ({help})"));
        format!(
            "the input {name} cannot be used: {error}{}",
            help.unwrap_or_default()
        )
    };
    let document = read(bytes, map.input.format).map_err(wrong)?;
    let items = map.selection.select(document).map_err(wrong)?;
    if u32::try_from(items.len()).is_err() {
        return Err(format!(
            "the input {name} has {} items, too many",
            items.len()
        ));
    }
    let items = items.into_iter().map(|item| NewItem {
        identity: item.identity,
        input: item.input.to_string(),
    });
    Ok(items.collect())
}
