//! Where a job came from: a workflow file, or words on the command line.

use crate::event::JobSubmitted;
use crate::plan::Plan;
use crate::task::action::Action;

/// Stands for the prompt in the arguments of an agent.
const PROMPT: &str = "{prompt}";
/// Stands for the item in the words of `map`.
const ITEM: &str = "{}";

/// The path of the workflow file; `None` for `exec`, `map` and flows that were begun over the network.
pub(super) fn workflow(submitted: &JobSubmitted) -> Option<String> {
    let file = submitted.file.as_str();
    // A job that was typed has a name after a dash, where standard input is a dash alone.
    let is_typed = file.starts_with('-') && file != "-";
    (!is_typed && !file.is_empty()).then(|| file.to_owned())
}

/// What `exec` or `map` runs, with `{}` for the item.
pub(super) fn argv(plan: &Plan, submitted: &JobSubmitted) -> Option<Vec<String>> {
    // Only these two pass output on.
    submitted.passing?;
    let mut commands = plan.numbered();
    let (words, prompt) = commands.find_map(|(_, command)| match &command.action {
        Action::Agent { name, prompt } => Some((plan.workflow().agents.get(name)?, prompt)),
        Action::Shell(_)
        | Action::Http(_)
        | Action::WriteFile(_)
        | Action::Function(_)
        | Action::Step(_)
        | Action::SubFlow(_) => None,
    })?;
    let typed = prompt.plain().unwrap_or(ITEM);
    let words = words.iter().map(|word| word.replace(PROMPT, typed));
    Some(words.collect())
}
