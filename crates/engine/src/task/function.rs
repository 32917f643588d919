//! The call of a function.

use super::identity::receipt_token;
use super::values::ItemValues;
use crate::event::AttemptId;
use crate::workflow::FunctionAction;
use crate::workflow::template::ValueError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    pub name: String,
    /// JSON.
    pub input: String,
    pub item: String,
    /// From 1.
    pub attempt: u32,
    /// The same for all attempts of a round, so that the function can detect a repetition.
    pub receipt_token: String,
}

pub(super) fn function_call(
    seen: &ItemValues<'_>,
    function: &FunctionAction,
    of: AttemptId,
    round: u32,
) -> Result<FunctionCall, ValueError> {
    let state = seen.job.step(of.step);
    let input = if let Some(with) = &function.with {
        with.render(seen)?.to_string()
    } else {
        let input = state.map_or("null", |state| state.items.input(of.index));
        input.to_owned()
    };
    let item = state.map(|state| state.items.identity(of.index));
    Ok(FunctionCall {
        name: function.name.clone(),
        input,
        item: item.unwrap_or_default().to_owned(),
        attempt: of.attempt.0,
        receipt_token: receipt_token(seen.job, of.item(), of.command, round),
    })
}
