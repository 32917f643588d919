//! An event loop in a thread of its own.

use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use super::event_loop::{EventLoop, JobResult};
use super::handle::LoopHandle;
use super::running::Services;

/// Runs an event loop in a new thread until it is interrupted. `prepare` is called first, `each` for
/// every job that was left.
pub fn in_background(
    world: Services,
    prepare: impl FnOnce(&mut EventLoop<'_>) + Send + 'static,
    each: impl FnMut(&str, JobResult) + Send + 'static,
) -> (LoopHandle, JoinHandle<()>) {
    let (tell, told) = sync_channel(1);
    let running = std::thread::spawn(move || {
        let mut hub = EventLoop::new(&world);
        prepare(&mut hub);
        // The caller is waiting for this.
        drop(tell.send(hub.handle()));
        hub.serve(each);
    });
    let hub = told.recv().unwrap_or_else(|_| LoopHandle::of_nobody());
    (hub, running)
}
