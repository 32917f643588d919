//! The document: targets first, then every figure with its raw rounds.

use std::fmt::{self, Write};

use undaunted_bench_policy::{Role, Target};

use crate::machine::Machine;
use crate::rounds::{BATCH, BATCHES, Measured, ROUNDS, Row};

pub(crate) fn document(machine: &Machine, groups: &[Measured]) -> Result<String, fmt::Error> {
    let mut out = String::new();
    opening(&mut out, machine)?;
    targets(&mut out, groups)?;
    for group in groups {
        figures(&mut out, group)?;
    }
    out.push_str(NOTES);
    Ok(out)
}

const NOTES: &str = "\
## Notes

- The delays are compared at retry 5, where all contestants do the same work. At the cap most peers save a step,
  and failsafe draws from 31 whole seconds, which suits its generator; that table has the ratio to it.
- Undaunted has no generator whose state one call leaves to the next, so independent calls overlap in the
  processor. \"Dependent calls\" is the cost of a delay when they cannot.
- A successful call pays for what is checked before it starts: nothing by default, a clock for a deadline, a
  lock for a breaker. failsafe *is* a breaker; compare it with the row of Undaunted with a breaker.
- A verdict that has to search text costs as much as the search: every word of `retry_on` is searched for in the
  whole text. An HTTP status or a timeout needs no search.
- A schedule is a verdict for each retry, including budget and deadline; the peers return only delays.
";

fn opening(out: &mut String, machine: &Machine) -> fmt::Result {
    writeln!(
        out,
        "# The cost of `undaunted-policy` and its peers\n\n\
         Generated; do not edit. Run in `bench/`, on an otherwise idle machine:\n\n\
         ```sh\n\
         cargo run --release --locked -p undaunted-bench-policy > POLICY.md\n\
         cargo bench --locked -p undaunted-bench-policy   # the same contestants under criterion\n\
         ```\n\n\
         | | |\n|---|---|\n\
         | processor | {}, {} cores |\n\
         | system | {} |\n\
         | compiler | {}; `lto = \"thin\"`, `codegen-units = 1`, baseline instruction set |\n\
         | peers | {} |\n\
         | load average | {} |\n",
        machine.processor, machine.cores, machine.system, machine.compiler, machine.versions, machine.load
    )?;
    writeln!(
        out,
        "Nanoseconds per operation, over {ROUNDS} rounds. In each round every contestant of a group runs once, and the order is \
         reversed from round to round. The figure of a round is the fastest of {BATCHES} batches of about {} ms, and medians of \
         the rounds are compared. Iterations run back to back in one thread with warm caches, so all figures are lower bounds. \
         Differences of a few tenths of a nanosecond say more about code placement by the linker than about the crates.\n",
        BATCH.as_millis()
    )
}

fn targets(out: &mut String, groups: &[Measured]) -> fmt::Result {
    writeln!(out, "## Targets\n")?;
    writeln!(out, "| group | contestant | target | limit | median | |")?;
    writeln!(out, "|---|---|---|--:|--:|---|")?;
    for group in groups {
        let Some((words, limit)) = group.limit() else {
            continue;
        };
        for row in group.rows.iter().filter(|row| row.role == Role::Ours) {
            let median = row.median();
            let outcome = if median <= limit {
                "met".to_owned()
            } else {
                format!("**missed** by {:.0} %", (median / limit - 1.0) * 100.0)
            };
            writeln!(
                out,
                "| {} | {} | {words} | {limit:.2} | {median:.2} | {outcome} |",
                group.name, row.name
            )?;
        }
    }
    writeln!(out)
}

fn figures(out: &mut String, group: &Measured) -> fmt::Result {
    let cheapest = group.cheapest_peer();
    writeln!(out, "## {}\n\nOne figure: {}.\n", group.name, group.about)?;
    let numbers: Vec<String> = (1..=ROUNDS).map(|round| format!("round {round}")).collect();
    writeln!(out, "| contestant | median | relative to the cheapest peer | {} |", numbers.join(" | "))?;
    writeln!(out, "|---|--:|--:|{}", "--:|".repeat(ROUNDS))?;
    for row in &group.rows {
        let ratio = cheapest.map_or("–".to_owned(), |best| format!("{:.2} ×", row.median() / best));
        let rounds: Vec<String> = row.rounds.rounds().iter().map(|ns| format!("{ns:.2}")).collect();
        writeln!(out, "| {} | {:.2} | {ratio} | {} |", emphasised(row), row.median(), rounds.join(" | "))?;
    }
    writeln!(out)?;
    for row in &group.rows {
        writeln!(out, "- {}: {}", row.name, row.about)?;
    }
    writeln!(out, "- left out: {}", group.left_out)?;
    writeln!(out)
}

fn emphasised(row: &Row) -> String {
    match row.role {
        Role::Ours => format!("**{}**", row.name),
        Role::Variant | Role::Peer | Role::Bare => row.name.to_owned(),
    }
}

impl Measured {
    /// The target in words, and as a number of nanoseconds.
    fn limit(&self) -> Option<(String, f64)> {
        match self.target? {
            Target::OfCheapestPeer(part) => {
                let words = format!("at most {part} × the cheapest peer");
                self.cheapest_peer().map(|best| (words, part * best))
            }
            Target::Nanoseconds(limit) => Some((format!("under {limit} ns"), limit)),
        }
    }
}
