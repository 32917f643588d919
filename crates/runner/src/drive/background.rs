//! An event loop in a thread of its own.

use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use super::handle::Handle;
use super::hub::{Hub, Left};
use super::running::World;

/// Runs an event loop in a new thread until it is interrupted. `prepare` is called first, `each` for
/// every job that was left.
pub fn in_background(
    world: World,
    prepare: impl FnOnce(&mut Hub<'_>) + Send + 'static,
    each: impl FnMut(&str, Left) + Send + 'static,
) -> (Handle, JoinHandle<()>) {
    let (tell, told) = sync_channel(1);
    let running = std::thread::spawn(move || {
        let mut hub = Hub::new(&world);
        prepare(&mut hub);
        // The caller is waiting for this.
        drop(tell.send(hub.handle()));
        hub.serve(each);
    });
    let hub = told.recv().unwrap_or_else(|_| Handle::of_nobody());
    (hub, running)
}
