//! Targets on the command line: `JOB`, `JOB/ITEM` or `JOB/ITEM/COMMAND`.
//!
//! An item is named by its identity, by an unambiguous beginning of it, or as `#3` by its position in the
//! input, from 0. Names may contain slashes; the whole rest is tried as an item first.

use undaunted_engine::id::{CommandId, ItemId};
use undaunted_engine::job::Job;
use undaunted_runner::reader::JobReader;

use crate::exit::CommandError;
use crate::screen::plain;

/// The job, and the rest of what was typed.
pub(crate) fn split(typed: &str) -> (&str, Option<&str>) {
    match typed.split_once('/') {
        Some((job, "")) => (job, None),
        Some((job, rest)) => (job, Some(rest)),
        None => (typed, None),
    }
}

/// Its name and value are known to the job afterwards.
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
                "`{}` is the beginning of {} items: {}{}",
                plain(typed),
                several.len(),
                names.join(", "),
                if several.len() > names.len() { ", …" } else { "" }
            )))
        }
    }
}

/// An item, and one of its commands if one was typed.
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
