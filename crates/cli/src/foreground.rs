//! Runs a job in the foreground; signals interrupt the event loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use undaunted_engine::job::Job;
use undaunted_runner::drive::{EventLoop, LoopHandle, Observer};
use undaunted_runner::journal::ClaimedJob;
use undaunted_runner::secrets::Secrets;

use crate::jobs::of_drive;
use crate::{Jobs, Result, webhooks};

/// Runs a job until it ends or is suspended. Also returns the number of signals received.
pub(crate) fn run(
    jobs: &Jobs,
    claimed: ClaimedJob,
    secrets: Secrets,
    observer: &mut dyn Observer,
) -> Result<(Job, u32)> {
    let mut services = jobs.services()?;
    if claimed.job.workflow().flow.is_some() {
        services.catalog = Some(jobs.catalog()?);
    }
    let id = claimed.job.id().to_owned();
    let mut event_loop = EventLoop::new(&services);
    let _webhooks = if webhooks::are_needed(&claimed.job) {
        let (webhooks, base) = webhooks::listen(event_loop.handle())?;
        event_loop.send_results_to(base);
        Some(webhooks)
    } else {
        None
    };
    let signals = SignalCounter::begin(event_loop.handle())?;
    let done = event_loop.run(claimed, secrets, Box::new(observer));
    let interrupts = signals.end();
    let job = done.map_err(|error| of_drive(&error, &id))?;
    Ok((job, interrupts))
}

struct SignalCounter {
    handle: signal_hook::iterator::Handle,
    received: Arc<AtomicU32>,
}

impl SignalCounter {
    fn begin(event_loop: LoopHandle) -> Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let received = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&received);
        std::thread::spawn(move || {
            for _ in signals.forever() {
                let before = counted.fetch_add(1, Ordering::AcqRel);
                event_loop.interrupt();
                if before > 1 {
                    // The third signal works like `kill -9`: nothing recorded is lost.
                    std::process::exit(130);
                }
            }
        });
        Ok(Self { handle, received })
    }

    /// Stops counting and returns the number of signals. The thread ends by itself.
    fn end(self) -> u32 {
        self.handle.close();
        self.received.load(Ordering::Acquire)
    }
}
