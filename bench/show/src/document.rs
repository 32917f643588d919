//! The document about jobs that wait and jobs that have ended, by size.

use std::fmt::{self, Write};

use crate::looks::{FIRST, GROUPS, Look};
use crate::measured::{Measured, Medians, megabytes, millis};
use crate::turn::Turn;

/// The facts for the beginning of the document.
pub(crate) struct Opening {
    pub(crate) is_quick: bool,
    pub(crate) rounds: usize,
    pub(crate) machine: String,
    pub(crate) version: String,
}

pub(crate) fn document(
    opening: &Opening,
    waiting: &[Measured],
    ended: &[Measured],
) -> Result<String, fmt::Error> {
    let mut out = String::new();
    begin(&mut out, opening)?;
    for (title, sizes) in [("A job that has not ended", waiting), ("A job that has ended", ended)] {
        writeln!(out, "\n## {title}")?;
        commands(&mut out, sizes)?;
        index(&mut out, sizes)?;
        reader(&mut out, sizes)?;
        failures(&mut out, sizes)?;
    }
    Ok(out)
}

fn begin(out: &mut String, opening: &Opening) -> fmt::Result {
    let Opening { is_quick, rounds, machine, version } = opening;
    let quick = if *is_quick { " --quick" } else { "" };
    writeln!(
        out,
        "# Inspecting jobs\n
Generated; do not edit. Run in `bench/`, with the product built and a folder on a physical disk:\n
```sh
cargo run --release --locked -p undaunted-bench-show -- measure{quick} FOLDER > SHOW.md
```\n
{version} on {machine}. Cells are milliseconds / megabytes: the median wall-clock time and the maximum peak resident memory over {rounds} rounds. In each round every command runs once, and the order is reversed from round to round. Files are in the page cache. No figure is checked against a limit.\n
Of a hundred items, 98 succeed at the first attempt and one at the second. One item of a hundred, but at most 10 000 of a job, is a dead letter after two attempts, with one of four errors that contain numbers. In a job that has not ended, the last ten items wait for their retries, and no process owns the job. The engine writes the store without running any command.",
    )
}

fn head(out: &mut String, first: &str, sizes: &[Measured]) -> fmt::Result {
    write!(out, "\n| {first} |")?;
    for size in sizes {
        write!(out, " {} |", spaced(size.items))?;
    }
    writeln!(out, "\n|---|{}", "--:|".repeat(sizes.len()))
}

fn row(out: &mut String, name: &str, cells: impl Iterator<Item = String>) -> fmt::Result {
    write!(out, "| {name} |")?;
    for cell in cells {
        write!(out, " {cell} |")?;
    }
    writeln!(out)
}

fn commands(out: &mut String, sizes: &[Measured]) -> fmt::Result {
    let mut place = 0;
    for group in &GROUPS {
        head(out, &format!("{}, by items", group.title), sizes)?;
        for Look { typed, streams } in group.looks {
            let cell = |of: fn(&Medians) -> String| {
                let measured = sizes.iter().map(move |size| size.warm.get(place));
                measured.map(move |found| match found {
                    Some(Ok(medians)) => of(medians),
                    _ => "failed".to_owned(),
                })
            };
            if *streams {
                let first = format!("`{typed}`, first line");
                row(out, &first, cell(|it| format!("{:.0}", it.first)))?;
            }
            row(out, &format!("`{typed}`"), cell(all))?;
            if *streams {
                let lines = cell(|it| it.lines.to_string());
                row(out, &format!("`{typed}`, lines"), lines)?;
            }
            place += 1;
        }
    }
    Ok(())
}

fn all(medians: &Medians) -> String {
    format!("{:.0} / {:.0}", medians.all, medians.memory)
}

fn index(out: &mut String, sizes: &[Measured]) -> fmt::Result {
    head(out, "The index, by items", sizes)?;
    let cold = sizes.iter().map(|size| match &size.cold {
        Ok(Turn { all, memory, .. }) => {
            format!("{:.0} / {:.0}", millis(*all), megabytes(*memory))
        }
        Err(_) => "failed".to_owned(),
    });
    row(out, &format!("without an index: `{FIRST}`"), cold)?;
    for (name, of) in [
        ("the store, bytes per item", (|size| size.journal) as fn(&Measured) -> u64),
        ("the index, bytes per item", |size| size.index),
    ] {
        let cells = sizes.iter().map(|size| match of(size) {
            0 => "none".to_owned(),
            bytes => bytes.checked_div(size.items.into()).unwrap_or_default().to_string(),
        });
        row(out, name, cells)?;
    }
    Ok(())
}

fn reader(out: &mut String, sizes: &[Measured]) -> fmt::Result {
    let answers = |size: &Measured| size.reader.as_ref().cloned().unwrap_or_default();
    let names = sizes.iter().map(answers).max_by_key(Vec::len);
    head(out, "The reader in process, ms, by items", sizes)?;
    for (place, (name, _)) in names.unwrap_or_default().iter().enumerate() {
        let cells = sizes.iter().map(|size| match answers(size).get(place) {
            Some((_, time)) => format!("{time:.1}"),
            None => "failed".to_owned(),
        });
        row(out, name, cells)?;
    }
    Ok(())
}

/// The reasons for cells with `failed`.
fn failures(out: &mut String, sizes: &[Measured]) -> fmt::Result {
    for size in sizes {
        let cold = size.cold.as_ref().err();
        let warm = size.warm.iter().filter_map(|it| it.as_ref().err());
        let reader = size.reader.as_ref().err();
        for reason in cold.into_iter().chain(warm).chain(reader) {
            let first = reason.lines().next().unwrap_or_default();
            writeln!(out, "\nFailed with {} items: {first}", spaced(size.items))?;
        }
    }
    Ok(())
}

/// A number with a space between thousands.
fn spaced(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len().saturating_sub(place)).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Opening, document, spaced};
    use crate::looks;
    use crate::measured::{Measured, Medians};

    fn measured(items: u32) -> Measured {
        let warm = looks::all().map(|look| {
            let medians = Medians { first: 2.0, all: 31.4, memory: 12.6, lines: 7 };
            if look.typed == "ls" { Err("ls: no such store".to_owned()) } else { Ok(medians) }
        });
        Measured {
            items,
            cold: Err("cold: no".to_owned()),
            warm: warm.collect(),
            reader: Ok(vec![("open".to_owned(), 1.25)]),
            journal: 70 * u64::from(items),
            index: 0,
        }
    }

    #[test]
    fn every_command_has_a_row_and_failures_have_a_reason() -> Result<(), std::fmt::Error> {
        let opening = Opening {
            is_quick: true,
            rounds: 7,
            machine: "2 cores".to_owned(),
            version: "undaunted 1".to_owned(),
        };
        let text = document(&opening, &[measured(1000)], &[measured(10_000)])?;
        for line in [
            "| The job, by items | 1 000 |",
            "| `show measured` | 31 / 13 |",
            "| `ls` | failed |",
            "Failed with 1 000 items: ls: no such store",
            "| `attempts measured`, first line | 2 |",
            "| the store, bytes per item | 70 |",
            "| the index, bytes per item | none |",
            "| open | 1.2 |",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        assert!(text.contains("-- measure --quick FOLDER"), "{text}");
        Ok(())
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!([7, 1000, 1_000_000].map(spaced), ["7", "1 000", "1 000 000"]);
    }
}
