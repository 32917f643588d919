//! Runs a job in the foreground. Signals interrupt the event loop, or are passed on to its command.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use undaunted_engine::job::Job;
use undaunted_runner::drive::{EventLoop, LoopHandle, Observer};
use undaunted_runner::journal::ClaimedJob;
use undaunted_runner::secrets::Secrets;

use crate::jobs::of_drive;
use crate::{Jobs, Result, webhooks};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnSignal {
    /// Running commands finish, and the job is suspended; the second signal ends them.
    Suspend,
    /// The running command gets the signal, and the job is cancelled; the second signal kills the command.
    PassOn,
}

/// The signals that arrived while a job ran.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedSignals {
    pub(crate) count: u32,
    /// Zero without one.
    pub(crate) first: i32,
}

/// Runs a job until it ends or is suspended.
pub(crate) fn run(
    jobs: &Jobs,
    claimed: ClaimedJob,
    secrets: Secrets,
    observer: &mut dyn Observer,
    on_signal: OnSignal,
) -> Result<(Job, ReceivedSignals)> {
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
    let signals = SignalReceiver::begin(event_loop.handle(), &id, on_signal)?;
    let done = event_loop.run(claimed, secrets, Box::new(observer));
    let received = signals.end();
    let job = done.map_err(|error| of_drive(&error, &id))?;
    Ok((job, received))
}

struct SignalReceiver {
    handle: signal_hook::iterator::Handle,
    count: Arc<AtomicU32>,
    first: Arc<AtomicI32>,
}

impl SignalReceiver {
    fn begin(event_loop: LoopHandle, job: &str, on_signal: OnSignal) -> Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let (count, first) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicI32::new(0)));
        let received = Self { handle, count: Arc::clone(&count), first: Arc::clone(&first) };
        let job = job.to_owned();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let before = count.fetch_add(1, Ordering::AcqRel);
                if before == 0 {
                    first.store(signal, Ordering::Release);
                }
                match on_signal {
                    OnSignal::Suspend => event_loop.interrupt(),
                    OnSignal::PassOn => event_loop.pass_on(&job, signal),
                }
                if before > 1 {
                    // The third signal works like `kill -9`: nothing recorded is lost.
                    std::process::exit(match on_signal {
                        OnSignal::Suspend => 130,
                        OnSignal::PassOn => signal.saturating_add(128),
                    });
                }
            }
        });
        Ok(received)
    }

    /// Stops receiving. The thread ends by itself.
    fn end(self) -> ReceivedSignals {
        self.handle.close();
        ReceivedSignals {
            count: self.count.load(Ordering::Acquire),
            first: self.first.load(Ordering::Acquire),
        }
    }
}
