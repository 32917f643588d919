//! F: the cost of an item in a job of a thousand items and in one of a million.

use undaunted_bench_figures::{Figures, alternate};

use crate::bench::Bench;
use crate::chart::{Bar, Chart};
use crate::peers::{Engine, number};
use crate::process::Reason;
use crate::section::{Section, Table, Target, fine, median, range, whole};

const SIZES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];

pub(super) fn measure(bench: &Bench) -> Section {
    let turns: Vec<(&Engine, u32)> = bench
        .engines()
        .into_iter()
        .flat_map(|engine| sizes(bench, engine).map(move |size| (engine, size)))
        .collect();
    let rounds = usize::try_from(bench.sized(2, 3)).unwrap_or(2);
    let measured = alternate(rounds, turns.len(), |round, who| {
        let &(engine, size) = turns.get(who).ok_or("no such contestant")?;
        eprintln!("F, round {round}: {}, {size}", engine.name);
        let answer = bench.turn(engine)?.measure("noop", size)?;
        Ok(number(&answer, "seconds")? * 1e6 / f64::from(size))
    });
    let measured: Vec<(&Engine, u32, Result<Figures, Reason>)> = turns
        .into_iter()
        .zip(measured)
        .map(|((engine, size), costs)| (engine, size, costs.map(Figures::of)))
        .collect();
    let ours: Vec<&Figures> = measured
        .iter()
        .filter(|(engine, ..)| bench.is_ours(engine))
        .filter_map(|(_, _, costs)| costs.as_ref().ok())
        .collect();
    Section {
        title: "F. Growth".to_owned(),
        about: format!(
            "Microseconds per no-op item, as in A, by the number of items. A peer gets no more items than it executes in about {} s.",
            seconds(bench)
        ),
        targets: flat(&ours).into_iter().collect(),
        tables: vec![table(bench, &measured)],
        chart: Some(("growth", chart(bench, &measured))),
        ..Section::default()
    }
}

/// All sizes for Undaunted; for a peer those that it executes in time.
fn sizes(bench: &Bench, engine: &Engine) -> impl Iterator<Item = u32> + use<> {
    let longest = if bench.is_ours(engine) { u32::MAX } else { seconds(bench) };
    let most = engine.pace.saturating_mul(longest).max(1_000);
    SIZES.into_iter().filter(move |size| *size <= most)
}

/// Roughly how long the turn of a peer may take.
const fn seconds(bench: &Bench) -> u32 {
    bench.sized(3, 12)
}

/// The ratio of the most expensive size to the cheapest one, in each round.
fn flat(sizes: &[&Figures]) -> Option<Target> {
    let rounds = sizes.first()?.rounds().len();
    let ratio = |round: usize| {
        let costs = sizes.iter().filter_map(|size| size.rounds().get(round));
        let (low, high) = costs
            .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), cost| (low.min(*cost), high.max(*cost)));
        high / low
    };
    let ratios: Figures = (0..rounds).map(ratio).collect();
    Some(Target {
        words: "flat within 20 %: the most expensive size costs at most 1.2 times the cheapest".to_owned(),
        measured: format!("{} ({})", median(&ratios, fine), range(&ratios, fine)),
        reached: 1.2 / ratios.median(),
        why: "the fixed cost of starting and ending a job dominates at a thousand items",
    })
}

fn table(bench: &Bench, measured: &[(&Engine, u32, Result<Figures, Reason>)]) -> Table {
    let row = |(engine, size, costs): &(&Engine, u32, Result<Figures, Reason>)| {
        let name =
            if bench.is_ours(engine) { format!("**{}**", engine.name) } else { engine.name.to_owned() };
        let [cost, spread] = match costs {
            Ok(costs) => [median(costs, fine), range(costs, fine)],
            Err(reason) => ["–".to_owned(), reason.clone()],
        };
        vec![name, whole(f64::from(*size)), cost, spread]
    };
    Table {
        head: ["", "items", "µs per item", "range"].map(str::to_owned).to_vec(),
        rows: measured.iter().map(row).collect(),
    }
}

fn chart(bench: &Bench, measured: &[(&Engine, u32, Result<Figures, Reason>)]) -> Chart {
    let bar = |(engine, size, costs): &(&Engine, u32, Result<Figures, Reason>)| {
        let value = costs.as_ref().ok()?.median();
        Some(Bar {
            label: format!("{}, {}", engine.name, whole(f64::from(*size))),
            text: fine(value),
            ours: bench.is_ours(engine),
            value,
        })
    };
    // The bars of slow peers would make all others invisible.
    let fast = |(engine, ..): &&(&Engine, u32, Result<Figures, Reason>)| engine.pace >= 10_000;
    Chart {
        title: "F. Microseconds per item, by the number of items".to_owned(),
        bars: measured.iter().filter(fast).filter_map(bar).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_the_ratio_of_the_most_expensive_to_the_cheapest_size_of_a_round() {
        let (few, many) = (Figures::of(vec![1.0, 4.0]), Figures::of(vec![1.5, 4.0]));
        let target = flat(&[&few, &many]);
        assert_eq!(target.map(|target| target.measured), Some("1.25 (1.00–1.50)".to_owned()));
        assert!(flat(&[]).is_none());
    }
}
