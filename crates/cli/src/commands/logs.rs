//! `undaunted logs`: the output of the commands of a job.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clap::Args;
use undaunted_engine::event::AttemptId;
use undaunted_engine::id::{ItemId, StartId};
use undaunted_engine::job::{Activity, Job};
use undaunted_engine::view::history::PastAttempt;
use undaunted_runner::keeper::KeeperError;
use undaunted_runner::spool::{CommandFate, Spool, SpooledOutput};

use crate::flag_values::at_least_one;
use crate::passing::spooled;
use crate::screen::logs::{Label, LogOutput, Stream};
use crate::{Exit, JobTarget, Jobs, OpenedJob, Result};

const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted logs @last
  undaunted logs 3f9a/order-41 --attempt 2
  undaunted logs @last --follow
  undaunted logs 3f9a/#0 2> errors.txt

Prints the standard output and standard error of the commands on the same streams. The first and
last mebibyte of each stream are kept; the number of bytes dropped between them is reported. The
values of secrets were removed before the output was stored.")]
pub(crate) struct LogsArgs {
    /// The job, optionally with an item: its name, a unique prefix, or its index (JOB/#0)
    #[arg(value_name = "JOB[/ITEM]")]
    of: String,

    /// Only this attempt of each command, counted from 1 [default: all]
    #[arg(long, value_name = "N", value_parser = at_least_one, allow_negative_numbers = true)]
    attempt: Option<u32>,

    /// Follow the output of running commands until the job ends
    #[arg(long)]
    follow: bool,

    /// Print one JSON object per piece of output
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(jobs: &Jobs, args: &LogsArgs) -> Result<Exit> {
    let (mut opened, target) = JobTarget::open(jobs, &args.of)?;
    let id = opened.job().id().to_owned();
    let folder = jobs.local.job(&id).spool();
    // Reading must not create a spool: a job that ran no program has none.
    let spool = if folder.is_dir() { Some(Spool::open(&folder).map_err(KeeperError::from)?) } else { None };
    let mut reader = LogReader {
        spool,
        folder: folder.clone(),
        output: LogOutput::new(args.json),
        done: BTreeSet::new(),
        shown: BTreeMap::new(),
    };
    let wanted = |attempt: &PastAttempt| {
        let of = attempt.of;
        target.includes_command(of.command) && args.attempt.is_none_or(|n| n == of.attempt.0)
    };
    match target {
        JobTarget::Job => {
            reader.output.many = opened.job().starts.next.0 > 2;
            opened.reader.each_attempt(
                |job, attempt| {
                    if wanted(attempt) { reader.show(job, attempt) } else { Ok(()) }
                },
            )?;
        }
        JobTarget::Item(item, _) => reader.show_of(&mut opened, [item].into(), &wanted)?,
    }
    while args.follow && !opened.job().stage.has_ended() {
        std::thread::sleep(POLL);
        let mut items = opened.reader.refresh()?;
        items.extend(opened.job().starts.running.values());
        items.retain(|item| match target {
            JobTarget::Job => true,
            JobTarget::Item(only, _) => *item == only,
        });
        reader.show_of(&mut opened, items, &wanted)?;
    }
    Ok(Exit::Done)
}

type AttemptKey = (AttemptId, u32);

struct LogReader {
    spool: Option<Spool>,
    folder: std::path::PathBuf,
    output: LogOutput,
    done: BTreeSet<AttemptKey>,
    /// How much of the output and the error output of a running attempt was printed.
    shown: BTreeMap<AttemptKey, [u64; 2]>,
}

impl LogReader {
    /// Prints new output of these items.
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
        self.output.many = self.output.many || attempts.len() > 1;
        let mut attempts = attempts.into_iter();
        attempts.try_for_each(|attempt| self.show(opened.job(), attempt))
    }

    fn show(&mut self, job: &Job, attempt: &PastAttempt) -> Result<()> {
        let key = (attempt.of, attempt.round);
        if self.done.contains(&key) {
            return Ok(());
        }
        if self.spool.is_none() && self.folder.is_dir() {
            self.spool = Some(Spool::open(&self.folder).map_err(KeeperError::from)?);
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
        // The keeper may know the outcome before the engine has collected it.
        match spool.peek(start.0)? {
            CommandFate::Exited(end) => {
                self.finish(&spool, key, &label, [Some(end.stdout), Some(end.stderr)])
            }
            CommandFate::Vanished(Some(end)) => {
                self.finish(&spool, key, &label, [Some(end.stdout), Some(end.stderr)])
            }
            CommandFate::Running(_) => self.tail(&spool, key, &label, start),
            CommandFate::NeverBegan | CommandFate::Vanished(None) => Ok(()),
        }
    }

    /// Reports that the output of an attempt is gone, as after `archive`.
    fn lose(&mut self, key: AttemptKey, label: &Label, attempt: &PastAttempt) -> Result<()> {
        let Some(outcome) = &attempt.outcome else {
            return Ok(());
        };
        self.done.insert(key);
        let kept = [outcome.stdout, outcome.stderr];
        for (kept, stream) in kept.into_iter().zip(Stream::BOTH) {
            let length = kept.map_or(0, |kept| kept.length);
            self.output.dropped(label, stream, length)?;
        }
        Ok(())
    }

    /// Prints the output of a running attempt since the last call.
    fn tail(&mut self, spool: &Spool, key: AttemptKey, label: &Label, start: StartId) -> Result<()> {
        let shown = self.shown.entry(key).or_default();
        while let Some(pieces) = spool.live(start.0, *shown)? {
            let mut any = false;
            for ((piece, stream), shown) in pieces.iter().zip(Stream::BOTH).zip(shown.iter_mut()) {
                any = any || !piece.is_empty();
                *shown = shown.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
                self.output.piece(label, stream, piece)?;
            }
            if !any {
                break;
            }
        }
        Ok(())
    }

    /// Prints the rest of the output of an ended attempt.
    fn finish(
        &mut self,
        spool: &Spool,
        key: AttemptKey,
        label: &Label,
        kept: [Option<SpooledOutput>; 2],
    ) -> Result<()> {
        let shown = self.shown.remove(&key).unwrap_or_default();
        self.done.insert(key);
        for ((kept, stream), shown) in kept.iter().zip(Stream::BOTH).zip(shown) {
            if let Some(kept) = kept {
                self.rest(spool, label, stream, kept, shown)?;
            }
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
    ) -> Result<()> {
        let Ok(output) = spool.output(kept) else {
            self.output.dropped(label, stream, kept.length)?;
            return Ok(());
        };
        let behind = |bytes: &[u8], begin: u64| {
            let skip = usize::try_from(shown.saturating_sub(begin)).unwrap_or(usize::MAX);
            bytes.get(skip..).unwrap_or_default().to_vec()
        };
        let head = u64::try_from(output.head.len()).unwrap_or(u64::MAX);
        self.output.piece(label, stream, &behind(&output.head, 0))?;
        let tail = head.saturating_add(output.dropped);
        if output.dropped > 0 && shown < tail {
            let dropped = tail.saturating_sub(shown.max(head));
            self.output.dropped(label, stream, dropped)?;
        }
        self.output.piece(label, stream, &behind(&output.tail, tail))?;
        Ok(())
    }
}
