//! `undaunted dlq`: dead letters, looked at, tried again or given up.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::view::history::{Histories, History};
use undaunted_engine::view::signature;
use undaunted_engine::workflow::filter::Filter;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal;

use crate::commands::rm::confirmed;
use crate::commands::run::{drive, read_secrets};
use crate::exit::{Exit, Refused};
use crate::jobs::Jobs;
use crate::screen::progress::Quietness;
use crate::screen::{count, dead};
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
fn chosen(job: &Job, which: &Which) -> Result<Vec<ItemId>, Refused> {
    let mut places: Vec<ItemId> = if which.items.is_empty() {
        job.dead.keys().copied().collect()
    } else {
        let found: Result<_, _> = which.items.iter().map(|it| target::item(job, it)).collect();
        found?
    };
    places.sort_unstable();
    places.dedup();
    if let Some(place) = places.iter().find(|place| !job.dead.contains_key(place)) {
        let name = job.identity(*place);
        return Err(Refused::NotFound(format!("`{name}` is no dead letter")));
    }
    if let Some(text) = &which.filter {
        let filter = Filter::parse(text)
            .map_err(|error| Refused::Usage(format!("--where `{text}`: {error}")))?;
        places.retain(|place| filter.matches(&input(job, *place)));
    }
    Ok(places)
}

fn input(job: &Job, item: ItemId) -> serde_json::Value {
    serde_json::from_str(job.value(item)).unwrap_or_default()
}

/// A job with the histories of its dead letters that `which` names.
fn read(jobs: &Jobs, which: &Which) -> Result<(Job, Vec<(ItemId, History)>), Refused> {
    let id = jobs.find(&which.job)?;
    let job = jobs.read(&id)?;
    let places = chosen(&job, which)?;
    let mut histories = Histories::of(places.into_iter().collect());
    journal::replay(&*jobs.store, &id, &jobs.plans, |job, _, record| {
        histories.take(job, record);
    })?;
    Ok((job, histories.items.into_iter().collect()))
}

fn list(jobs: &Jobs, which: &Which) -> Result<Exit> {
    let (job, letters) = read(jobs, which)?;
    let mut out = BufWriter::new(io::stdout().lock());
    if which.json {
        for (place, history) in &letters {
            let letter = dead::json(&job, *place, &input(&job, *place), history);
            serde_json::to_writer(&mut out, &letter)?;
            writeln!(out)?;
        }
    } else {
        dead::list(&mut out, &job, &letters)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn show(jobs: &Jobs, which: &Which) -> Result<Exit> {
    if which.json {
        return list(jobs, which);
    }
    let (job, letters) = read(jobs, which)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for (place, history) in &letters {
        dead::show(&mut out, &job, *place, &input(&job, *place), history)?;
    }
    if letters.is_empty() {
        writeln!(out, "job {} has no dead letters", job.id())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn group(jobs: &Jobs, which: &Which) -> Result<Exit> {
    let (job, letters) = read(jobs, which)?;
    let mut groups: BTreeMap<String, Vec<ItemId>> = BTreeMap::new();
    for (place, history) in &letters {
        let group = groups.entry(signature(dead::last_error(&job, history)));
        group.or_default().push(*place);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    let mut out = BufWriter::new(io::stdout().lock());
    for (signature, places) in &groups {
        if which.json {
            let items: Vec<_> = places.iter().map(|it| job.identity(*it)).collect();
            let said = serde_json::json!({
                "signature": signature, "count": places.len(), "items": items,
            });
            writeln!(out, "{said}")?;
        } else {
            dead::group(&mut out, &job, signature, places)?;
        }
    }
    if groups.is_empty() && !which.json {
        writeln!(out, "job {} has no dead letters", job.id())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn redrive(jobs: &Jobs, args: &RedriveArgs) -> Result<Exit> {
    let which = &args.which;
    if args
        .rate
        .is_some_and(|rate| !rate.is_finite() || rate <= 0.0)
    {
        return Err(Refused::Usage("--rate is a number above 0".to_owned()).into());
    }
    let id = jobs.find(&which.job)?;
    let job = jobs.read(&id)?;
    let items = chosen(&job, which)?;
    if (items.is_empty() && !args.reduce) || args.dry_run {
        say_chosen(&job, which, &items, "would be tried again")?;
        return Ok(Exit::Done);
    }
    let letters = count(items.len(), "dead letter", "dead letters");
    if !args.yes && !confirmed(&format!("try {letters} of job {id} again"))? {
        return Ok(Exit::Done);
    }
    let secrets = read_secrets(job.workflow(), &job.submitted().working_dir)?;
    drop(job);
    let mut held = journal::claim(&*jobs.store, &id, &jobs.plans).map_err(Refused::from)?;
    held.first = Some(Input::Redrive {
        items,
        reduce: args.reduce,
    });
    held.rate = args.rate;
    drive(jobs, held, secrets, Quietness::of(which.json))
}

fn give_up(jobs: &Jobs, args: &DropArgs) -> Result<Exit> {
    let which = &args.which;
    let id = jobs.find(&which.job)?;
    let held = journal::claim(&*jobs.store, &id, &jobs.plans).map_err(Refused::from)?;
    let items = chosen(&held.job, which)?;
    let letters = count(items.len(), "dead letter", "dead letters");
    if !items.is_empty() && !args.yes && !confirmed(&format!("drop {letters} of job {id}"))? {
        return Ok(Exit::Done);
    }
    let asked = Input::Drop {
        items: items.clone(),
    };
    let job = journal::tell(&*jobs.store, held, &asked, Clock::set().now());
    let job = job.map_err(Refused::from)?;
    say_chosen(&job, which, &items, "dropped")?;
    Ok(Exit::Done)
}

fn export(jobs: &Jobs, args: &ExportArgs) -> Result<Exit> {
    let which = &args.which;
    let id = jobs.find(&which.job)?;
    let job = jobs.read(&id)?;
    let items = chosen(&job, which)?;
    let out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(std::fs::File::create(path).map_err(|error| {
            Refused::Usage(format!("`{}` cannot be written: {error}", path.display()))
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

fn say_chosen(job: &Job, which: &Which, items: &[ItemId], what: &str) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for place in items {
        let name = job.identity(*place);
        if which.json {
            let said = match what {
                "dropped" => serde_json::json!({ "job": job.id(), "item": name, "dropped": true }),
                _ => serde_json::json!({ "job": job.id(), "item": name, "redriven": false }),
            };
            writeln!(out, "{said}")?;
        } else {
            writeln!(out, "{name}: {what}")?;
        }
    }
    if items.is_empty() && !which.json {
        writeln!(out, "no dead letter of job {} was meant", job.id())?;
    }
    out.flush()
}
