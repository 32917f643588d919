//! Targets on the command line: `JOB`, `JOB/ITEM` or `JOB/ITEM/COMMAND`.
//!
//! An item is named by its identity, a unique prefix of it, or its index in the input from 0 (`#3`). Names may
//! contain slashes: everything after the job is tried as an item first.

use undaunted_engine::id::{CommandId, ItemId};
use undaunted_engine::job::Job;
use undaunted_runner::reader::JobReader;

use crate::exit::CommandError;
use crate::screen::plain;

/// Splits a target into the job and the rest.
pub(crate) fn split(typed: &str) -> (&str, Option<&str>) {
    match typed.split_once('/') {
        Some((job, "")) => (job, None),
        Some((job, rest)) => (job, Some(rest)),
        None => (typed, None),
    }
}

/// Finds an item, and loads its name and value into the job.
pub(crate) fn item(reader: &mut JobReader<'_>, typed: &str) -> Result<ItemId, CommandError> {
    let found = reader.find(typed)?;
    let job = &reader.job;
    match found.as_slice() {
        [only] => Ok(*only),
        [] => Err(CommandError::not_found("no_item", format!("job {} has no item `{typed}`", job.id()))),
        several => {
            let names = several.iter().take(5);
            let names: Vec<String> = names.map(|it| plain(job.identity(*it))).collect();
            Err(CommandError::Usage(format!(
                "`{}` matches {} items: {}{}",
                plain(typed),
                several.len(),
                names.join(", "),
                if several.len() > names.len() { ", …" } else { "" }
            )))
        }
    }
}

/// Finds an item and, if one was typed, its command.
pub(crate) fn item_and_command(
    reader: &mut JobReader<'_>,
    typed: &str,
) -> Result<(ItemId, Option<CommandId>), CommandError> {
    let whole = item(reader, typed);
    let Some((before, last)) = typed.rsplit_once('/') else {
        return Ok((whole?, None));
    };
    let inner = item(reader, before);
    let job = &reader.job;
    match (whole, inner) {
        (Ok(found), _) => Ok((found, None)),
        (Err(_), Ok(found)) => match command(job, last) {
            Some(command) => Ok((found, Some(command))),
            None => Err(CommandError::not_found(
                "no_command",
                format!("job {} has no command `{last}`", job.id()),
            )),
        },
        (Err(refused), Err(_)) => Err(refused),
    }
}

fn command(job: &Job, id: &str) -> Option<CommandId> {
    let mut commands = job.plan().numbered();
    commands.find_map(|(number, command)| (command.id == id).then_some(number))
}
