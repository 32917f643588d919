//! The document that is kept: targets first, then every figure with its raw rounds.

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

- The delays are compared where all do the same: at retry 5. At the cap most peers save a step, and
  failsafe draws from 31 whole seconds, which suits its generator; the ratio to it is in that table.
- Ours has no generator whose state one call leaves to the next, so calls that do not wait for each
  other overlap in the processor. \"One after the other\" is what a delay costs when they cannot.
- A call that succeeds pays for what is asked before it starts: nothing by default, a clock for a
  deadline, a lock for a breaker. failsafe *is* a breaker; ours with one is the row to hold against it.
- A verdict that has to read text costs as much as reading it: every word of `retry_on` is looked for
  in all of it, and an HTTP status or a timeout spares that.
- A schedule is a verdict for each retry, budget and deadline included; the peers only give delays.
";

fn opening(out: &mut String, machine: &Machine) -> fmt::Result {
    writeln!(
        out,
        "# What `undaunted-policy` costs, beside its peers\n\n\
         Made by a program; do not edit. In `bench/`, on a machine with nothing else to do:\n\n\
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
        "Nanoseconds for doing the thing once. {ROUNDS} rounds; in each, every contestant of a group \
         has its turn, in one order and in the next round in the other. The figure of a round is the \
         fastest of {BATCHES} batches of about {} ms; what is compared is the median of the rounds. \
         Iterations follow each other without a pause, in one thread, with everything in cache: these \
         are lower bounds, for everybody. Differences of a few tenths of a nanosecond say more about \
         where the linker put a loop than about the crates.\n",
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
    writeln!(out, "| contestant | median | of the cheapest peer | {} |", numbers.join(" | "))?;
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
