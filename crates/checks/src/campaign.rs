//! What the campaigns have in common: rounds on all cores, each with a seed of its own.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

/// Runs one round for each of `count` seeds from `first` on, and hands over the results as they come.
pub(crate) fn for_each_seed<R: Send>(
    first: u64,
    count: u64,
    round: impl Fn(u64) -> R + Sync,
    mut each: impl FnMut(u64, R) -> io::Result<()>,
) -> io::Result<()> {
    let next = AtomicU64::new(0);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..cores {
            let (sender, next, round) = (sender.clone(), &next, &round);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let seed = first.wrapping_add(number);
                    if number >= count || sender.send((seed, round(seed))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        results.iter().try_for_each(|(seed, result)| each(seed, result))
    })
}

/// The command that repeats what a campaign has found.
pub(crate) fn repeat_command(arguments: &str) -> String {
    format!("cargo run --release -p undaunted-checks -- {arguments}")
}
