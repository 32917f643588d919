//! What is named on the command line: `JOB`, `JOB/ITEM` or `JOB/ITEM/COMMAND`.
//!
//! An item is named as it is called, by the beginning of that if no other begins so, or as `#3`, by
//! its place in the input counted from 0. Names may hold slashes; the whole rest is tried first.

use undaunted_engine::job::Job;

use crate::exit::Refused;

/// An item, by its step and its place in the input.
pub(crate) type ItemPlace = (u32, u32);

/// A job, and the rest of what was typed.
pub(crate) fn split(typed: &str) -> (&str, Option<&str>) {
    match typed.split_once('/') {
        Some((job, "")) => (job, None),
        Some((job, rest)) => (job, Some(rest)),
        None => (typed, None),
    }
}

/// The item that was meant.
pub(crate) fn item(job: &Job, typed: &str) -> Result<ItemPlace, Refused> {
    match candidates(job, typed).as_slice() {
        [only] => Ok(*only),
        [] => Err(Refused::NotFound(format!(
            "job {} has no item `{typed}`",
            job.id()
        ))),
        several => {
            let names: Vec<&str> = several.iter().take(5).map(|it| name(job, *it)).collect();
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

/// The item that was meant, and one of its commands if that was said too.
pub(crate) fn item_and_command(
    job: &Job,
    typed: &str,
) -> Result<(ItemPlace, Option<u32>), Refused> {
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

/// What an item is called.
pub(crate) fn name(job: &Job, (step, item): ItemPlace) -> &str {
    job.step(step)
        .map(|state| state.items.identity(item))
        .unwrap_or_default()
}

fn command(job: &Job, id: &str) -> Option<u32> {
    let mut numbers = 0_u32..;
    loop {
        let number = numbers.next()?;
        let command = job.plan().command(number)?;
        if command.id == id {
            return Some(number);
        }
    }
}

fn candidates(job: &Job, typed: &str) -> Vec<ItemPlace> {
    let all = || {
        let steps = (0_u32..).zip(&job.steps);
        steps.flat_map(|(step, state)| (0..state.items.len()).map(move |item| (step, item)))
    };
    if let Some(index) = typed
        .strip_prefix('#')
        .and_then(|it| it.parse::<u32>().ok())
    {
        let map = (0_u32..).zip(&job.steps);
        let mut map = map.filter(|(step, _)| job.plan().is_map(*step));
        let found = match map.next() {
            Some((step, state)) => (index < state.items.len()).then_some((step, index)),
            None => all().nth(usize::try_from(index).unwrap_or(usize::MAX)),
        };
        return found.into_iter().collect();
    }
    let exact: Vec<_> = all().filter(|it| name(job, *it) == typed).collect();
    if exact.is_empty() {
        return all()
            .filter(|it| name(job, *it).starts_with(typed))
            .collect();
    }
    exact
}
