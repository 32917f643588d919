//! B: every item fails once and then succeeds.

use undaunted_bench_figures::{Figures, alternate};

use crate::bench::Bench;
use crate::peers::{Engine, number};
use crate::process::Reason;
use crate::section::{Rate, Role, Section, bars, table};
use crate::workload::noop::target;

pub(super) fn measure(bench: &Bench) -> Section {
    let engines = bench.engines();
    let items = |engine: &Engine| (engine.pace / 2).saturating_mul(bench.sized(1, 4)).max(1);
    let measured = alternate(bench.rounds(), engines.len(), |round, who| {
        let engine = engines.get(who).ok_or("no such contestant")?;
        eprintln!("B, round {round}: {}", engine.name);
        turn(bench, engine, items(engine))
    });
    let rates: Vec<Rate> = engines
        .iter()
        .zip(measured)
        .map(|(engine, rates)| Rate {
            name: engine.name.to_owned(),
            role: if bench.is_ours(engine) { Role::Ours } else { Role::Peer },
            items: items(engine),
            outcome: rates.map(Figures::of),
        })
        .collect();
    Section {
        title: "B. Every item fails once and then succeeds".to_owned(),
        about: "Two attempts per item, with the shortest delay between them that can be configured. A delay that cannot be configured is subtracted from the time."
            .to_owned(),
        tables: vec![table("attempts per second", &rates)],
        targets: target(&rates).into_iter().collect(),
        notes: vec![
            "DBOS keeps no record of a failed attempt; pg-boss and graphile-worker keep only the last error.".to_owned(),
        ],
        chart: Some(("retry", bars("B. Attempts per second, every item failing once".to_owned(), &rates))),
    }
}

fn turn(bench: &Bench, engine: &Engine, items: u32) -> Result<f64, Reason> {
    let answer = bench.turn(engine)?.measure("retry", items)?;
    let waited = number(&answer, "delay").unwrap_or_default();
    let seconds = number(&answer, "seconds")? - waited;
    Ok(f64::from(items) * 2.0 / seconds)
}
