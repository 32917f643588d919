//! The document that is kept.

use std::fmt::{self, Write};

use crate::machine::Machine;
use crate::peers::Peer;
use crate::section::{Section, Table, Target};

/// The facts for the beginning of the document.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    /// The command that generates the document.
    pub(crate) command: String,
    pub(crate) rounds: usize,
    /// The load average before and after.
    pub(crate) load: [String; 2],
    pub(crate) machine: &'a Machine,
    pub(crate) version: String,
    /// The database's version, or why there is none.
    pub(crate) postgres: String,
    pub(crate) peers: &'a [Peer],
}

/// All of it.
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
        "# Undaunted and its peers\n\nGenerated; do not edit. Run on an otherwise idle machine:\n\n```sh\n{}\n```\n\n| | |\n|---|---|",
        opening.command
    )?;
    for (name, value) in &opening.machine.facts {
        writeln!(out, "| {name} | {value} |")?;
    }
    let [before, after] = &opening.load;
    writeln!(out, "| load average | {before} before, {after} after |\n")?;
    writeln!(
        out,
        "The same work on Undaunted and on popular alternatives. {} rounds unless a section says otherwise. In each round every \
         contestant runs once with an empty store, and the order is reversed from round to round. Figures are medians, followed \
         by the range from minimum to maximum; a ratio compares two figures of the same round. Only the work is timed, not \
         installation and start-up. An item counts only when its record is synced, for every contestant that keeps records. No \
         figure is checked against a limit.\n",
        opening.rounds
    )
}

fn peers(out: &mut String, opening: &Opening<'_>) -> fmt::Result {
    writeln!(out, "## Contestants\n\n| | version | settings |\n|---|---|---|")?;
    writeln!(
        out,
        "| **Undaunted** | {} | defaults; every start is synced before it begins, every outcome before anything depends on it |",
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
        "| PostgreSQL, for the peers that need it | {} | defaults: `fsync` and `synchronous_commit` on; over loopback, on the same disk |\n",
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

/// Escapes text for a table cell.
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
## Contestants

| | version | settings |
|---|---|---|
| **Undaunted** | 1.2 | defaults; every start is synced before it begins, every outcome before anything depends on it |
| good | good 3.4 | fsync on |
| bad | **could not be installed** | no net |
| PostgreSQL, for the peers that need it | PostgreSQL 15 | defaults: `fsync` and `synchronous_commit` on; over loopback, on the same disk |

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
    fn the_document_names_the_machine_the_versions_the_targets_and_missing_peers() -> Result<(), fmt::Error> {
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
        let (head, rest) = document.split_at(document.find("## Contestants").unwrap_or_default());
        assert!(head.contains("bench/run --quick\n") && head.contains("| processor | one |"), "{head}");
        assert!(head.contains("0.1 before, 2.0 after") && head.contains("2 rounds"), "{head}");
        assert_eq!(rest.replace("|  |", "| |"), EXPECTED);
        Ok(())
    }
}
