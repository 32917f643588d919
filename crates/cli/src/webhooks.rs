//! Receives the results of async steps while a flow runs in the foreground.

use std::net::SocketAddr;
use std::sync::Arc;

use undaunted_engine::job::Job;
use undaunted_engine::workflow::FlowStepKind;
use undaunted_runner::drive::LoopHandle;
use undaunted_runner::request::ArrivedResult;
use undaunted_server::Webhooks;

use crate::environment;
use crate::exit::CommandError;
use undaunted_engine::id::StepId;

pub(crate) const USUAL: &str = "127.0.0.1:7070";

pub(crate) fn are_needed(job: &Job) -> bool {
    let steps = StepId::all().zip(&job.steps);
    let mut calls = steps.filter_map(|(step, _)| job.plan().call(step));
    calls.any(|call| matches!(call.kind, FlowStepKind::Call { later: true, .. }))
}

/// Listens for results, and returns the base URL for the steps.
pub(crate) fn listen(hub: LoopHandle) -> Result<(Webhooks, String), CommandError> {
    let wanted = environment::text("UNDAUNTED_LISTEN")?.unwrap_or_else(|| USUAL.to_owned());
    let address: SocketAddr = wanted.parse().map_err(|_| {
        CommandError::Usage(format!(
            "the environment variable UNDAUNTED_LISTEN is `{wanted}`, which is not an address such \
             as {USUAL}"
        ))
    })?;
    let webhooks = Webhooks::listen(
        address,
        Arc::new(move |flow: &str, arrived: ArrivedResult| hub.deliver(flow, arrived)),
    );
    let webhooks = webhooks.map_err(|error| CommandError::Store {
        message: format!("results of async steps cannot be received at {address}: {error}"),
        help: Some("UNDAUNTED_LISTEN names another address".to_owned()),
    })?;
    let base = base_url(None)?;
    let base = base.unwrap_or_else(|| format!("http://{}", webhooks.address()));
    Ok((webhooks, base))
}

/// The beginning of all webhook URLs, if it is configured.
pub(crate) fn base_url(given: Option<&str>) -> Result<Option<String>, CommandError> {
    let (what, base) = match given {
        Some(given) => ("--public-url", Some(given.to_owned())),
        None => ("the environment variable WEBHOOK_BASE_URL", environment::text("WEBHOOK_BASE_URL")?),
    };
    let is_address = |base: &String| {
        let rest = base.strip_prefix("http://");
        let rest = rest.or_else(|| base.strip_prefix("https://"));
        rest.is_some_and(|rest| rest.starts_with(|sign: char| sign.is_alphanumeric() || sign == '['))
    };
    match base {
        Some(base) if !is_address(&base) => Err(CommandError::Usage(format!(
            "{what} is `{base}`, which is no address that begins with `http://` or `https://`"
        ))),
        base => Ok(base),
    }
}
