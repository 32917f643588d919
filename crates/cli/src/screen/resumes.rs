//! The resumes of a job: downtime, restored state, and attempts.

use std::io::{self, Write};

use undaunted_engine::view::ResumesView;

use super::{count, measured};

pub(crate) fn show(out: &mut impl Write, view: &ResumesView) -> io::Result<()> {
    let first = view.resumes.first().map_or(view.attempts, |it| it.attempts_before);
    let runs = count(view.runs, "run", "runs");
    writeln!(out, "job {}  {}, {runs}", view.job, view.status.word())?;
    writeln!(out, "  run 1  {}", view.submitted_at)?;
    writeln!(out, "    attempts  {first} started")?;
    for resume in &view.resumes {
        let found = resume.restored;
        let why = if resume.planned { "suspended" } else { "process died" };
        writeln!(out, "  run {}  {}", resume.run, resume.at)?;
        writeln!(out, "    downtime  {} ({why})", measured(resume.downtime_ms.0))?;
        writeln!(
            out,
            "    recovered {} running, {} waiting, {}{} done, {} pending",
            found.running,
            found.waiting,
            held(Some(found.held)),
            found.settled,
            found.pending
        )?;
        writeln!(
            out,
            "    attempts  {} before, {} started since",
            resume.attempts_before, resume.attempts_after
        )?;
    }
    if view.resumes.is_empty() {
        writeln!(out, "  never resumed")?;
    }
    Ok(())
}

/// `2 held, `, if any are.
pub(super) fn held(held: Option<u32>) -> String {
    match held {
        None | Some(0) => String::new(),
        Some(held) => format!("{held} held, "),
    }
}
