//! The list of jobs.

use std::io::{self, Write};

use undaunted_engine::view::{JobLine, LiveJobStatus};

use super::{plain, quoted};

pub(crate) fn show(out: &mut impl Write, lines: &[JobLine]) -> io::Result<()> {
    if lines.is_empty() {
        return writeln!(io::stderr(), "no jobs yet; `undaunted run FILE` starts one");
    }
    writeln!(
        out,
        "{:<10}  {:<11}  {:>9}  {:>5}  {:>8}  {:<20}  WORKFLOW",
        "JOB", "STATUS", "DONE", "DEAD", "ATTEMPTS", "SUBMITTED"
    )?;
    for line in lines {
        let items = &line.items;
        let done = format!("{}/{}", items.succeeded, items.total);
        let submitted = line.submitted_at.map(|at| at.to_string()).unwrap_or_default();
        let submitted = submitted.get(..19).unwrap_or_default().replace('T', " ");
        writeln!(
            out,
            "{:<10}  {:<11}  {done:>9}  {:>5}  {:>8}  {submitted:<20}  {}",
            line.job,
            line.status.word(),
            items.dead,
            line.attempts,
            workflow(line)
        )?;
    }
    let mut lines = lines.iter();
    if let Some(line) = lines.find(|line| line.status == LiveJobStatus::Interrupted) {
        writeln!(out, "resume an interrupted job:  undaunted resume {}", line.job)?;
    }
    Ok(())
}

/// The file without its folder, or the command line of `exec` and `map`.
fn workflow(line: &JobLine) -> String {
    const WIDEST: usize = 60;
    let name = line.name.as_deref().unwrap_or_default();
    if let Some(argv) = &line.argv {
        let is_plain = |word: &str| word.chars().all(|character| "{}".contains(character));
        let words = argv.iter().map(|word| if is_plain(word) { word.clone() } else { quoted(word) });
        let words: Vec<String> = words.collect();
        let typed = plain(&format!("{name} {}", words.join(" ")));
        return match typed.char_indices().nth(WIDEST) {
            Some((end, _)) => format!("{}…", typed.get(..end).unwrap_or_default()),
            None => typed,
        };
    }
    let file = line.workflow.as_deref();
    plain(file.and_then(|file| file.rsplit('/').next()).or(line.error.as_deref()).unwrap_or(name))
}
