//! `undaunted dlq`: dead letters, looked at, tried again or given up.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::view::{
    DeadLetterGroup, DeadLetterLine, DeadLetterView, DroppedView, RedrivenView, group_dead_letters,
};
use undaunted_engine::workflow::filter::Filter;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal;

use crate::commands::rm::confirmed;
use crate::commands::run::{drive, read_secrets};
use crate::exit::{CommandError, Exit};
use crate::jobs::Jobs;
use crate::opened::OpenedJob;
use crate::screen::progress::Quietness;
use crate::screen::{count, dead, json, plain};
use crate::target;
use undaunted_engine::id::ItemId;

/// What to do with dead letters.
#[derive(Debug, Args)]
pub(crate) struct DlqArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the dead letters of a job
    #[command(after_help = "\
Examples:
  undaunted dlq ls @last
  undaunted dlq ls @last --where 'region == \"north\"'
  undaunted dlq ls @last --json | jq .error")]
    Ls(Which),
    /// Show dead letters with every attempt
    #[command(after_help = "\
Example:
  undaunted dlq show @last 'https://example.org/17'")]
    Show(Which),
    /// Group dead letters by what their errors have in common
    #[command(after_help = "\
Example:
  undaunted dlq group @last")]
    Group(Which),
    /// Try dead letters again, in a new round
    #[command(after_help = "\
Examples:
  undaunted dlq redrive @last
  undaunted dlq redrive @last north east --rate 2
  undaunted dlq redrive @last --where 'size < 100' --dry-run

Attempts and delay budget are fresh, history and job pool stay. Commands that had succeeded
are not run again. What comes after the map is done again only with --reduce.")]
    Redrive(RedriveArgs),
    /// Give dead letters up; they count as skipped from then on
    #[command(after_help = "\
Example:
  undaunted dlq drop @last north")]
    Drop(DropArgs),
    /// Write the inputs of dead letters to a file, to be run elsewhere
    #[command(after_help = "\
Example:
  undaunted dlq export @last > again.jsonl")]
    Export(ExportArgs),
}

/// Which dead letters.
#[derive(Debug, Args)]
struct Which {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,

    /// Items, by name, by the beginning of it, or as #3 by their place; all if none is named
    #[arg(value_name = "ITEM")]
    items: Vec<String>,

    /// Only items for which this holds, in the language of `filter:`
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RedriveArgs {
    #[command(flatten)]
    which: Which,

    /// At most so many starts a second
    #[arg(long, value_name = "NUMBER")]
    rate: Option<f64>,

    /// Only say which
    #[arg(long)]
    dry_run: bool,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Do again what comes after the map
    #[arg(long)]
    reduce: bool,
}

#[derive(Debug, Args)]
struct DropArgs {
    #[command(flatten)]
    which: Which,

    /// Do not ask
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
struct ExportArgs {
    #[command(flatten)]
    which: Which,

    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(store: Option<&Path>, args: &DlqArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    match &args.what {
        What::Ls(which) => list(&jobs, which),
        What::Show(which) => show(&jobs, which),
        What::Group(which) => group(&jobs, which),
        What::Redrive(args) => redrive(&jobs, args),
        What::Drop(args) => give_up(&jobs, args),
        What::Export(args) => export(&jobs, args),
    }
}

/// The dead letters that `which` names, in input order.
fn chosen(opened: &mut OpenedJob<'_>, which: &Which) -> Result<Vec<ItemId>, CommandError> {
    let mut items: Vec<ItemId> = if which.items.is_empty() {
        opened.job().dead.keys().copied().collect()
    } else {
        let found = which.items.iter();
        let found: Result<_, _> = found.map(|it| target::item(&mut opened.reader, it)).collect();
        found?
    };
    items.sort_unstable();
    items.dedup();
    let job = opened.job();
    if let Some(item) = items.iter().find(|item| !job.dead.contains_key(item)) {
        let name = plain(job.identity(*item));
        return Err(CommandError::not_found("no_item", format!("`{name}` is no dead letter")));
    }
    if let Some(text) = &which.filter {
        let filter =
            Filter::parse(text).map_err(|error| CommandError::Usage(format!("--where `{text}`: {error}")))?;
        opened.reader.learn(items.iter().copied())?;
        let job = opened.job();
        items.retain(|item| filter.matches(&input(job, *item)));
    }
    Ok(items)
}

fn input(job: &Job, item: ItemId) -> serde_json::Value {
    serde_json::from_str(job.value(item)).unwrap_or_default()
}

fn open<'j>(jobs: &'j Jobs, which: &Which) -> Result<(OpenedJob<'j>, Vec<ItemId>), CommandError> {
    let id = jobs.find(&which.job)?;
    let mut opened = OpenedJob::open(jobs, &id)?;
    let items = chosen(&mut opened, which)?;
    Ok((opened, items))
}

/// How many histories are read at a time.
const TOGETHER: usize = 1000;

/// Calls `each` with the dead letters that `which` names.
fn each_letter(
    jobs: &Jobs,
    which: &Which,
    mut each: impl FnMut(&DeadLetterView) -> io::Result<()>,
) -> Result<Exit> {
    let (mut opened, items) = open(jobs, which)?;
    for items in items.chunks(TOGETHER) {
        let histories = opened.histories(items.iter().copied())?;
        for (item, history) in &histories {
            each(&DeadLetterView::of(opened.job(), *item, history))?;
        }
    }
    if items.is_empty() && !which.json {
        println_none(opened.job())?;
    }
    Ok(Exit::Done)
}

fn println_none(job: &Job) -> io::Result<()> {
    writeln!(io::stdout(), "job {} has no dead letters", job.id())
}

fn list(jobs: &Jobs, which: &Which) -> Result<Exit> {
    let mut out = BufWriter::new(io::stdout().lock());
    if which.json {
        let done = each_letter(jobs, which, |letter| json(&mut out, letter))?;
        out.flush()?;
        return Ok(done);
    }
    let (mut opened, items) = open(jobs, which)?;
    for items in items.chunks(TOGETHER) {
        list_together(&mut out, &mut opened, items)?;
    }
    let job = opened.job();
    if items.is_empty() {
        writeln!(out, "job {} has no dead letters", job.id())?;
    } else {
        dead::next(&mut out, job.id())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Most lines need no history: they are made from what the job keeps of a dead letter. One whose command said
/// nothing has the error it was given up with.
fn list_together(
    out: &mut impl Write,
    opened: &mut OpenedJob<'_>,
    items: &[ItemId],
) -> Result<(), anyhow::Error> {
    let job = opened.job();
    let lines = items.iter().map(|item| DeadLetterLine::of(job, *item));
    let silent = lines.zip(items).filter_map(|(line, item)| {
        let is_silent = line.is_some_and(|line| line.error.is_none());
        is_silent.then_some(*item)
    });
    let silent: Vec<ItemId> = silent.collect();
    let histories = opened.histories(silent)?;
    opened.reader.learn(items.iter().copied())?;
    for item in items {
        let end = histories.get(item).and_then(|history| history.end.as_ref());
        if let Some(mut line) = DeadLetterLine::of(opened.job(), *item) {
            let error = || end.and_then(|end| end.error.clone());
            line.error = line.error.or_else(error);
            dead::line(out, &line)?;
        }
    }
    Ok(())
}

fn show(jobs: &Jobs, which: &Which) -> Result<Exit> {
    if which.json {
        return list(jobs, which);
    }
    let job = jobs.find(&which.job)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let done = each_letter(jobs, which, |letter| dead::show(&mut out, &job, letter))?;
    out.flush()?;
    Ok(done)
}

fn group(jobs: &Jobs, which: &Which) -> Result<Exit> {
    let (mut opened, items) = open(jobs, which)?;
    let groups = group_dead_letters(opened.job(), items);
    // Text names a few of each group.
    let named = groups.iter().flat_map(|(_, items)| {
        if which.json { items.as_slice() } else { items.get(..dead::NAMED).unwrap_or(items) }
    });
    opened.reader.learn(named.copied())?;
    let job = opened.job();
    if groups.is_empty() && !which.json {
        println_none(job)?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for group in groups {
        let group = DeadLetterGroup::of(job, group);
        if which.json {
            json(&mut out, &group)?;
        } else {
            dead::group(&mut out, &group)?;
        }
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn redrive(jobs: &Jobs, args: &RedriveArgs) -> Result<Exit> {
    let which = &args.which;
    if args.rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0) {
        return Err(CommandError::Usage("--rate is a number above 0".to_owned()).into());
    }
    let (mut opened, items) = open(jobs, which)?;
    let id = opened.job().id().to_owned();
    if items.is_empty() || args.dry_run {
        opened.reader.learn(items.iter().copied())?;
    }
    let job = opened.job();
    if (items.is_empty() && !args.reduce) || args.dry_run {
        say_chosen(job, which, &items, false)?;
        return Ok(Exit::Done);
    }
    let letters = count(items.len(), "dead letter", "dead letters");
    if !args.yes && !confirmed(&format!("try {letters} of job {id} again"))? {
        return Ok(Exit::Done);
    }
    let secrets = read_secrets(job.workflow(), &job.submitted().working_dir)?;
    drop(opened);
    let mut held = journal::claim(&*jobs.store, &id, &jobs.plans).map_err(CommandError::from)?;
    held.first = Some(Input::Redrive { items, reduce: args.reduce });
    held.rate = args.rate;
    drive(jobs, held, secrets, Quietness::of(which.json))
}

fn give_up(jobs: &Jobs, args: &DropArgs) -> Result<Exit> {
    let which = &args.which;
    let (opened, items) = open(jobs, which)?;
    let id = opened.job().id();
    let letters = count(items.len(), "dead letter", "dead letters");
    if !items.is_empty() && !args.yes && !confirmed(&format!("drop {letters} of job {id}"))? {
        return Ok(Exit::Done);
    }
    let held = journal::claim(&*jobs.store, id, &jobs.plans).map_err(CommandError::from)?;
    // Another process may have redriven or dropped some of them meanwhile.
    let mut items = items;
    items.retain(|item| held.job.dead.contains_key(item));
    let asked = Input::Drop { items: items.clone() };
    let job = journal::tell(&*jobs.store, held, &asked, Clock::set().now());
    let job = job.map_err(CommandError::from)?;
    say_chosen(&job, which, &items, true)?;
    Ok(Exit::Done)
}

fn export(jobs: &Jobs, args: &ExportArgs) -> Result<Exit> {
    let (mut opened, items) = open(jobs, &args.which)?;
    opened.reader.learn(items.iter().copied())?;
    let job = opened.job();
    let out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(std::fs::File::create(path).map_err(|error| {
            CommandError::Usage(format!("`{}` cannot be written: {error}", path.display()))
        })?),
        None => Box::new(io::stdout().lock()),
    };
    let mut out = BufWriter::new(out);
    for item in items {
        writeln!(out, "{}", job.value(item))?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn say_chosen(job: &Job, which: &Which, items: &[ItemId], dropped: bool) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for item in items {
        let (job, item) = (job.id().to_owned(), job.identity(*item).to_owned());
        match (which.json, dropped) {
            (true, true) => json(&mut out, &DroppedView { job, item, dropped })?,
            (true, false) => {
                let redriven = false;
                json(&mut out, &RedrivenView { job, item, redriven })?;
            }
            (false, true) => writeln!(out, "{}: dropped", plain(&item))?,
            (false, false) => writeln!(out, "{}: would be tried again", plain(&item))?,
        }
    }
    if items.is_empty() && !which.json {
        writeln!(out, "no dead letter of job {} was meant", job.id())?;
    }
    out.flush()
}
