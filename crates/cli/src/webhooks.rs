//! Receives the results of async steps while a flow runs in the foreground.

use std::net::SocketAddr;
use std::sync::Arc;

use undaunted_engine::id::StepId;
use undaunted_engine::job::Job;
use undaunted_engine::workflow::FlowStepKind;
use undaunted_runner::drive::LoopHandle;
use undaunted_server::Webhooks;

use crate::{CommandError, Result, environment};

pub(crate) const DEFAULT_ADDRESS: &str = "127.0.0.1:7070";

pub(crate) fn are_needed(job: &Job) -> bool {
    let mut calls = StepId::all().zip(&job.steps).filter_map(|(step, _)| job.plan().call(step));
    calls.any(|call| matches!(call.kind, FlowStepKind::Call { later: true, .. }))
}

/// Listens for results; also returns the base URL of the webhooks.
pub(crate) fn listen(event_loop: LoopHandle) -> Result<(Webhooks, String)> {
    let wanted = environment::text("UNDAUNTED_LISTEN")?.unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
    let address: SocketAddr = wanted.parse().map_err(|_| {
        CommandError::Usage(format!(
            "the environment variable UNDAUNTED_LISTEN must be an address such as {DEFAULT_ADDRESS}, not `{wanted}`"
        ))
    })?;
    let webhooks = Webhooks::listen(address, Arc::new(event_loop)).map_err(|error| CommandError::Store {
        message: format!("cannot listen for results of async steps on {address}: {error}"),
        help: Some("choose another address with UNDAUNTED_LISTEN".to_owned()),
    })?;
    let base = base_url(None)?.unwrap_or_else(|| format!("http://{}", webhooks.address()));
    Ok((webhooks, base))
}

/// The configured base of all webhook URLs.
pub(crate) fn base_url(given: Option<&str>) -> Result<Option<String>> {
    let (what, base) = match given {
        Some(given) => ("--public-url", Some(given.to_owned())),
        None => ("the environment variable WEBHOOK_BASE_URL", environment::text("WEBHOOK_BASE_URL")?),
    };
    let is_address = |base: &String| {
        let rest = base.strip_prefix("http://").or_else(|| base.strip_prefix("https://"));
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_alphanumeric() || first == '['))
    };
    match base {
        Some(base) if !is_address(&base) => Err(CommandError::Usage(format!(
            "{what} must be a URL that begins with `http://` or `https://`, not `{base}`"
        ))),
        base => Ok(base),
    }
}
