//! D: kill -9 halfway, and a restart.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use undaunted_bench_figures::{Figures, alternate};

use crate::bench::Bench;
use crate::executions::{Executions, now};
use crate::peers::Engine;
use crate::process::{Reason, Running, bound};
use crate::section::{Section, Table, Target, dash, fine, median, range, whole};

/// After this time without an execution, missing items are lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long to wait for repeated executions after the last item.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// The command of an item: it appends the item and the time to a file.
const LINE: &str = "echo \"$1 $(date +%s%3N)\" >>\"$0\"";

#[derive(Clone, Copy, Debug)]
struct Killed {
    first: f64,
    last: f64,
    lost: f64,
    repeated: f64,
    /// The rate after the kill, relative to the rate before.
    pace: f64,
}

enum Contestant<'a> {
    Engine(&'a Engine),
    Map,
    Parallel,
}

pub(super) fn measure(bench: &Bench) -> Section {
    let engines = bench.engines().into_iter();
    let mut contestants: Vec<_> = engines.map(Contestant::Engine).collect();
    contestants.insert(1, Contestant::Map);
    if bench.has("parallel") {
        contestants.push(Contestant::Parallel);
    }
    let rounds = usize::try_from(bench.sized(1, 3)).unwrap_or(1);
    let measured = alternate(rounds, contestants.len(), |round, who| {
        let contestant = contestants.get(who).ok_or("no such contestant")?;
        eprintln!("D, round {round}: {}", contestant.name());
        contestant.turn(bench)
    });
    let head =
        ["", "items", "first after, s", "last after, s", "lost", "executed again", "rate after / before"];
    let mut section = Section {
        title: "D. Killed halfway".to_owned(),
        about: format!(
            "At most 64 items run at a time (8 with DBOS in PostgreSQL, 1 in SQLite). When half of the items are executed, the \
             process is killed (signal 9) and another one is started at once. Every execution adds a line to a file, and only \
             these lines count. Seconds are measured from the restart to the first and to the last execution. An item is lost if \
             it is not executed within {} s after the last execution; an item that was running at the kill may run again. \
             PostgreSQL is not killed. xargs is left out, because it keeps no progress.",
            PATIENCE.as_secs()
        ),
        tables: vec![Table { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }],
        ..Section::default()
    };
    for (contestant, killed) in contestants.iter().zip(measured) {
        if contestant.is_ours(bench)
            && let Ok(killed) = &killed
        {
            section.targets.push(target(&contestant.name(), killed));
        }
        if let Some(table) = section.tables.first_mut() {
            table.rows.push(row(contestant, bench, killed));
        }
    }
    section
}

fn row(contestant: &Contestant<'_>, bench: &Bench, killed: Result<Vec<Killed>, Reason>) -> Vec<String> {
    let name = contestant.name();
    let name = if contestant.is_ours(bench) { format!("**{name}**") } else { name };
    let mut row = vec![name, whole(f64::from(contestant.items(bench)))];
    match killed {
        Ok(killed) => {
            let figures = |of: fn(&Killed) -> f64| -> Figures { killed.iter().map(of).collect() };
            let spread = |figures: Figures, text: fn(f64) -> String| {
                format!("{} ({})", median(&figures, text), range(&figures, text))
            };
            row.extend([
                spread(figures(|killed| killed.first), fine),
                spread(figures(|killed| killed.last), fine),
                spread(figures(|killed| killed.lost), whole),
                spread(figures(|killed| killed.repeated), whole),
                spread(figures(|killed| killed.pace), fine),
            ]);
        }
        Err(reason) => row.extend([reason, dash(), dash(), dash(), dash()]),
    }
    row
}

fn target(name: &str, killed: &[Killed]) -> Target {
    let worst = |of: fn(&Killed) -> f64| killed.iter().map(of).fold(0.0, f64::max);
    let (lost, repeated) = (worst(|killed| killed.lost), worst(|killed| killed.repeated));
    Target {
        words: format!("{name}: 0 lost, 0 executed again"),
        measured: format!("{} lost, {} executed again", whole(lost), whole(repeated)),
        reached: if lost + repeated > 0.0 { 0.0 } else { 1.0 },
        why: "an item that was running at the kill has no recorded outcome, so it is executed again and counted as an attempt",
    }
}

fn kill(mut begin: Command, mut resume: Command, file: &Path, items: u32) -> Result<Killed, Reason> {
    let all = usize::try_from(items).unwrap_or(usize::MAX);
    let mut seen = Executions::of(file);
    let mut running = Running::start(&mut begin)?;
    if !seen.until(&mut running, PATIENCE, |seen| seen.count() >= all / 2) {
        return Err(format!("it stopped after {} items", seen.count()));
    }
    drop(running);
    seen.poll();
    let before = seen.count();
    let (restarted, mut running) = (now(), Running::start(&mut resume)?);
    seen.until(&mut running, PATIENCE, |seen| seen.distinct() >= all);
    // Repeated executions may still follow.
    seen.until(&mut running, AFTERWARDS, |_| false);
    drop(running);
    let Some((old, fresh)) = seen.times.split_at_checked(before) else {
        return Err("the file has become shorter".to_owned());
    };
    let (Some(first), Some(last)) = (fresh.first(), fresh.last()) else {
        return Err(format!("{before} executions, and none after the kill"));
    };
    let count = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    Ok(Killed {
        first: (first - restarted) / 1000.0,
        last: (last - restarted) / 1000.0,
        lost: count(all.saturating_sub(seen.distinct())),
        repeated: count(seen.count().saturating_sub(seen.distinct())),
        pace: rate(fresh) / rate(old),
    })
}

/// The executions per second, from the first to the last.
fn rate(times: &[f64]) -> f64 {
    let count = f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX));
    match (times.first(), times.last()) {
        // The clock has a resolution of a millisecond.
        (Some(first), Some(last)) => count * 1000.0 / (last - first).max(1.0),
        _ => 0.0,
    }
}

impl Contestant<'_> {
    fn turn(&self, bench: &Bench) -> Result<Killed, Reason> {
        let items = self.items(bench);
        if let Self::Engine(engine) = self {
            let turn = bench.turn(engine)?;
            let file = turn.folder().join("executions");
            let argument = Some(file.to_string_lossy());
            let argument = argument.as_deref();
            let begin = turn.command("begin", items, argument);
            return kill(begin, turn.command("resume", items, argument), &file, items);
        }
        let folder = bench.scratch.turn()?;
        let (file, lines) = (folder.join("executions"), folder.join("lines"));
        let numbers: Vec<String> = (1..=items).map(|line| line.to_string()).collect();
        std::fs::write(&lines, numbers.join("\n")).map_err(|error| error.to_string())?;
        let [begin, resume] = if matches!(self, Self::Map) {
            let store = || {
                let mut command = bench.undaunted();
                command.arg("--store").arg(folder.join("store"));
                command
            };
            let (mut begin, mut resume) = (store(), store());
            begin.args(["map", "--quiet", "-j", "2", "-a"]).arg(&lines);
            begin.args(["--", "sh", "-c", LINE]).arg(&file).arg("{}");
            resume.args(["resume", "@last"]);
            [begin, resume]
        } else {
            ["--joblog", "--resume"].map(|how| {
                let mut parallel = bound("parallel");
                parallel.arg("--joblog").arg(folder.join("log"));
                if how == "--resume" {
                    parallel.arg(how);
                }
                parallel.args(["-q", "-j", "2", "sh", "-c", LINE]).arg(&file);
                parallel.args(["{}", "::::"]).arg(&lines);
                parallel
            })
        };
        kill(begin, resume, &file, items)
    }

    fn name(&self) -> String {
        match self {
            Self::Engine(engine) => engine.name.to_owned(),
            Self::Map => "`undaunted map`, width 2".to_owned(),
            Self::Parallel => "GNU parallel, width 2".to_owned(),
        }
    }

    fn is_ours(&self, bench: &Bench) -> bool {
        match self {
            Self::Engine(engine) => bench.is_ours(engine),
            Self::Map => true,
            Self::Parallel => false,
        }
    }

    fn items(&self, bench: &Bench) -> u32 {
        let pace = match self {
            Self::Engine(engine) => engine.pace,
            Self::Map => 500,
            Self::Parallel => 150,
        };
        pace.saturating_mul(bench.sized(2, 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `first` until half of four items are executed, and then `second`.
    fn killed(first: &str, second: &str) -> Result<Killed, Reason> {
        let path = std::env::temp_dir().join(format!("killed-{}-{}", std::process::id(), first.len()));
        drop(std::fs::remove_file(&path));
        let script = |text: &str| {
            let mut command = bound("sh");
            command.args(["-c", text]).arg(&path);
            command
        };
        let killed = kill(script(first), script(second), &path, 4);
        drop(std::fs::remove_file(&path));
        killed
    }

    #[test]
    fn lost_and_repeated_items_are_counted_by_the_lines() -> Result<(), Reason> {
        let begin = "echo 1 1000 >>$0; echo 2 1001 >>$0; exec sleep 1000";
        let killed = killed(begin, "echo 2 1002 >>$0; echo 3 1003 >>$0")?;
        assert_eq!([killed.lost, killed.repeated].map(whole), ["1", "1"]);
        Ok(())
    }

    #[test]
    fn a_contestant_that_stops_before_the_kill_is_not_measured() {
        let reason = killed("echo 1 1000 >>$0", "true").map(|killed| killed.lost);
        assert_eq!(reason, Err("it stopped after 1 items".to_owned()));
    }
}
