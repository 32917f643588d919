//! What the operator says in environment variables.

use std::env;

use undaunted_policy::Ceilings;

use crate::exit::Refused;

/// The operator's limits on retry pools.
pub(crate) fn ceilings() -> Result<Ceilings, Refused> {
    let default = Ceilings::DEFAULT;
    Ok(Ceilings {
        default_total: number("RETRY_BUDGET_DEFAULT", default.default_total)?,
        max_total: number("RETRY_BUDGET_MAX", default.max_total)?,
        default_per_item: number(
            "RETRY_BUDGET_PER_WORKFLOW_DEFAULT",
            default.default_per_item,
        )?,
        max_per_item: number("RETRY_BUDGET_PER_WORKFLOW_MAX", default.max_per_item)?,
    })
}

fn number(name: &str, default: u32) -> Result<u32, Refused> {
    let Some(value) = env::var_os(name) else {
        return Ok(default);
    };
    let number = value.to_str().and_then(|value| value.parse().ok());
    number.ok_or_else(|| {
        let value = value.to_string_lossy();
        Refused::Usage(format!(
            "the environment variable {name} is `{value}`, which is not a number from 0"
        ))
    })
}
