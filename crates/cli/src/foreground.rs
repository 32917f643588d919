//! Running a job in the foreground: signals become interrupts of the event loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use undaunted_engine::job::Job;
use undaunted_runner::drive::{EventLoop, LoopHandle, Observer};
use undaunted_runner::journal::ClaimedJob;
use undaunted_runner::secrets::Secrets;

use crate::jobs::{Jobs, of_drive};
use crate::webhooks;

/// Runs a job until it has ended or was suspended. The number is that of the signals received.
pub(crate) fn run(
    jobs: &Jobs,
    held: ClaimedJob,
    secrets: Secrets,
    observer: &mut dyn Observer,
) -> Result<(Job, u32)> {
    let mut world = jobs.world()?;
    if held.job.workflow().flow.is_some() {
        world.catalog = Some(jobs.book()?);
    }
    let id = held.job.id().to_owned();
    let mut hub = EventLoop::new(&world);
    let _webhooks = if webhooks::are_needed(&held.job) {
        let (webhooks, base) = webhooks::listen(hub.handle())?;
        hub.send_results_to(base);
        Some(webhooks)
    } else {
        None
    };
    let signals = Listening::begin(hub.handle())?;
    let done = hub.run(held, secrets, Box::new(observer));
    let interrupts = signals.end();
    let job = done.map_err(|error| of_drive(&error, &id))?;
    Ok((job, interrupts))
}

struct Listening {
    handle: signal_hook::iterator::Handle,
    heard: Arc<AtomicU32>,
}

impl Listening {
    fn begin(hub: LoopHandle) -> Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let heard = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&heard);
        std::thread::spawn(move || {
            for _ in signals.forever() {
                let before = counted.fetch_add(1, Ordering::AcqRel);
                hub.interrupt();
                if before > 1 {
                    // The third signal works like `kill -9`: nothing recorded is lost.
                    std::process::exit(130);
                }
            }
        });
        Ok(Self { handle, heard })
    }

    /// Stops listening and returns the number of signals. The thread ends by itself.
    fn end(self) -> u32 {
        self.handle.close();
        self.heard.load(Ordering::Acquire)
    }
}
