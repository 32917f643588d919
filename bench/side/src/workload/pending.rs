//! E: many pending retries, a restart, and all of them due together.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::Bench;
use crate::executions::{Executions, now};
use crate::peers::{Engine, Turn, number};
use crate::process::{Reason, Running, answer, bytes_in};
use crate::section::{Section, Table, Target, dash, fine, whole};

/// After this time without an execution, missing items are lost.
const PATIENCE: Duration = Duration::from_secs(30);

/// The cost of pending retries.
struct Cost {
    /// Bytes on the disk for each retry.
    disk: f64,
    /// Seconds until another process has resumed them and is ready.
    restart: f64,
    /// Bytes in memory for each retry, above a process with a single one.
    memory: f64,
    /// The lateness in seconds: median, 99th percentile, maximum.
    late: [f64; 3],
    lost: u32,
    again: usize,
}

pub(super) fn measure(bench: &Bench) -> Section {
    let head = [
        "",
        "pending",
        "disk, bytes each",
        "restart, s",
        "memory, bytes each",
        "late: median, 99 %, last, s",
        "lost",
        "executed again",
    ];
    let mut section = Section {
        title: "E. Pending retries that are due together".to_owned(),
        about: "All retries are due at the same moment. The process that created them ends, and another one is started; the \
                restart is timed until that process is ready (for Undaunted it loads the job's snapshot). Memory and disk are the \
                increase over a single pending retry. Lateness is the time from the due moment to the execution. The peers get \
                jobs with a start time, which leaves the same rows as a retry. Sizes are what each contestant can prepare in \
                about a minute. There is one round, so there are no ratios."
            .to_owned(),
        tables: vec![Table { head: head.map(str::to_owned).to_vec(), rows: Vec::new() }],
        ..Section::default()
    };
    for engine in bench.engines() {
        let most = engine.pending;
        let sizes =
            if bench.is_ours(engine) { vec![most / 10, most] } else { vec![most / bench.sized(10, 1)] };
        for size in sizes {
            eprintln!("E: {}, {size}", engine.name);
            let cost = cost(bench, engine, size);
            if bench.is_ours(engine)
                && let Ok(cost) = &cost
            {
                section.targets.extend(targets(size, cost));
            }
            let name =
                if bench.is_ours(engine) { format!("**{}**", engine.name) } else { engine.name.to_owned() };
            if let Some(table) = section.tables.first_mut() {
                table.rows.push(row(name, size, cost));
            }
        }
    }
    section
}

fn row(name: String, size: u32, cost: Result<Cost, Reason>) -> Vec<String> {
    let mut row = vec![name, whole(f64::from(size))];
    match cost {
        Ok(cost) => row.extend([
            whole(cost.disk),
            fine(cost.restart),
            whole(cost.memory),
            cost.late.map(fine).join(", "),
            cost.lost.to_string(),
            cost.again.to_string(),
        ]),
        Err(reason) => row.extend([reason, dash(), dash(), dash(), dash(), dash()]),
    }
    row
}

fn targets(size: u32, cost: &Cost) -> Vec<Target> {
    if size < 1_000_000 {
        return Vec::new();
    }
    let target = |words: &str, figure: f64, limit: f64, why| Target {
        words: words.to_owned(),
        measured: fine(figure),
        reached: limit / figure.max(f64::MIN_POSITIVE),
        why,
    };
    vec![
        target(
            "a million pending retries restored in under 1 s",
            cost.restart,
            1.0,
            "every record since the last snapshot is read and applied",
        ),
        target(
            "under 120 bytes each in memory",
            cost.memory,
            120.0,
            "the state of an item, its place among the timers and its input are kept in memory",
        ),
        target(
            "the last of a million starts less than 3 s late",
            cost.late[2],
            3.0,
            "one thread decides every attempt and begins it once its start is on the disk",
        ),
        Target {
            words: "none of them lost, none executed again".to_owned(),
            measured: format!("{} lost, {} executed again", cost.lost, cost.again),
            reached: if cost.lost == 0 && cost.again == 0 { 1.0 } else { 0.0 },
            why: "",
        },
    ]
}

/// Starts a process that resumes the retries, and times until it is ready.
fn restarted(command: &mut std::process::Command) -> Result<(Running, f64), Reason> {
    let began = Instant::now();
    let mut running = Running::start(command)?;
    running.first_line()?;
    Ok((running, began.elapsed().as_secs_f64()))
}

fn cost(bench: &Bench, engine: &Engine, size: u32) -> Result<Cost, Reason> {
    let (one_memory, one_disk) = one(bench, engine)?;
    let turn = bench.turn(engine)?;
    let file = turn.folder().join("executions");
    let file_name = file.to_string_lossy();
    // The retries must not be due before the second process is ready.
    let preparing = f64::from(size) / f64::from(engine.pace) * 3.0 + 15.0;
    let due = now() + preparing * 1000.0;
    let said = answer(&mut turn.command("pend", size, Some(&format!("{due:.0}"))))?;
    let disk = disk(&said, &turn) - one_disk;
    let (mut running, restart) = restarted(&mut turn.command("due", size, Some(&file_name)))?;
    let memory = running.memory().saturating_sub(one_memory);
    let in_time = now() < due;
    let mut seen = Executions::of(&file);
    let all = usize::try_from(size).unwrap_or(usize::MAX);
    let patience = PATIENCE.saturating_add(Duration::from_secs_f64(preparing));
    seen.until(&mut running, patience, |seen| seen.distinct() >= all);
    if !in_time {
        return Err(format!("it was not ready when the retries were due, {preparing:.0} s after the start"));
    }
    Ok(Cost {
        disk: disk.max(0.0) / f64::from(size),
        restart,
        memory: count(memory.saturating_mul(1024)) / f64::from(size),
        late: late(&seen.times, due),
        lost: size.saturating_sub(u32::try_from(seen.distinct()).unwrap_or(u32::MAX)),
        again: seen.count().saturating_sub(seen.distinct()),
    })
}

/// The cost of a single retry: kilobytes of the process that resumes it, and bytes on the disk.
fn one(bench: &Bench, engine: &Engine) -> Result<(u64, f64), Reason> {
    let turn = bench.turn(engine)?;
    let due = format!("{:.0}", now() + 3_600_000.0);
    let said = answer(&mut turn.command("pend", 1, Some(&due)))?;
    let disk = disk(&said, &turn);
    let file = turn.folder().join("executions");
    let (running, _) = restarted(&mut turn.command("due", 1, Some(&file.to_string_lossy())))?;
    Ok((running.memory(), disk))
}

/// The bytes on the disk, which the driver reports if they are in a database.
fn disk(said: &Value, turn: &Turn<'_>) -> f64 {
    let told = number(said, "disk");
    told.unwrap_or_else(|_| count(bytes_in(turn.folder())))
}

fn late(times: &[f64], due: f64) -> [f64; 3] {
    let mut late: Vec<f64> = times.iter().map(|time| (time - due) / 1000.0).collect();
    late.sort_by(f64::total_cmp);
    let last = late.len().saturating_sub(1);
    let places = [last / 2, last.saturating_sub(last / 100), last];
    places.map(|place| late.get(place).copied().unwrap_or(f64::NAN))
}

#[expect(clippy::cast_precision_loss, reason = "no disk here has 2^53 bytes")]
const fn count(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_measured_from_the_due_time() {
        let times: Vec<f64> = (0..200).map(|late| 10_000.0 + f64::from(late) * 1000.0).collect();
        assert_eq!(late(&times, 10_000.0).map(whole), ["99", "198", "199"]);
        assert!(late(&[], 0.0).iter().all(|late| late.is_nan()));
    }
}
