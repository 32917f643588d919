//! The items of a map, from a file or from the output of a command.
//!
//! A command that produces items is run like any other program; only its end is used differently.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use undaunted_engine::decide::describe_cause;
use undaunted_engine::event::{NewItem, TimeLimit};
use undaunted_engine::id::StepId;
use undaunted_engine::input::{AttemptEnd, Input};
use undaunted_engine::workflow::Map;
use undaunted_engine::workflow::input::{SelectedItems, read};
use undaunted_policy::{FailureCause, Reason};

use super::{ExecutorMessage, InputItems, ReadItems};
use crate::JobContext;

#[derive(Default)]
pub(crate) struct InputReads {
    reading: BTreeSet<StepId>,
}

impl InputReads {
    /// False if the items are being read already.
    pub(crate) fn begin(&mut self, step: StepId) -> bool {
        self.reading.insert(step)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.reading.is_empty()
    }

    pub(crate) fn forget(&mut self, step: StepId) {
        self.reading.remove(&step);
    }
}

/// Reads the items of a map from a file, outside the loop. Reading it twice is harmless.
pub(crate) fn read_file(step: StepId, map: Map, path: String, context: &JobContext<'_>) {
    let notifier = context.notifier.clone();
    let machine = Arc::clone(&context.services.machine);
    context.services.machine.run_in_background(Box::new(move || {
        let items = items_of_file(&map, &path, |path| machine.read(path));
        notifier.send(ExecutorMessage::Items { step, items });
    }));
}

/// The items that a map reads from a file.
pub fn items_of_file(map: &Map, path: &str, read: impl FnOnce(&Path) -> io::Result<Vec<u8>>) -> ReadItems {
    let name = format!("`{path}`");
    match read(Path::new(path)) {
        Ok(bytes) => items_of(map, &name, &bytes),
        Err(error) => Err(format!("cannot read the input {name}: {error}")),
    }
}

/// The engine's input after the end of a command that produces items.
pub(crate) fn of_command(step: StepId, map: &Map, end: &AttemptEnd, limit: Option<TimeLimit>) -> Input {
    let Some(cause) = end.failure else {
        let output = end.output.as_deref().unwrap_or_default();
        return of_items(step, items_of(map, "from the command", output.as_bytes()));
    };
    let reason = match (describe_cause(cause, limit), end.error.as_str()) {
        (cause, "") => cause,
        (cause, error) => format!("{cause}: {error}"),
    };
    Input::InputFailed {
        step,
        reason: match cause {
            FailureCause::Interrupted if limit.is_some() => Reason::Deadline,
            FailureCause::Interrupted => Reason::Interrupted,
            _ => Reason::Attempts,
        },
        error: format!("the input command failed: {reason}"),
        stderr: end.stderr,
    }
}

pub(crate) fn of_items(step: StepId, items: ReadItems) -> Input {
    match items {
        Ok(InputItems { items, warning }) => Input::ItemsRead { step, items, warning },
        Err(error) => Input::InputFailed { step, reason: Reason::Permanent, error, stderr: None },
    }
}

fn items_of(map: &Map, name: &str, bytes: &[u8]) -> ReadItems {
    let wrong = |error: undaunted_engine::workflow::input::InputError| {
        let help = error.help.as_ref().map(|help| format!(" ({help})"));
        format!("cannot use the input {name}: {error}{}", help.unwrap_or_default())
    };
    let document = read(bytes, map.input.format).map_err(wrong)?;
    let SelectedItems { items, unmatched } = map.selection.select(document).map_err(wrong)?;
    if u32::try_from(items.len()).is_err() {
        return Err(format!("the input {name} has too many items: {}", items.len()));
    }
    let items =
        items.into_iter().map(|item| NewItem { identity: item.identity, input: item.input.to_string() });
    let path = map.selection.json_path.as_ref().filter(|_| unmatched);
    let warning =
        path.map(|path| format!("`json_path: {}` matches nothing in the input {name}", path.as_str().trim()));
    Ok(InputItems { items: items.collect(), warning })
}
