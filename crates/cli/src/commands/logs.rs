//! `undaunted logs`: what the commands of a job wrote.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use undaunted_engine::event::AttemptId;
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::job::{Activity, Job};
use undaunted_engine::view::history::PastAttempt;
use undaunted_runner::redact::Redaction;
use undaunted_runner::secrets::Secrets;
use undaunted_runner::spool::{CommandFate, Spool, SpooledOutput};

use super::run::read_secrets;
use crate::exit::{CommandError, Exit};
use crate::jobs::Jobs;
use crate::opened::{JobTarget, OpenedJob};
use crate::passing::spooled;
use crate::screen::logs::{Label, Sink, Stream};

const LOOK: Duration = Duration::from_millis(100);

/// Whose output to print.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted logs @last
  undaunted logs 3f9a/order-41 --attempt 2
  undaunted logs @last --follow
  undaunted logs 3f9a/#0 2> errors.txt

Output goes to standard output and error output to standard error, as the commands wrote it,
secrets taken out. The first and the last mebibyte of each are kept; what was dropped between
them is said.")]
pub(crate) struct LogsArgs {
    /// The job, and an item of it: by its name, the beginning of it, or its place (#0)
    #[arg(value_name = "JOB[/ITEM]")]
    of: String,

    /// Only this attempt of each command, counted from 1
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,

    /// Show what running commands write, and go on until the job has ended
    #[arg(long)]
    follow: bool,

    /// Print one JSON object for each piece of output
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(store: Option<&Path>, args: &LogsArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    let (opened, target) = JobTarget::open(&jobs, &args.of)?;
    let id = opened.job().id().to_owned();
    let secrets = secrets(opened.job())?;
    let folder = jobs.local.job(&id).spool();
    // Reading must not create anything: a job that has run no program has no spool.
    let spool = if folder.is_dir() { Some(Spool::open(&folder)?) } else { None };
    let mut reader = Reader {
        spool,
        folder: folder.clone(),
        secrets,
        sink: Sink::new(args.json),
        done: BTreeSet::new(),
        live: BTreeMap::new(),
    };
    let wanted = |attempt: &PastAttempt| {
        let of = attempt.of;
        target.includes_command(of.command) && args.attempt.is_none_or(|n| n == of.attempt.0)
    };
    let mut opened = opened;
    match target {
        JobTarget::Job => {
            reader.sink.many = opened.job().starts.next.0 > 2;
            opened.reader.each_attempt(
                |job, attempt| {
                    if wanted(attempt) { reader.show(job, attempt) } else { Ok(()) }
                },
            )?;
        }
        JobTarget::Item(item, _) => reader.show_of(&mut opened, [item].into(), &wanted)?,
    }
    while args.follow && !opened.job().stage.has_ended() {
        std::thread::sleep(LOOK);
        let mut items = opened.reader.refresh().map_err(CommandError::from)?;
        items.extend(opened.job().starts.running.values());
        items.retain(|item| match target {
            JobTarget::Job => true,
            JobTarget::Item(only, _) => *item == only,
        });
        reader.show_of(&mut opened, items, &wanted)?;
    }
    Ok(Exit::Done)
}

/// The secrets of a job, as they are now. Without them nothing is shown, since nothing can be redacted.
fn secrets(job: &Job) -> Result<Secrets, CommandError> {
    read_secrets(job.workflow(), &job.submitted().working_dir).map_err(|refused| {
        CommandError::Usage(format!(
            "{refused}; without it the output of job {} may show it, so nothing is shown",
            job.id()
        ))
    })
}

type Key = (AttemptId, u32);

struct Reader {
    spool: Option<Spool>,
    folder: std::path::PathBuf,
    secrets: Secrets,
    sink: Sink,
    done: BTreeSet<Key>,
    live: BTreeMap<Key, Live>,
}

struct Live {
    shown: [u64; 2],
    redactions: [Redaction; 2],
}

impl Live {
    fn new(secrets: &Secrets) -> Self {
        let redaction = Redaction::of(secrets);
        Self { shown: [0, 0], redactions: [redaction.clone(), redaction] }
    }
}

impl Reader {
    /// Shows what is new of these items.
    fn show_of(
        &mut self,
        opened: &mut OpenedJob<'_>,
        items: BTreeSet<ItemId>,
        wanted: &dyn Fn(&PastAttempt) -> bool,
    ) -> Result<()> {
        let histories = opened.histories(items)?;
        let attempts = histories.values().flat_map(|history| &history.attempts);
        let mut attempts: Vec<&PastAttempt> = attempts.filter(|it| wanted(it)).collect();
        attempts.sort_by_key(|attempt| (attempt.began, attempt.of));
        self.sink.many = self.sink.many || attempts.len() > 1;
        let mut attempts = attempts.into_iter();
        attempts.try_for_each(|attempt| self.show(opened.job(), attempt))
    }

    fn show(&mut self, job: &Job, attempt: &PastAttempt) -> Result<()> {
        let key = (attempt.of, attempt.round);
        if self.done.contains(&key) {
            return Ok(());
        }
        if self.spool.is_none() && self.folder.is_dir() {
            self.spool = Some(Spool::open(&self.folder)?);
        }
        let label = Label::of(job, attempt);
        let Some(spool) = self.spool.clone() else {
            return self.lose(key, &label, attempt);
        };
        if let Some(outcome) = &attempt.outcome {
            let kept = [outcome.stdout, outcome.stderr].map(|kept| kept.map(spooled));
            return self.finish(&spool, key, &label, kept);
        }
        let active = job.active(attempt.of.item());
        let Some(Activity::Running(start)) = active.map(|active| active.activity) else {
            return Ok(());
        };
        // The keeper may know its end before the engine has collected it.
        match spool.peek(start.0)? {
            CommandFate::Exited(end) => {
                let kept = [Some(end.stdout), Some(end.stderr)];
                self.finish(&spool, key, &label, kept)
            }
            CommandFate::Vanished(Some(end)) => {
                let kept = [Some(end.stdout), Some(end.stderr)];
                self.finish(&spool, key, &label, kept)
            }
            CommandFate::Running(_) => self.tail(&spool, key, &label, start),
            CommandFate::NeverBegan | CommandFate::Vanished(None) => Ok(()),
        }
    }

    /// Says that the output of an attempt is gone, as after `archive`.
    fn lose(&mut self, key: Key, label: &Label, attempt: &PastAttempt) -> Result<()> {
        let Some(outcome) = &attempt.outcome else {
            return Ok(());
        };
        self.done.insert(key);
        let kept = [outcome.stdout, outcome.stderr];
        for (kept, stream) in kept.into_iter().zip(Stream::BOTH) {
            let length = kept.map_or(0, |kept| kept.length);
            self.sink.lost(label, stream, length)?;
        }
        Ok(())
    }

    /// Shows what a running attempt has written since the last call.
    fn tail(&mut self, spool: &Spool, key: Key, label: &Label, start: StartId) -> Result<()> {
        let secrets = &self.secrets;
        let live = self.live.entry(key).or_insert_with(|| Live::new(secrets));
        while let Some(pieces) = spool.live(start.0, live.shown)? {
            let mut any = false;
            let both = pieces.iter().zip(Stream::BOTH);
            let state = live.shown.iter_mut().zip(&mut live.redactions);
            for ((piece, stream), (shown, redaction)) in both.zip(state) {
                any = any || !piece.is_empty();
                *shown = shown.saturating_add(u64::try_from(piece.len())?);
                self.sink.piece(label, stream, &redaction.push(piece))?;
            }
            if !any {
                break;
            }
        }
        Ok(())
    }

    /// Shows the rest of the output of an attempt that has ended.
    fn finish(
        &mut self,
        spool: &Spool,
        key: Key,
        label: &Label,
        kept: [Option<SpooledOutput>; 2],
    ) -> Result<()> {
        let live = self.live.remove(&key);
        let mut live = live.unwrap_or_else(|| Live::new(&self.secrets));
        self.done.insert(key);
        let state = live.shown.iter().zip(&mut live.redactions);
        for ((kept, stream), (shown, redaction)) in kept.iter().zip(Stream::BOTH).zip(state) {
            if let Some(kept) = kept {
                self.rest(spool, label, stream, kept, *shown, redaction)?;
            }
            self.sink.piece(label, stream, &redaction.finish())?;
        }
        Ok(())
    }

    fn rest(
        &mut self,
        spool: &Spool,
        label: &Label,
        stream: Stream,
        kept: &SpooledOutput,
        shown: u64,
        redaction: &mut Redaction,
    ) -> Result<()> {
        let Ok(output) = spool.output(kept) else {
            self.sink.lost(label, stream, kept.length)?;
            return Ok(());
        };
        let behind = |bytes: &[u8], begin: u64| {
            let skip = usize::try_from(shown.saturating_sub(begin)).unwrap_or(usize::MAX);
            bytes.get(skip..).unwrap_or_default().to_vec()
        };
        let head = u64::try_from(output.head.len())?;
        let piece = redaction.push(&behind(&output.head, 0));
        self.sink.piece(label, stream, &piece)?;
        let tail = head.saturating_add(output.dropped);
        if output.dropped > 0 && shown < tail {
            let piece = redaction.gap();
            self.sink.piece(label, stream, &piece)?;
            let dropped = tail.saturating_sub(shown.max(head));
            self.sink.dropped(label, stream, dropped)?;
        }
        let piece = redaction.push(&behind(&output.tail, tail));
        self.sink.piece(label, stream, &piece)?;
        Ok(())
    }
}
