//! Snapshots of all views of a job, in every state that a job can have.
//!
//! A file of `tests/views/` has all views of one case of `view_cases`. After an intended change, run the test with
//! `UNDAUNTED_BLESS=1` and review the files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use undaunted_engine::breaker::AdmissionControl;
use undaunted_engine::event::Record;
use undaunted_engine::id::{ItemId, StepId};
use undaunted_engine::job::Job;
use undaunted_engine::view::history::{Histories, History};
use undaunted_engine::view::{
    BreakerHistoryView, BudgetView, DeadLetterGroup, DeadLetterLine, DeadLetterView, ItemView,
    JobExplanation, JobLine, JobReport, JobView, Projection, ResumesView, ViewContext, group_dead_letters,
    report, worth_drawing,
};

use crate::fixture::TestedJob;
use crate::view_cases::{ViewCase, cases};

/// The environment variable that makes the test write the files.
const BLESS: &str = "UNDAUNTED_BLESS";

#[derive(Serialize)]
pub(crate) struct AllViews {
    about: &'static str,
    now: String,
    pub(crate) job: JobView,
    pub(crate) explanation: JobExplanation,
    pub(crate) line: JobLine,
    pub(crate) report: JobReport,
    pub(crate) resumes: ResumesView,
    pub(crate) budget: BudgetView,
    pub(crate) items: Vec<ItemView>,
    pub(crate) dead_letters: Vec<DeadLetterView>,
    dead_letter_lines: Vec<DeadLetterLine>,
    groups: Vec<DeadLetterGroup>,
    breakers: Vec<BreakerHistoryView>,
}

pub(crate) struct ReplayedJob {
    pub(crate) job: Job,
    pub(crate) projection: Projection,
    breakers: AdmissionControl,
}

impl ReplayedJob {
    pub(crate) fn of(test: &TestedJob) -> Self {
        let records = test.journal.iter();
        let records: Vec<Record> = records.map(|it| Record::decode(it).unwrap()).collect();
        let mut job = Job::begin(&records[0]).unwrap();
        let mut projection = Projection::following_all();
        for (version, record) in (1_u64..).zip(&records) {
            if version > 1 {
                job.apply(record);
            }
            projection.take(&job, version, record);
        }
        Self { job, projection, breakers: test.admission_now() }
    }

    pub(crate) fn context(&self, case: &ViewCase) -> ViewContext<'_> {
        ViewContext {
            job: &self.job,
            projection: &self.projection,
            breakers: &self.breakers,
            owner: case.owner,
            seen: case.seen,
            now: case.test.now,
        }
    }

    pub(crate) fn items(&self) -> impl Iterator<Item = ItemId> {
        let steps = StepId::all().zip(&self.job.steps);
        steps.flat_map(|(step, state)| (0..state.items.len()).map(move |it| step.item(it)))
    }

    fn history(&self, item: ItemId) -> History {
        let Histories { items, .. } = &self.projection.items;
        items.get(&item).cloned().unwrap_or_default()
    }
}

pub(crate) fn all_views(case: &ViewCase) -> AllViews {
    let reading = ReplayedJob::of(&case.test);
    let context = reading.context(case);
    let job = &reading.job;
    let drawn = worth_drawing(job).into_iter();
    let drawn: BTreeMap<ItemId, History> = drawn.map(|it| (it, reading.history(it))).collect();
    let dead: Vec<ItemId> = job.dead.keys().copied().collect();
    let letters = dead.iter().copied();
    let groups = group_dead_letters(job, dead.iter().copied()).into_iter();
    let names = job.breakers();
    AllViews {
        about: case.about,
        now: undaunted_engine::view::rfc3339(case.test.now),
        job: JobView::of(&context, &drawn),
        explanation: JobExplanation::of(&context),
        line: JobLine::of(job, case.owner),
        report: report(job),
        resumes: ResumesView::of(&context),
        budget: BudgetView::of(&context),
        items: reading.items().map(|it| ItemView::of(&context, it, None, &reading.history(it))).collect(),
        dead_letters: letters.clone().map(|it| DeadLetterView::of(job, it, &reading.history(it))).collect(),
        dead_letter_lines: letters.filter_map(|it| DeadLetterLine::of(job, it)).collect(),
        groups: groups.map(|it| DeadLetterGroup::of(job, it)).collect(),
        breakers: names.iter().map(|it| BreakerHistoryView::of(it, &case.test.breakers.fold(it))).collect(),
    }
}

#[test]
fn all_views_are_as_their_snapshots() {
    let mut all: BTreeMap<String, String> =
        cases().iter().map(|case| (case.name.to_owned(), text(&all_views(case)))).collect();
    let unreadable = JobLine::unreadable("7f3k", "record 1 has format 9, which is unknown");
    let _ = all.insert("unreadable".to_owned(), text(&unreadable));
    let mut differences = String::new();
    for (name, shown) in &all {
        let file = folder().join(format!("{name}.json"));
        let stored = std::fs::read_to_string(&file).unwrap_or_default();
        if stored == *shown {
            continue;
        }
        if is_blessing() {
            std::fs::write(&file, shown).unwrap();
        } else {
            let _ = writeln!(differences, "{name}.json:\n{}", diff(&stored, shown));
        }
    }
    for file in std::fs::read_dir(folder()).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(all.contains_key(name), "no case is called `{name}`");
    }
    assert!(
        differences.is_empty(),
        "what is shown has changed; - is stored, + is shown now.\n\n{differences}\n\
         if each line is true: {BLESS}=1 cargo nextest run -p undaunted-engine --test engine views"
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "the variable asks this test to write its files; no other test reads it"
)]
fn is_blessing() -> bool {
    std::env::var_os(BLESS).is_some()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/views")
}

/// JSON with filled lines.
fn text(shown: &impl Serialize) -> String {
    let pretty = serde_json::to_string_pretty(shown).unwrap();
    let lines: Vec<&str> = pretty.lines().collect();
    let mut filled = String::new();
    fill(&lines, &mut filled);
    filled
}

fn fill(lines: &[&str], to: &mut String) {
    const WIDTH: usize = 110;
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut at, mut open) = (0, String::new());
    while at < lines.len() {
        let line = lines[at];
        let mut rest = (at + 1)..lines.len();
        let end = rest.find(|next| indent(lines[*next]) == indent(line));
        let end = end.filter(|_| line.ends_with(['{', '['])).unwrap_or(at);
        let inner: Vec<&str> = lines[at..=end].iter().map(|it| it.trim()).collect();
        let whole = inner.join(" ").replace("{ ", "{").replace(" }", "}");
        let whole = whole.replace("[ ", "[").replace(" ]", "]");
        if !open.is_empty() && open.len() + 1 + whole.len() <= WIDTH {
            let _ = write!(open, " {whole}");
        } else {
            flush(&mut open, to);
            if indent(line) + whole.len() <= WIDTH || end == at {
                open = format!("{}{whole}", &line[..indent(line)]);
            } else {
                let _ = writeln!(to, "{line}");
                fill(&lines[at + 1..end], to);
                lines[end].clone_into(&mut open);
            }
        }
        at = end + 1;
    }
    flush(&mut open, to);
}

fn flush(line: &mut String, to: &mut String) {
    if !line.is_empty() {
        let _ = writeln!(to, "{}", std::mem::take(line));
    }
}

/// The lines that differ, each group with the line before it.
fn diff(stored: &str, shown: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (stored.lines().collect(), shown.lines().collect());
    // The longest common subsequence of the lines from here on.
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut text, mut same) = (0, 0, String::new(), None);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            same = Some(old[i]);
            (i, j) = (i + 1, j + 1);
            continue;
        }
        if let Some(before) = same.take() {
            let _ = writeln!(text, "   {before}");
        }
        if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            let _ = writeln!(text, "-  {}", old[i]);
            i += 1;
        } else {
            let _ = writeln!(text, "+  {}", new[j]);
            j += 1;
        }
    }
    text
}
