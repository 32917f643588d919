//! E, continued: the cost of items that a breaker holds, for the product alone.

use std::thread;
use std::time::Duration;

use crate::bench::Bench;
use crate::process::{Reason, Running, bound, finish};
use crate::section::{Section, Table, Target, fine, whole};

pub(super) fn measure(bench: &Bench) -> Section {
    let (items, seconds) = (bench.sized(100_000, 1_000_000), bench.sized(10, 60));
    let mut section = Section {
        title: "E, continued. Items held by a breaker".to_owned(),
        about: format!(
            "A job of {} items, each held by an open breaker with its own record, resumed with `undaunted resume` and watched for \
             {seconds} s in which nothing happens.",
            whole(f64::from(items))
        ),
        ..Section::default()
    };
    match held(bench, items, seconds) {
        Ok([restore, memory, idle]) => {
            let row = |name: &str, figure: String| vec![name.to_owned(), figure];
            section.tables = vec![Table {
                head: vec![String::new(), String::new()],
                rows: vec![
                    row("CPU time to resume the job, s", fine(restore)),
                    row("memory of the engine, MB", whole(memory)),
                    row("CPU time per minute while all items are held, s", fine(idle)),
                ],
            }];
            section.targets = vec![Target {
                words: "under 0.1 s of CPU time per minute".to_owned(),
                measured: format!("{} s", fine(idle)),
                reached: 0.1 / idle.max(f64::MIN_POSITIVE),
                why: "the job polls the store for requests five times per second",
            }];
        }
        Err(reason) => section.notes.push(format!("Not measured: {reason}.")),
    }
    section
}

fn held(bench: &Bench, items: u32, seconds: u32) -> Result<[f64; 3], Reason> {
    eprintln!("E, held: {items}");
    let folder = bench.scratch.turn()?;
    let mut write = bound(bench.product("examples/held"));
    finish(write.arg(&folder).arg(items.to_string()).arg("held"))?;
    let mut resume = bench.undaunted();
    resume.arg("--store").arg(&folder).args(["resume", "measured"]);
    let mut job = Running::start(&mut resume)?;
    // The job is resumed when its process uses no more CPU time.
    let (mut before, mut restored) = (-1.0, job.processor());
    while restored > before {
        thread::sleep(Duration::from_secs(2));
        before = restored;
        restored = job.processor();
    }
    let memory = f64::from(u32::try_from(job.memory()).unwrap_or(u32::MAX)) / 1024.0;
    thread::sleep(Duration::from_secs(seconds.into()));
    let idle = (job.processor() - restored) * 60.0 / f64::from(seconds);
    if !job.lives() {
        return Err("the job has ended".to_owned());
    }
    Ok([restored, memory, idle])
}
