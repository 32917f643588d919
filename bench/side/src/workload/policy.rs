//! H: the policy library, which has a program of its own.

use std::fs;

use crate::bench::Bench;
use crate::process::{Reason, bound, finish};
use crate::section::{Section, Table};

pub(super) fn measure(bench: &Bench) -> Section {
    let mut section = Section {
        title: "H. The policy library".to_owned(),
        about: "Nanoseconds, compared with alternative crates: the targets of [POLICY.md](POLICY.md), which has all figures.".to_owned(),
        ..Section::default()
    };
    match document(bench) {
        Ok(document) => section.tables = vec![targets(&document)],
        Err(reason) => section.notes.push(format!("Not measured: {reason}.")),
    }
    if bench.arguments.quick {
        let note = "Figures of the last full run; a quick run does not measure them again.";
        section.notes.push(note.to_owned());
    }
    section
}

fn document(bench: &Bench) -> Result<String, Reason> {
    let path = bench.arguments.bench.join("POLICY.md");
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    if bench.arguments.quick {
        return fs::read_to_string(&path).map_err(failed);
    }
    eprintln!("H");
    let document = finish(&mut bound(bench.benchmark("undaunted-bench-policy")))?;
    fs::write(&path, &document).map_err(failed)?;
    Ok(document)
}

/// The table below the heading "Targets".
fn targets(document: &str) -> Table {
    let lines = document.lines().skip_while(|line| *line != "## Targets");
    let lines = lines.skip_while(|line| !line.starts_with('|'));
    let cells = |line: &str| {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let mut rows: Vec<Vec<String>> = lines.take_while(|line| line.starts_with('|')).map(cells).collect();
    if rows.len() < 2 {
        return Table::default();
    }
    let head = rows.drain(..2).next().unwrap_or_default();
    Table { head, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_are_found_among_other_tables() {
        let document =
            "| a |\n|---|\n\n## Targets\n\n| b | c |\n|---|--:|\n| d | 1 |\n| e | 2 |\n\n## More\n| x |\n";
        let table = targets(document);
        assert_eq!(table.head, ["b", "c"]);
        assert_eq!(table.rows, [["d", "1"], ["e", "2"]]);
        assert!(targets("nothing").head.is_empty());
    }
}
