//! Targets on the command line: `JOB`, `JOB/ITEM` or `JOB/ITEM/COMMAND`.
//!
//! An item is named by its identity, by an unambiguous beginning of it, or as `#3` by its position in the
//! input, from 0. Names may contain slashes; the whole rest is tried as an item first.

use undaunted_engine::job::Job;

use crate::exit::Refused;
use undaunted_engine::id::{CommandId, ItemId, StepId};

/// The job, and the rest of what was typed.
pub(crate) fn split(typed: &str) -> (&str, Option<&str>) {
    match typed.split_once('/') {
        Some((job, "")) => (job, None),
        Some((job, rest)) => (job, Some(rest)),
        None => (typed, None),
    }
}

pub(crate) fn item(job: &Job, typed: &str) -> Result<ItemId, Refused> {
    match candidates(job, typed).as_slice() {
        [only] => Ok(*only),
        [] => Err(Refused::NotFound(format!(
            "job {} has no item `{typed}`",
            job.id()
        ))),
        several => {
            let names: Vec<&str> = several.iter().take(5).map(|it| job.identity(*it)).collect();
            Err(Refused::Usage(format!(
                "`{typed}` is the beginning of {} items: {}{}",
                several.len(),
                names.join(", "),
                if several.len() > names.len() {
                    ", …"
                } else {
                    ""
                }
            )))
        }
    }
}

/// An item, and one of its commands if one was typed.
pub(crate) fn item_and_command(
    job: &Job,
    typed: &str,
) -> Result<(ItemId, Option<CommandId>), Refused> {
    let whole = item(job, typed);
    let Some((before, last)) = typed.rsplit_once('/') else {
        return Ok((whole?, None));
    };
    match (whole, item(job, before)) {
        (Ok(found), _) => Ok((found, None)),
        (Err(_), Ok(found)) => match command(job, last) {
            Some(command) => Ok((found, Some(command))),
            None => Err(Refused::NotFound(format!(
                "job {} has no command `{last}`",
                job.id()
            ))),
        },
        (Err(refused), Err(_)) => Err(refused),
    }
}

fn command(job: &Job, id: &str) -> Option<CommandId> {
    let mut commands = job.plan().numbered();
    commands.find_map(|(number, command)| (command.id == id).then_some(number))
}

fn candidates(job: &Job, typed: &str) -> Vec<ItemId> {
    let all = || {
        let steps = StepId::all().zip(&job.steps);
        steps.flat_map(|(step, state)| (0..state.items.len()).map(move |index| step.item(index)))
    };
    if let Some(index) = typed
        .strip_prefix('#')
        .and_then(|it| it.parse::<u32>().ok())
    {
        let map = StepId::all().zip(&job.steps);
        let mut map = map.filter(|(step, _)| job.plan().is_map(*step));
        let found = match map.next() {
            Some((step, state)) => (index < state.items.len()).then_some(step.item(index)),
            None => all().nth(usize::try_from(index).unwrap_or(usize::MAX)),
        };
        return found.into_iter().collect();
    }
    let exact: Vec<_> = all().filter(|it| job.identity(*it) == typed).collect();
    if exact.is_empty() {
        return all()
            .filter(|it| job.identity(*it).starts_with(typed))
            .collect();
    }
    exact
}
