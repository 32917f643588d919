//! Measures the commands on stores with jobs of every size.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use undaunted_bench_figures::{Figures, alternate};
use undaunted_runner::folder::LocalFolder;

use crate::filled::JOB;
use crate::looks::{self, FIRST};
use crate::turn::{Turn, bytes_in, turn};

/// The measured program, sizes and rounds.
pub(crate) struct Setting {
    pub(crate) undaunted: PathBuf,
    /// The folder in which stores are written and removed.
    pub(crate) folder: PathBuf,
    pub(crate) sizes: Vec<u32>,
    pub(crate) rounds: usize,
}

/// The figures of one job.
pub(crate) struct Measured {
    pub(crate) items: u32,
    /// The first command, which creates the index.
    pub(crate) cold: Result<Turn, String>,
    /// In the order of [`looks::all`].
    pub(crate) warm: Vec<Result<Medians, String>>,
    /// The times of the reader in process, by question.
    pub(crate) reader: Result<Vec<(String, f64)>, String>,
    pub(crate) journal: u64,
    pub(crate) index: u64,
}

/// The medians of the times in milliseconds, and the maximum memory in megabytes.
pub(crate) struct Medians {
    pub(crate) first: f64,
    pub(crate) all: f64,
    pub(crate) memory: f64,
    pub(crate) lines: u64,
}

impl Setting {
    /// Measures a job that waits, or one that has ended.
    pub(crate) fn measure(&self, items: u32, waits: bool) -> Result<Measured, Box<dyn Error>> {
        let kind = if waits { "waiting" } else { "ended" };
        let folder = self.folder.join(format!("show-{items}-{kind}"));
        eprintln!("{items} items, {kind}");
        own(&["write", &path(&folder), &items.to_string(), kind])?;
        let measured = self.look(&folder, items);
        std::fs::remove_dir_all(&folder)?;
        Ok(measured)
    }

    fn look(&self, folder: &Path, items: u32) -> Measured {
        let journal = bytes_in(folder);
        let (program, store) = (path(&self.undaunted), path(folder));
        let run = |typed: &str| {
            let command = [program.as_str(), "--store", store.as_str()].into_iter();
            let command: Vec<&str> = command.chain(typed.split(' ')).collect();
            turn(&command).map_err(|error| error.to_string())
        };
        let cold = run(FIRST);
        let index = LocalFolder::new(folder).job(JOB).index();
        let index = index.metadata().map_or(0, |data| data.len());
        let looks: Vec<_> = looks::all().collect();
        let warm = alternate(self.rounds, looks.len(), |_, which| {
            let look = looks.get(which).ok_or("no such command")?;
            run(look.typed)
        });
        let warm = warm.into_iter().map(|turns| turns.map(|it| medians(&it)));
        Measured {
            items,
            cold,
            warm: warm.collect(),
            reader: reader(&store, self.rounds).map_err(|error| error.to_string()),
            journal,
            index,
        }
    }
}

fn medians(turns: &[Turn]) -> Medians {
    let median = |of: fn(&Turn) -> Duration| {
        let figures: Figures = turns.iter().map(|it| millis(of(it))).collect();
        figures.median()
    };
    let most = turns.iter().map(|it| it.memory).max().unwrap_or_default();
    Medians {
        first: median(|it| it.first),
        all: median(|it| it.all),
        memory: megabytes(most),
        lines: turns.first().map_or(0, |it| it.lines),
    }
}

pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(crate) fn megabytes(kilobytes: u64) -> f64 {
    let bytes = kilobytes.saturating_mul(1024);
    u32::try_from(bytes / 100_000).map_or(f64::NAN, |tenths| f64::from(tenths) / 10.0)
}

/// The median times of the reader's answers in milliseconds. Each round runs in its own process.
fn reader(store: &str, rounds: usize) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
    let mut answers: Vec<(String, Vec<f64>)> = Vec::new();
    for _ in 0..rounds {
        for (place, line) in own(&["read", store])?.lines().enumerate() {
            let (time, name) = line.split_once(' ').ok_or("the reader printed no time")?;
            let time = time.parse()?;
            match answers.get_mut(place) {
                Some((_, times)) => times.push(time),
                None => answers.push((name.to_owned(), vec![time])),
            }
        }
    }
    let medians = answers.into_iter();
    let medians = medians.map(|(name, times)| (name, Figures::of(times).median()));
    Ok(medians.collect())
}

/// Runs this program in another mode.
fn own(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).args(arguments).output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", arguments.join(" "), complaint.trim()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
