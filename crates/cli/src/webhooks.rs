//! Where the results of async steps arrive while a flow is run in the foreground.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use undaunted_engine::job::Job;
use undaunted_engine::workflow::StepKind;
use undaunted_runner::drive::{Handle, Report, Reported};
use undaunted_runner::request::Arrived;
use undaunted_server::{Deliver, Delivered, Delivery, Webhooks};

use crate::exit::Refused;

/// Where results are sent if nothing else is said.
const USUAL: &str = "127.0.0.1:7070";

/// How long a result waits for the loop to look at it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether a step of a job answers later.
pub(crate) fn are_needed(job: &Job) -> bool {
    let steps = 0..u32::try_from(job.workflow().steps.len()).unwrap_or(u32::MAX);
    let mut calls = steps.filter_map(|step| job.plan().call(step));
    calls.any(|call| matches!(call.kind, StepKind::Call { later: true, .. }))
}

/// Listens for results, and answers with the address that steps are given.
pub(crate) fn listen(hub: Handle) -> Result<(Webhooks, String), Refused> {
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    };
    let wanted = variable("UNDAUNTED_LISTEN").unwrap_or_else(|| USUAL.to_owned());
    let address: SocketAddr = wanted.parse().map_err(|_| {
        Refused::Usage(format!(
            "the environment variable UNDAUNTED_LISTEN is `{wanted}`, which is not an address such \
             as {USUAL}"
        ))
    })?;
    let webhooks = Webhooks::listen(address, deliver(hub));
    let webhooks = webhooks.map_err(|error| Refused::Store {
        message: format!("results of async steps cannot be received at {address}: {error}"),
        help: Some("UNDAUNTED_LISTEN names another address".to_owned()),
    })?;
    let base = variable("WEBHOOK_BASE_URL");
    if let Some(base) = &base
        && !["http://", "https://"]
            .iter()
            .any(|it| base.starts_with(it))
    {
        return Err(Refused::Usage(format!(
            "the environment variable WEBHOOK_BASE_URL is `{base}`, which does not begin with \
             `http://` or `https://`"
        )));
    }
    let base = base.unwrap_or_else(|| format!("http://{}", webhooks.address()));
    Ok((webhooks, base))
}

fn deliver(hub: Handle) -> Deliver {
    Arc::new(move |delivery: Delivery| {
        let (known, answer) = channel();
        let arrived = Arrived {
            step: delivery.step,
            token: delivery.token,
            result: delivery.result,
        };
        let report = Report { arrived, known };
        hub.report(&delivery.flow, report);
        match answer.recv_timeout(PATIENCE) {
            Ok(Reported::Taken) => Delivered::Taken,
            Ok(Reported::Unknown | Reported::Elsewhere) => Delivered::Unknown,
            Err(_) => Delivered::Unheard,
        }
    })
}
