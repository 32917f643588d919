//! A: recorded items that do nothing.

use std::cell::Cell;
use std::process::Stdio;

use undaunted_bench_figures::{Figures, alternate};

use crate::bench::Bench;
use crate::floor::{GROUP, append};
use crate::peers::{Engine, number};
use crate::process::{Reason, Running, bound, bytes_in, finish};
use crate::section::{Rate, Role, Section, Target, bars, best, fine, median, ours, range, table};

/// The number of concurrent requests.
const WIDTH: &str = "64";

enum Contestant<'a> {
    Engine(&'a Engine),
    /// One flow of the product, whose step is called over HTTP for each item.
    Flow,
    /// The same requests without an engine.
    Client,
    /// The same bytes without an engine.
    Append,
}

pub(super) fn measure(bench: &Bench) -> Section {
    let engines = bench.engines().into_iter();
    let mut contestants: Vec<_> = engines.map(Contestant::Engine).collect();
    contestants.insert(1, Contestant::Flow);
    contestants.extend([Contestant::Append, Contestant::Client]);
    let bytes = Cell::new(100);
    let steps = steps(bench);
    let measured = alternate(bench.rounds(), contestants.len(), |round, who| {
        let contestant = contestants.get(who).ok_or("no such contestant")?;
        eprintln!("A, round {round}: {}", contestant.name());
        let items = contestant.items(bench);
        match contestant {
            Contestant::Engine(engine) => engine_turn(bench, engine, items, &bytes),
            Contestant::Append => append(&bench.scratch.turn()?, items, bytes.get()),
            Contestant::Flow => request_turn(bench, steps.as_ref(), "one", items),
            Contestant::Client => request_turn(bench, steps.as_ref(), "bare", items),
        }
    });
    let rates: Vec<Rate> = contestants
        .iter()
        .zip(measured)
        .map(|(contestant, rates)| Rate {
            name: contestant.name(),
            role: contestant.role(bench),
            items: contestant.items(bench),
            outcome: rates.map(Figures::of),
        })
        .collect();
    Section {
        title: "A. Recorded no-op items".to_owned(),
        about: format!(
            "Every item is executed once, and its start and its end are on the disk. Timing starts when all items are submitted, \
             except for Restate and DBOS, where submission and execution cannot be separated. The first floor appends the {} \
             bytes that an item of Undaunted takes on the disk, {} items per sync. Over HTTP, one flow and a bare client call the \
             same step server with {WIDTH} concurrent requests; see [HTTP.md](HTTP.md).",
            bytes.get(),
            GROUP,
        ),
        tables: vec![table("items per second", &rates)],
        targets: target(&rates).into_iter().collect(),
        chart: Some(("noop", bars("A. Durable no-op items per second".to_owned(), &rates))),
        ..Section::default()
    }
}

/// The target: ten times the best peer.
pub(super) fn target(rates: &[Rate]) -> Option<Target> {
    let (name, figures) = best(rates)?;
    let ratio = ours(rates)?.over(figures);
    Some(Target {
        words: "at least 10 times the best durable peer".to_owned(),
        measured: format!("{} times ({}) {name}", median(&ratio, fine), range(&ratio, fine)),
        reached: ratio.median() / 10.0,
        why: "the best peers fetch and complete thousands of items with one statement and one sync",
    })
}

fn engine_turn(bench: &Bench, engine: &Engine, items: u32, bytes: &Cell<u32>) -> Result<f64, Reason> {
    let turn = bench.turn(engine)?;
    let answer = turn.measure("noop", items)?;
    if bench.is_ours(engine) {
        let each = bytes_in(turn.folder()).checked_div(u64::from(items));
        bytes.set(u32::try_from(each.unwrap_or_default()).unwrap_or(u32::MAX).max(1));
    }
    Ok(f64::from(items) / number(&answer, "seconds")?)
}

/// Starts a server whose steps respond at once, and returns its URL.
fn steps(bench: &Bench) -> Result<(Running, String), Reason> {
    let mut serve = bound(bench.benchmark("undaunted-bench-http"));
    // The server ends when its input does; `Running` keeps the input open.
    let mut running = Running::start(serve.arg("serve").stdin(Stdio::piped()))?;
    let url = running.first_line()?;
    Ok((running, url))
}

fn request_turn(
    bench: &Bench,
    steps: Result<&(Running, String), &Reason>,
    how: &str,
    items: u32,
) -> Result<f64, Reason> {
    let (_, url) = steps.map_err(Clone::clone)?;
    let mut command = bound(bench.benchmark("undaunted-bench-http"));
    command.arg(how);
    if how == "one" {
        command.arg(bench.scratch.turn()?);
    }
    let said = finish(command.args([url, WIDTH, &items.to_string()]))?;
    let seconds: f64 = said.trim().parse().map_err(|_| said.clone())?;
    Ok(f64::from(items) / seconds)
}

impl Contestant<'_> {
    fn name(&self) -> String {
        match self {
            Self::Engine(engine) => engine.name.to_owned(),
            Self::Flow => "Undaunted, over loopback HTTP".to_owned(),
            Self::Client => "a bare HTTP client calling the same steps".to_owned(),
            Self::Append => "append and sync the same bytes".to_owned(),
        }
    }

    fn role(&self, bench: &Bench) -> Role {
        match self {
            Self::Engine(engine) if !bench.is_ours(engine) => Role::Peer,
            Self::Engine(_) | Self::Flow => Role::Ours,
            Self::Client | Self::Append => Role::Floor,
        }
    }

    fn items(&self, bench: &Bench) -> u32 {
        let pace = match self {
            Self::Engine(engine) => engine.pace,
            Self::Flow | Self::Client => 20_000,
            Self::Append => 500_000,
        };
        pace.saturating_mul(bench.sized(1, 4))
    }
}
