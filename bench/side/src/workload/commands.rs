//! C: `/bin/true` for each line of a file.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use undaunted_bench_figures::{Figures, alternate};

use crate::bench::Bench;
use crate::chart::Chart;
use crate::floor::spawn;
use crate::process::{Reason, bound};
use crate::section::{Rate, Role, Section, Target, bars, fine, median, range, table};

/// How many run at a time.
const WIDTHS: [u32; 2] = [2, 8];

const TRUE: &str = "/bin/true";

pub(super) fn measure(bench: &Bench) -> Section {
    let mut section = Section {
        title: "C. `/bin/true`".to_owned(),
        about: "One command for each line of a file, at the given width, from the start of the program to its end. Undaunted \
                syncs every start before it begins, and every outcome. The floor is two threads that start a command and wait for it."
            .to_owned(),
        ..Section::default()
    };
    let mut chart = Chart { title: "C. /bin/true per second".to_owned(), ..Chart::default() };
    for width in WIDTHS {
        let rates = rates(bench, width);
        let drawn = bars(String::new(), &rates).bars;
        chart.bars.extend(drawn.into_iter().map(|mut bar| {
            bar.label = format!("{}, width {width}", bar.label);
            bar
        }));
        section.targets.extend(targets(width, &rates));
        section.tables.push(table(&format!("commands per second, width {width}"), &rates));
    }
    section.chart = Some(("commands", chart));
    section
}

fn rates(bench: &Bench, width: u32) -> Vec<Rate> {
    let all = bench.sized(2_000, 10_000);
    let mut contestants = vec![("undaunted map", Role::Ours, all)];
    if bench.has("xargs") {
        contestants.push(("xargs", Role::Peer, all));
    }
    if bench.has("parallel") {
        // It takes four times as long.
        contestants.push(("parallel", Role::Peer, all / 4));
    }
    contestants.push(("two threads", Role::Floor, all));
    let measured = alternate(bench.rounds(), contestants.len(), |round, who| {
        let &(name, _, items) = contestants.get(who).ok_or("no such contestant")?;
        eprintln!("C, width {width}, round {round}: {name}");
        turn(bench, name, width, items)
    });
    let rate = |(&(name, role, items), rates): (&(&str, Role, u32), Result<Vec<f64>, Reason>)| Rate {
        name: name.to_owned(),
        role,
        items,
        outcome: rates.map(Figures::of),
    };
    contestants.iter().zip(measured).map(rate).collect()
}

fn turn(bench: &Bench, name: &str, width: u32, items: u32) -> Result<f64, Reason> {
    let folder = bench.scratch.turn()?;
    let lines = folder.join("lines");
    let numbers: Vec<String> = (1..=items).map(|line| line.to_string()).collect();
    fs::write(&lines, numbers.join("\n")).map_err(|error| error.to_string())?;
    let width = width.to_string();
    let command = match name {
        "two threads" => return spawn(items),
        "xargs" => {
            let mut xargs = bound("xargs");
            xargs.args(["-n", "1", "-P", &width, "-a"]).arg(&lines).arg(TRUE);
            xargs
        }
        "parallel" => {
            let mut parallel = bound("parallel");
            parallel.arg("--joblog").arg(folder.join("log"));
            parallel.args(["-j", &width, TRUE, "::::"]).arg(&lines);
            parallel
        }
        _ => {
            let mut map = bench.undaunted();
            map.arg("--store").arg(folder.join("store"));
            map.args(["map", "--quiet", "-j", &width, "-a"]).arg(&lines).args(["--", TRUE]);
            map
        }
    };
    Ok(f64::from(items) / seconds(command, &folder)?)
}

fn seconds(mut command: Command, folder: &Path) -> Result<f64, Reason> {
    let command = command.stdout(Stdio::null()).stderr(Stdio::null()).current_dir(folder);
    let began = Instant::now();
    let status = command.status().map_err(|error| error.to_string())?;
    let took = began.elapsed().as_secs_f64();
    if status.success() { Ok(took) } else { Err(status.to_string()) }
}

fn targets(width: u32, rates: &[Rate]) -> Vec<Target> {
    let of = |name: &str| {
        let mut found = rates.iter().filter(|rate| rate.name == name);
        found.find_map(|rate| rate.outcome.as_ref().ok())
    };
    let target = |name: &str, limit: f64, words: &str, why| {
        let ratio = of("undaunted map")?.over(of(name)?);
        Some(Target {
            words: format!("width {width}: at least {limit} of {words}"),
            measured: format!("{} ({})", median(&ratio, fine), range(&ratio, fine)),
            reached: ratio.median() / limit,
            why,
        })
    };
    let recorded = "the start and the outcome of every command are recorded and synced by an engine and a keeper, which compete \
                    with the commands for the cores";
    let little = "out of reach on this machine: even the floor, which records nothing, misses it, because most of the time is \
                  spent in the commands themselves";
    let most = of("two threads").zip(of("xargs"));
    let is_within_reach = most.is_none_or(|(floor, xargs)| floor.over(xargs).median() >= 1.5);
    let why = if is_within_reach { recorded } else { little };
    let xargs = target("xargs", 1.5, "`xargs -P`", why);
    xargs.into_iter().chain(target("two threads", 0.8, "the floor", recorded)).collect()
}
