//! The result of a workload: tables, targets, notes and a chart.

use undaunted_bench_figures::Figures;

use crate::chart::{Bar, Chart};
use crate::process::Reason;

#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// What is done, how often and what is counted.
    pub(crate) about: String,
    pub(crate) tables: Vec<Table>,
    /// The targets of the workload.
    pub(crate) targets: Vec<Target>,
    /// Remarks below the tables.
    pub(crate) notes: Vec<String>,
    /// A picture, and the name of its file.
    pub(crate) chart: Option<(&'static str, Chart)>,
}

/// A table: the first column has names, the others have figures.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A target and the measured value.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) words: String,
    pub(crate) measured: String,
    /// The reached share of the target: 1 or more has reached it.
    pub(crate) reached: f64,
    /// Why the target is missed, if it is.
    pub(crate) why: &'static str,
}

/// What a contestant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Ours,
    /// Another product.
    Peer,
    /// The minimum that the machine needs for the same work.
    Floor,
}

/// The rates of one contestant, per second.
#[derive(Debug)]
pub(crate) struct Rate {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The items of a turn.
    pub(crate) items: u32,
    /// The figures, or why there are none.
    pub(crate) outcome: Result<Figures, Reason>,
}

/// The first contestant of Undaunted, with which the others are compared.
pub(crate) fn ours(rates: &[Rate]) -> Option<&Figures> {
    let mut rates = rates.iter().filter(|rate| rate.role == Role::Ours);
    rates.find_map(|rate| rate.outcome.as_ref().ok())
}

pub(crate) fn best(rates: &[Rate]) -> Option<(&str, &Figures)> {
    let peers = rates.iter().filter(|rate| rate.role == Role::Peer);
    let figures = peers.filter_map(|rate| Some((rate.name.as_str(), rate.outcome.as_ref().ok()?)));
    figures.max_by(|(_, left), (_, right)| left.median().total_cmp(&right.median()))
}

/// Rates as a table, with the speed-up of Undaunted over each contestant.
pub(crate) fn table(unit: &str, rates: &[Rate]) -> Table {
    let ours = ours(rates);
    let row = |rate: &Rate| {
        let name = match rate.role {
            Role::Ours => format!("**{}**", rate.name),
            Role::Peer => rate.name.clone(),
            Role::Floor => format!("*floor: {}*", rate.name),
        };
        let mut row = vec![name, whole(f64::from(rate.items))];
        match &rate.outcome {
            Ok(figures) => {
                row.extend([median(figures, whole), range(figures, whole)]);
                let ratio = ours.map(|ours| ours.over(figures));
                let of = |ratio: &Figures| format!("{} ({})", median(ratio, fine), range(ratio, fine));
                row.push(ratio.as_ref().map_or_else(dash, of));
            }
            Err(reason) => row.extend([dash(), reason.clone(), dash()]),
        }
        row
    };
    Table {
        head: ["", "items", unit, "range", "Undaunted's speed-up"].map(str::to_owned).to_vec(),
        rows: rates.iter().map(row).collect(),
    }
}

/// Rates as bars, without a floor that is so far above the others that their bars would vanish.
pub(crate) fn bars(title: String, rates: &[Rate]) -> Chart {
    let others = rates.iter().filter(|rate| rate.role != Role::Floor);
    let medians = others.filter_map(|rate| Some(rate.outcome.as_ref().ok()?.median()));
    let most = medians.fold(0.0, f64::max) * 3.0;
    let bar = |rate: &Rate| {
        let value = rate.outcome.as_ref().ok()?.median();
        let shown = rate.role != Role::Floor || value <= most;
        shown.then(|| Bar {
            label: rate.name.clone(),
            text: whole(value),
            ours: rate.role == Role::Ours,
            value,
        })
    };
    let bars = rates.iter().filter_map(bar).collect();
    Chart { title, bars }
}

/// The median of figures, as text.
pub(crate) fn median(figures: &Figures, text: fn(f64) -> String) -> String {
    text(figures.median())
}

/// The range of figures, as text.
pub(crate) fn range(figures: &Figures, text: fn(f64) -> String) -> String {
    let (low, high) = figures.range();
    format!("{}–{}", text(low), text(high))
}

pub(crate) fn dash() -> String {
    "–".to_owned()
}

/// A whole number, in groups of three digits.
pub(crate) fn whole(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digits.len().saturating_sub(place).is_multiple_of(3) && digit.is_ascii_digit() {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

/// A number with about three significant digits.
pub(crate) fn fine(figure: f64) -> String {
    match figure.abs() {
        size if size >= 100.0 => whole(figure),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 0.1 => format!("{figure:.2}"),
        _ => format!("{figure:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(name: &str, role: Role, outcome: Result<Vec<f64>, &str>) -> Rate {
        let outcome = outcome.map(Figures::of).map_err(str::to_owned);
        let name = name.to_owned();
        Rate { name, role, items: 1000, outcome }
    }

    #[test]
    fn a_table_compares_within_rounds_and_names_failed_contestants() {
        let rates = [
            rate("ours", Role::Ours, Ok(vec![20_000.0, 30_000.0])),
            rate("slow", Role::Peer, Ok(vec![1000.0, 3000.0])),
            rate("none", Role::Peer, Err("it is not there")),
        ];
        let rows = table("a second", &rates).rows;
        let texts: Vec<String> = rows.iter().map(|row| row.join(" | ").replace('\u{a0}', " ")).collect();
        assert_eq!(
            texts,
            [
                "**ours** | 1 000 | 25 000 | 20 000–30 000 | 1.00 (1.00–1.00)",
                "slow | 1 000 | 2 000 | 1 000–3 000 | 15.0 (10.0–20.0)",
                "none | 1 000 | – | it is not there | –",
            ]
        );
        assert_eq!(best(&rates).map(|(name, _)| name), Some("slow"));
    }

    #[test]
    fn a_floor_far_above_the_others_is_not_drawn() {
        let rates = [
            rate("ours", Role::Ours, Ok(vec![100.0])),
            rate("near", Role::Floor, Ok(vec![250.0])),
            rate("far", Role::Floor, Ok(vec![1000.0])),
        ];
        let drawn = bars(String::new(), &rates).bars;
        let labels: Vec<&str> = drawn.iter().map(|bar| bar.label.as_str()).collect();
        assert_eq!(labels, ["ours", "near"]);
    }

    #[test]
    fn numbers_are_grouped_and_have_three_significant_digits() {
        assert_eq!(whole(1_234_567.4).replace('\u{a0}', " "), "1 234 567");
        assert_eq!(whole(-1234.0).replace('\u{a0}', " "), "-1 234");
        assert_eq!(
            [999.6, 12.34, 1.234, 0.01234].map(fine).join(" ").replace('\u{a0}', " "),
            "1 000 12.3 1.23 0.0123"
        );
    }
}
