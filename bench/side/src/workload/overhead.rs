//! G: one command, alone and through the program.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use undaunted_bench_figures::{Figures, alternate};

use crate::bench::Bench;
use crate::process::{Reason, bound, finish};
use crate::section::{Section, Table, Target, dash, fine, median, range};

const NAMES: [&str; 3] = ["`/bin/true`", "`undaunted exec -- /bin/true`", "`undaunted run` of one command"];

pub(super) fn measure(bench: &Bench) -> Section {
    let rounds = usize::try_from(bench.sized(10, 40)).unwrap_or(10);
    let mut section = Section {
        title: "G. One command".to_owned(),
        about: format!(
            "Milliseconds from the start of the program to its end, {rounds} rounds, with an existing store on a disk."
        ),
        ..Section::default()
    };
    match measured(bench, rounds) {
        Ok([bare, exec, run]) => {
            let exec = (NAMES[1], exec.less(&bare), &exec, 5.0);
            let run = (NAMES[2], run.less(&bare), &run, 15.0);
            let text = |figures: &Figures| [median(figures, fine), range(figures, fine)];
            let head = ["", "ms", "range", "added", "range"];
            let mut rows = vec![[&[NAMES[0].to_owned()], &text(&bare)[..], &[dash(), dash()]].concat()];
            for (name, added, whole, limit) in [exec, run] {
                rows.push([&[name.to_owned()], &text(whole)[..], &text(&added)].concat());
                section.targets.push(Target {
                    words: format!("{name} adds under {limit} ms"),
                    measured: format!("{} ms ({})", median(&added, fine), range(&added, fine)),
                    reached: limit / added.median(),
                    why: "the store is opened, a keeper is started, and every record is synced before the next step",
                });
            }
            section.tables = vec![Table { head: head.map(str::to_owned).to_vec(), rows }];
        }
        Err(reason) => section.notes.push(format!("Not measured: {reason}.")),
    }
    section
}

fn measured(bench: &Bench, rounds: usize) -> Result<[Figures; 3], Reason> {
    eprintln!("G");
    let folder = bench.scratch.turn()?;
    let list = folder.join("one.yaml");
    fs::write(&list, "[{shell: \"true\"}]\n").map_err(|error| error.to_string())?;
    // This first run creates the store.
    finish(command(bench, &folder, 1).stdout(Stdio::null()))?;
    let measured = alternate(rounds, NAMES.len(), |_, who| {
        let mut command = command(bench, &folder, who);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let began = Instant::now();
        let status = command.status().map_err(|error| error.to_string())?;
        let took = began.elapsed().as_secs_f64() * 1000.0;
        if status.success() { Ok(took) } else { Err(status.to_string()) }
    });
    let mut figures = measured.into_iter().map(|rounds| rounds.map(Figures::of));
    let mut next = || figures.next().unwrap_or_else(|| Err("nothing".to_owned()));
    Ok([next()?, next()?, next()?])
}

/// All contestants are started through `setpriv`, which costs each of them the same.
fn command(bench: &Bench, folder: &Path, who: usize) -> Command {
    let mut command = match who {
        0 => bound("/bin/true"),
        1 => {
            let mut exec = bench.undaunted();
            exec.args(["exec", "--", "/bin/true"]);
            exec
        }
        _ => {
            let mut run = bench.undaunted();
            run.arg("run").arg(folder.join("one.yaml"));
            run
        }
    };
    command.env("UNDAUNTED_HOME", folder.join("store")).current_dir(folder);
    command
}
