//! `undaunted dlq`: lists, redrives and drops dead letters.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use undaunted_engine::id::ItemId;
use undaunted_engine::input::Input;
use undaunted_engine::job::Job;
use undaunted_engine::view::{
    DeadLetterGroup, DeadLetterLine, DeadLetterView, DroppedView, RedrivenView, group_dead_letters, quoted,
    signature_id,
};
use undaunted_engine::workflow::filter::Filter;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal;

use crate::commands::run::{drive, read_secrets};
use crate::flag_values::{interval, rate};
use crate::opened::{find_item, split};
use crate::screen::{count, dead, json, plain};
use crate::{CommandError, Confirmation, Exit, Jobs, OpenedJob, Quietness, Result, StoreUse};

#[derive(Debug, Args)]
pub(crate) struct DlqArgs {
    #[command(subcommand)]
    command: DlqCommand,
}

#[derive(Debug, Subcommand)]
enum DlqCommand {
    /// List the dead letters of a job
    #[command(after_help = "\
Examples:
  undaunted dlq ls @last
  undaunted dlq ls @last/#3
  undaunted dlq ls @last --where 'region == \"north\"'
  undaunted dlq ls @last --json | jq .error")]
    Ls(DeadLetterSelection),
    /// Show dead letters with every attempt
    #[command(after_help = "\
Example:
  undaunted dlq show @last 'https://example.org/17'")]
    Show(DeadLetterSelection),
    /// Group dead letters by similar errors
    #[command(after_help = "\
Examples:
  undaunted dlq group @last
  undaunted dlq ls @last --group 5b1f

Each group is shown with its id, which --group takes.")]
    Group(DeadLetterSelection),
    /// Retry dead letters in a new round
    #[command(after_help = "\
Examples:
  undaunted dlq redrive @last
  undaunted dlq redrive @last north '#3' --rate 2
  undaunted dlq redrive @last --where 'size < 100' --dry-run

The new round has fresh attempts and a fresh delay budget; history and job pool are kept. Commands
that succeeded are not run again. Later steps run again only with --reduce.")]
    Redrive(DlqRedriveArgs),
    /// Drop dead letters, which then count as skipped
    #[command(after_help = "\
Examples:
  undaunted dlq drop @last north '#3'
  undaunted dlq drop @last/#3 --yes
  undaunted dlq drop @last --where 'size > 100'
  undaunted dlq drop @last --group 5b1f
  undaunted dlq drop @last --all

Asks for confirmation on a terminal; elsewhere --yes is required.")]
    Drop(DlqDropArgs),
    /// Write the inputs of dead letters, one per line
    #[command(after_help = "\
Example:
  undaunted dlq export @last > again.jsonl")]
    Export(DlqExportArgs),
}

#[derive(Debug, Args)]
struct DeadLetterSelection {
    /// Id of the job, a unique prefix, or @last; optionally with an item (JOB/ITEM or JOB/#3)
    #[arg(value_name = "JOB[/ITEM]")]
    job: String,

    /// Only these items, by name, unique prefix or index ('#3')
    #[arg(value_name = "ITEM")]
    items: Vec<String>,

    /// Only items that match this expression, in the language of `filter:`
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<String>,

    /// Only items of this group: its id in `dlq group`, or a unique prefix
    #[arg(long, value_name = "SIGNATURE")]
    group: Option<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DlqRedriveArgs {
    #[command(flatten)]
    selection: DeadLetterSelection,

    /// Start at most this many attempts per second, evenly spaced, also after `resume`
    #[arg(long, value_name = "NUMBER", value_parser = rate, allow_negative_numbers = true)]
    rate: Option<f64>,

    /// List the dead letters without redriving them
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    confirmation: Confirmation,

    /// Run the steps after the map again
    #[arg(long)]
    reduce: bool,
}

#[derive(Debug, Args)]
struct DlqDropArgs {
    #[command(flatten)]
    selection: DeadLetterSelection,

    /// Drop all dead letters of the job
    #[arg(long, conflicts_with_all = ["items", "filter", "group"])]
    all: bool,

    #[command(flatten)]
    confirmation: Confirmation,
}

#[derive(Debug, Args)]
struct DlqExportArgs {
    #[command(flatten)]
    selection: DeadLetterSelection,

    /// Write to this file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl DlqArgs {
    pub(crate) const fn store_use(&self) -> StoreUse {
        match &self.command {
            DlqCommand::Ls(_) | DlqCommand::Show(_) | DlqCommand::Group(_) | DlqCommand::Export(_) => {
                StoreUse::Read
            }
            DlqCommand::Redrive(args) if args.dry_run => StoreUse::Read,
            DlqCommand::Redrive(_) | DlqCommand::Drop(_) => StoreUse::Change,
        }
    }
}

pub(crate) fn run(jobs: &Jobs, args: &DlqArgs) -> Result<Exit> {
    match &args.command {
        DlqCommand::Ls(selection) => list(jobs, selection, false),
        DlqCommand::Show(selection) => list(jobs, selection, true),
        DlqCommand::Group(selection) => group(jobs, selection),
        DlqCommand::Redrive(args) => redrive(jobs, args),
        DlqCommand::Drop(args) => drop_letters(jobs, args),
        DlqCommand::Export(args) => export(jobs, args),
    }
}

impl DeadLetterSelection {
    /// The job, and the item named with it.
    fn target(&self) -> (&str, Option<&str>) {
        split(&self.job)
    }

    fn names_items(&self) -> bool {
        !self.items.is_empty() || self.target().1.is_some()
    }

    /// Whether only some of the dead letters are wanted, wherever they are.
    const fn is_search(&self) -> bool {
        self.filter.is_some() || self.group.is_some()
    }

    /// Why nothing was selected: `no dead letters match --where 'size > 3' in job 3f9a`.
    fn nothing(&self, job: &Job) -> String {
        if !self.is_search() {
            return format!("job {} has no dead letters", job.id());
        }
        let filter = self.filter.iter().map(|text| format!("--where {}", quoted(text)));
        let group = self.group.iter().map(|id| format!("--group {}", quoted(id)));
        let all: Vec<String> = filter.chain(group).collect();
        format!("no dead letters match {} in job {}", all.join(" "), job.id())
    }

    /// Refuses a search without a match.
    fn require_match(&self, job: &Job, items: &[ItemId]) -> Result<()> {
        if items.is_empty() && self.is_search() {
            return Err(CommandError::not_found("no_dead_letters", self.nothing(job)));
        }
        Ok(())
    }

    /// Prints why nothing was selected: standard output is for JSON and for inputs if it is machine-readable.
    fn print_nothing(&self, job: &Job, is_for_machines: bool) -> io::Result<()> {
        let nothing = self.nothing(job);
        if is_for_machines {
            writeln!(io::stderr(), "{nothing}")
        } else {
            writeln!(io::stdout(), "{nothing}")
        }
    }
}

/// The selected dead letters, in input order.
fn select(opened: &mut OpenedJob<'_>, selection: &DeadLetterSelection) -> Result<Vec<ItemId>> {
    let mut items: Vec<ItemId> = if selection.names_items() {
        let with_job = selection.target().1;
        let named = selection.items.iter().map(String::as_str).chain(with_job);
        let found: Result<_, _> = named.map(|it| find_item(&mut opened.reader, it)).collect();
        found?
    } else {
        opened.job().dead.keys().copied().collect()
    };
    items.sort_unstable();
    items.dedup();
    let job = opened.job();
    if let Some(item) = items.iter().find(|item| !job.dead.contains_key(item)) {
        let name = plain(job.identity(*item));
        return Err(CommandError::not_found("no_item", format!("item `{name}` is not a dead letter")));
    }
    if let Some(id) = &selection.group {
        let group = group_of(job, id)?;
        items.retain(|item| group.contains(item));
    }
    if let Some(text) = &selection.filter {
        let filter =
            Filter::parse(text).map_err(|error| CommandError::Usage(format!("--where `{text}`: {error}")))?;
        opened.reader.load_items(items.iter().copied())?;
        let job = opened.job();
        items.retain(|item| filter.matches(&input(job, *item)));
    }
    Ok(items)
}

/// The items of the group with this id or unique prefix of it.
fn group_of(job: &Job, typed: &str) -> Result<BTreeSet<ItemId>> {
    let groups = group_dead_letters(job, job.dead.keys().copied());
    let mut groups = groups.into_iter().filter(|(signature, _)| {
        // Every id begins with an empty text.
        !typed.is_empty() && signature_id(signature).starts_with(typed)
    });
    let lists = format!("`undaunted dlq group {}` lists the groups", job.id());
    match (groups.next(), groups.next()) {
        (Some((_, items)), None) => Ok(items.into_iter().collect()),
        (Some(_), Some(_)) => {
            Err(CommandError::Usage(format!("--group `{}` matches several groups; {lists}", plain(typed))))
        }
        (None, _) if typed.is_empty() => Err(CommandError::Usage(format!("--group is empty; {lists}"))),
        (None, _) => Err(CommandError::not_found(
            "no_group",
            format!("group `{}` not found in job {}; {lists}", plain(typed), job.id()),
        )),
    }
}

fn input(job: &Job, item: ItemId) -> serde_json::Value {
    serde_json::from_str(job.value(item)).unwrap_or_default()
}

/// The job and the selected dead letters. Fails if a search matches nothing.
fn open<'j>(jobs: &'j Jobs, selection: &DeadLetterSelection) -> Result<(OpenedJob<'j>, Vec<ItemId>)> {
    let id = jobs.find(selection.target().0)?;
    let mut opened = OpenedJob::open(jobs, &id)?;
    let items = select(&mut opened, selection)?;
    selection.require_match(opened.job(), &items)?;
    Ok((opened, items))
}

/// The number of histories read at a time.
const BATCH: usize = 1000;

/// Lists dead letters: one line each or, as JSON and with `in_full`, every attempt.
fn list(jobs: &Jobs, selection: &DeadLetterSelection, in_full: bool) -> Result<Exit> {
    let (mut opened, items) = open(jobs, selection)?;
    let mut out = BufWriter::new(io::stdout().lock());
    for items in items.chunks(BATCH) {
        if !in_full && !selection.json {
            list_batch(&mut out, &mut opened, items)?;
            continue;
        }
        for (item, history) in &opened.histories(items.iter().copied())? {
            let letter = DeadLetterView::of(opened.job(), *item, history);
            if selection.json {
                json(&mut out, &letter)?;
            } else {
                dead::show(&mut out, opened.job().id(), &letter)?;
            }
        }
    }
    if !items.is_empty() && !selection.json && !in_full {
        dead::next(&mut out, opened.job().id())?;
    }
    out.flush()?;
    drop(out);
    if items.is_empty() {
        selection.print_nothing(opened.job(), selection.json)?;
    }
    Ok(Exit::Done)
}

/// Most lines need no history: the job keeps enough of a dead letter. If the command wrote no error, the line
/// has the error recorded with the dead letter, which is read from the history.
fn list_batch(out: &mut impl Write, opened: &mut OpenedJob<'_>, items: &[ItemId]) -> Result<()> {
    let job = opened.job();
    let lines = items.iter().map(|item| DeadLetterLine::of(job, *item));
    let silent = lines
        .zip(items)
        .filter_map(|(line, item)| line.is_some_and(|line| line.error.is_none()).then_some(*item));
    let silent: Vec<ItemId> = silent.collect();
    let histories = opened.histories(silent)?;
    opened.reader.load_items(items.iter().copied())?;
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

fn group(jobs: &Jobs, selection: &DeadLetterSelection) -> Result<Exit> {
    let (mut opened, items) = open(jobs, selection)?;
    let groups = group_dead_letters(opened.job(), items);
    // Text names only a few items of each group.
    let named = groups.iter().flat_map(|(_, items)| {
        if selection.json { items.as_slice() } else { items.get(..dead::SHOWN_NAMES).unwrap_or(items) }
    });
    opened.reader.load_items(named.copied())?;
    let job = opened.job();
    if groups.is_empty() {
        selection.print_nothing(job, selection.json)?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let groups: Vec<_> = groups.into_iter().map(|group| DeadLetterGroup::of(job, group)).collect();
    for group in &groups {
        if selection.json {
            json(&mut out, group)?;
        } else {
            dead::group(&mut out, group)?;
        }
    }
    if let (false, Some(first)) = (selection.json, groups.first()) {
        dead::next_of_groups(&mut out, job.id(), &first.signature_id)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn redrive(jobs: &Jobs, args: &DlqRedriveArgs) -> Result<Exit> {
    let selection = &args.selection;
    let (mut opened, items) = open(jobs, selection)?;
    let id = opened.job().id().to_owned();
    if items.is_empty() || args.dry_run {
        opened.reader.load_items(items.iter().copied())?;
    }
    let job = opened.job();
    if (items.is_empty() && !args.reduce) || args.dry_run {
        print_selected(job, selection, &items, false)?;
        return Ok(Exit::Done);
    }
    let letters = count(items.len(), "dead letter", "dead letters");
    args.confirmation.ask(&format!("redrive {letters} of job {id}"))?;
    let secrets = read_secrets(job.workflow(), &job.submitted().working_dir)?;
    drop(opened);
    let mut claimed = journal::claim(&*jobs.store, &id, &jobs.plans)?;
    let every = args.rate.map(interval);
    claimed.first = Some(Input::Redrive { items, reduce: args.reduce, every });
    drive(jobs, claimed, secrets, Quietness::of(selection.json))
}

fn drop_letters(jobs: &Jobs, args: &DlqDropArgs) -> Result<Exit> {
    let selection = &args.selection;
    let chooses = selection.names_items() || selection.is_search();
    if chooses == args.all {
        // A shell reads a bare `#3` as a comment, so that no item arrives here.
        return Err(CommandError::Usage(if args.all {
            format!("--all contradicts the item of `{}`", plain(&selection.job))
        } else {
            "no dead letters selected; name items (an index as JOB/#3 or '#3'), or use --where, --group or --all"
                .to_owned()
        }));
    }
    args.confirmation.require("undaunted dlq drop")?;
    let (opened, mut items) = open(jobs, selection)?;
    let id = opened.job().id();
    if !items.is_empty() {
        let letters = count(items.len(), "dead letter", "dead letters");
        args.confirmation.ask(&format!("drop {letters} of job {id}"))?;
    }
    let claimed = journal::claim(&*jobs.store, id, &jobs.plans)?;
    // Another process may have redriven or dropped some of them in the meantime.
    items.retain(|item| claimed.job.dead.contains_key(item));
    let input = Input::Drop { items: items.clone() };
    let job = journal::record_input(&*jobs.store, claimed, &input, Clock::set().now())?;
    print_selected(&job, selection, &items, true)?;
    Ok(Exit::Done)
}

fn export(jobs: &Jobs, args: &DlqExportArgs) -> Result<Exit> {
    let (mut opened, items) = open(jobs, &args.selection)?;
    opened.reader.load_items(items.iter().copied())?;
    let job = opened.job();
    if items.is_empty() {
        args.selection.print_nothing(job, true)?;
    }
    let out: Box<dyn Write> =
        match &args.output {
            Some(path) => Box::new(std::fs::File::create(path).map_err(|error| {
                CommandError::Usage(format!("cannot write `{}`: {error}", path.display()))
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

fn print_selected(
    job: &Job,
    selection: &DeadLetterSelection,
    items: &[ItemId],
    dropped: bool,
) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for item in items {
        let (job, item) = (job.id().to_owned(), job.identity(*item).to_owned());
        match (selection.json, dropped) {
            (true, true) => json(&mut out, &DroppedView { job, item, dropped })?,
            (true, false) => {
                let redriven = false;
                json(&mut out, &RedrivenView { job, item, redriven })?;
            }
            (false, true) => writeln!(out, "{}: dropped", plain(&item))?,
            (false, false) => writeln!(out, "{}: would be redriven", plain(&item))?,
        }
    }
    out.flush()?;
    drop(out);
    if items.is_empty() {
        selection.print_nothing(job, selection.json)?;
    }
    Ok(())
}
