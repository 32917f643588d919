//! The document that is kept.

use std::fmt::{self, Write};

use crate::machine::Machine;
use crate::peers::Peer;
use crate::section::{Section, Table, Target};

/// What stands above the workloads.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    /// The command that makes the document again.
    pub(crate) command: String,
    /// How many rounds there were.
    pub(crate) rounds: usize,
    /// How busy the machine was, before and after.
    pub(crate) load: [String; 2],
    /// The machine.
    pub(crate) machine: &'a Machine,
    /// The product's version.
    pub(crate) version: String,
    /// The database's version, or why there is none.
    pub(crate) postgres: String,
    /// The peers.
    pub(crate) peers: &'a [Peer],
}

/// All of it.
///
/// # Errors
/// Only what writing to a string may have.
pub(crate) fn document(opening: &Opening<'_>, sections: &[Section]) -> Result<String, fmt::Error> {
    let mut out = String::new();
    begin(&mut out, opening)?;
    peers(&mut out, opening)?;
    reached(&mut out, sections)?;
    for section in sections {
        part(&mut out, section)?;
    }
    Ok(out)
}

fn begin(out: &mut String, opening: &Opening<'_>) -> fmt::Result {
    writeln!(
        out,
        "# Side by side\n\nMade by a program; do not edit. On a machine with nothing else to do:\n\n```sh\n{}\n```\n\n| | |\n|---|---|",
        opening.command
    )?;
    for (name, value) in &opening.machine.facts {
        writeln!(out, "| {name} | {value} |")?;
    }
    let [before, after] = &opening.load;
    writeln!(out, "| load average | {before} before, {after} after |\n")?;
    writeln!(
        out,
        "The same work on Undaunted and on what people use today. {} rounds unless a part says otherwise; in each, every contestant has its \
         turn, in one order and in the next round in the other, with an empty store. Figures are medians, with the least and the greatest behind \
         them; a ratio is one of two figures of the same round. Time is taken around the work, not around installing and starting. Everything \
         that keeps a record syncs it before it counts. Nothing is asserted about time.\n",
        opening.rounds
    )
}

fn peers(out: &mut String, opening: &Opening<'_>) -> fmt::Result {
    writeln!(out, "## Who takes part\n\n| | version | settings |\n|---|---|---|")?;
    writeln!(
        out,
        "| **Undaunted** | {} | as it comes; every start is synced before it begins, every outcome before anything relies on it |",
        opening.version
    )?;
    for peer in opening.peers {
        match &peer.outcome {
            Ok(prepared) => {
                writeln!(out, "| {} | {} | {} |", peer.name, prepared.version, prepared.settings)?
            }
            Err(reason) => {
                writeln!(out, "| {} | **could not be installed** | {} |", peer.name, cell(reason))?
            }
        }
    }
    writeln!(
        out,
        "| PostgreSQL, for those that need it | {} | as it comes: `fsync` and `synchronous_commit` on; on loopback, on the same disk |\n",
        cell(&opening.postgres)
    )
}

fn reached(out: &mut String, sections: &[Section]) -> fmt::Result {
    writeln!(out, "## Targets\n\n| | target | measured | |\n|---|---|---|---|")?;
    for section in sections {
        let letter = section.title.split(['.', ',']).next().unwrap_or_default();
        for target in &section.targets {
            writeln!(out, "| {letter} | {} | {} | {} |", target.words, target.measured, outcome(target))?;
        }
    }
    writeln!(out)
}

fn outcome(target: &Target) -> String {
    if target.reached >= 1.0 {
        "reached".to_owned()
    } else if target.reached > 0.0 {
        format!("**missed**: {:.0} % of it; {}", target.reached * 100.0, target.why)
    } else {
        format!("**missed**; {}", target.why)
    }
}

fn part(out: &mut String, section: &Section) -> fmt::Result {
    writeln!(out, "## {}\n\n{}\n", section.title, section.about)?;
    for table in &section.tables {
        rows(out, table)?;
    }
    for note in &section.notes {
        writeln!(out, "{note}\n")?;
    }
    if let Some((name, chart)) = &section.chart {
        writeln!(out, "![{}](charts/{name}.svg)\n", chart.title)?;
    }
    Ok(())
}

fn rows(out: &mut String, table: &Table) -> fmt::Result {
    if table.head.is_empty() {
        return Ok(());
    }
    writeln!(out, "| {} |", table.head.join(" | "))?;
    writeln!(out, "|---|{}", "--:|".repeat(table.head.len().saturating_sub(1)))?;
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(|text| cell(text)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    writeln!(out)
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Chart;
    use crate::peers::Prepared;

    fn section() -> Section {
        let texts = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        let target = |reached, why| Target {
            words: "twice as fast".to_owned(),
            measured: "1.5".to_owned(),
            reached,
            why,
        };
        Section {
            title: "A. Work".to_owned(),
            about: "What is done.".to_owned(),
            tables: vec![Table {
                head: texts(["", "a second"]),
                rows: vec![texts(["**ours**", "2"]), texts(["a|b", "1"])],
            }],
            targets: vec![target(1.0, ""), target(0.75, "it is slow"), target(0.0, "it is lost")],
            notes: vec!["A note.".to_owned()],
            chart: Some(("work", Chart { title: "Work".to_owned(), bars: Vec::new() })),
        }
    }

    const EXPECTED: &str = "\
## Who takes part

| | version | settings |
|---|---|---|
| **Undaunted** | 1.2 | as it comes; every start is synced before it begins, every outcome before anything relies on it |
| good | good 3.4 | fsync on |
| bad | **could not be installed** | no net |
| PostgreSQL, for those that need it | PostgreSQL 15 | as it comes: `fsync` and `synchronous_commit` on; on loopback, on the same disk |

## Targets

| | target | measured | |
|---|---|---|---|
| A | twice as fast | 1.5 | reached |
| A | twice as fast | 1.5 | **missed**: 75 % of it; it is slow |
| A | twice as fast | 1.5 | **missed**; it is lost |

## A. Work

What is done.

| | a second |
|---|--:|
| **ours** | 2 |
| a\\|b | 1 |

A note.

![Work](charts/work.svg)

";

    #[test]
    fn the_document_names_the_machine_the_versions_the_targets_and_who_is_missing() -> Result<(), fmt::Error>
    {
        let machine = Machine { facts: vec![("processor", "one".to_owned())] };
        let good = Prepared { version: "good 3.4".to_owned(), settings: "fsync on", engines: Vec::new() };
        let peers = [
            Peer { name: "good", outcome: Ok(good) },
            Peer { name: "bad", outcome: Err("no net".to_owned()) },
        ];
        let opening = Opening {
            command: "bench/run --quick".to_owned(),
            rounds: 2,
            load: ["0.1".to_owned(), "2.0".to_owned()],
            machine: &machine,
            version: "1.2".to_owned(),
            postgres: "PostgreSQL 15".to_owned(),
            peers: &peers,
        };
        let document = document(&opening, &[section()])?;
        let (head, rest) = document.split_at(document.find("## Who").unwrap_or_default());
        assert!(head.contains("bench/run --quick\n") && head.contains("| processor | one |"), "{head}");
        assert!(head.contains("0.1 before, 2.0 after") && head.contains("2 rounds"), "{head}");
        assert_eq!(rest.replace("|  |", "| |"), EXPECTED);
        Ok(())
    }
}
