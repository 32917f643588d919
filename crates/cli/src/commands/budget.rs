//! `undaunted budget`: the retry pool of a job.

use std::io::{self, Write};

use clap::{Args, Subcommand};
use undaunted_engine::job::Job;
use undaunted_engine::view::{BudgetView, TopUpRequestView, TopUpView};
use undaunted_policy::Pool;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal;
use undaunted_runner::request::JobRequest;

use crate::flag_values::added_retries;
use crate::screen::{count, plain, print};
use crate::{ClaimOrOwner, CommandError, Exit, Jobs, OpenedJob, Result, StoreUse};

const SHOWN_ITEMS: usize = 20;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted budget show @last
  undaunted budget show @last --json
  undaunted budget top-up @last 10     # works on a running job too

A job has a pool if its workflow sets `retry_budget` or `retry_budget_per_workflow`, or the
operator sets RETRY_BUDGET_DEFAULT. Every retry of every item takes one unit, and units are never
returned. A top-up raises the total, but not the share of an item (`retry_budget_per_workflow`).")]
pub(crate) struct BudgetArgs {
    #[command(subcommand)]
    command: BudgetCommand,
}

#[derive(Debug, Subcommand)]
enum BudgetCommand {
    /// Show how much of the pool is used, and by which items
    Show {
        /// Id of the job, a unique prefix, or @last
        job: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Add retries to the pool, up to the operator's maximum at submission
    TopUp {
        /// Id of the job, a unique prefix, or @last
        job: String,
        /// Number of retries to add
        #[arg(value_name = "N", value_parser = added_retries, allow_negative_numbers = true)]
        retries: u32,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

impl BudgetArgs {
    pub(crate) const fn store_use(&self) -> StoreUse {
        match self.command {
            BudgetCommand::Show { .. } => StoreUse::Read,
            BudgetCommand::TopUp { .. } => StoreUse::Change,
        }
    }
}

pub(crate) fn run(jobs: &Jobs, args: &BudgetArgs) -> Result<Exit> {
    match &args.command {
        BudgetCommand::Show { job, json } => show(jobs, &jobs.find(job)?, *json),
        BudgetCommand::TopUp { job, retries, json } => top_up(jobs, &jobs.find(job)?, *retries, *json),
    }
}

fn show(jobs: &Jobs, id: &str, as_json: bool) -> Result<Exit> {
    let view = OpenedJob::open(jobs, id)?.budget()?;
    print(&view, as_json, |out, view| show_text(out, id, view))?;
    Ok(Exit::Done)
}

fn show_text(out: &mut impl Write, id: &str, view: &BudgetView) -> io::Result<()> {
    let (Some(total), Some(per_item)) = (view.total_budget, view.per_workflow_max) else {
        return writeln!(
            out,
            "job {id} has no retry pool; only the limits of each command apply\n\
             to give a workflow one, set `retry_budget: 20` at its top level"
        );
    };
    let consumed = view.consumed;
    let left = total.saturating_sub(consumed);
    let retries = count(total, "retry", "retries");
    writeln!(out, "job {id}: {consumed} of {retries} used, {left} left; at most {per_item} per item")?;
    let mut items: Vec<(&String, &u32)> = view.per_workflow_consumed.iter().collect();
    items.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (item, units) in items.iter().take(SHOWN_ITEMS) {
        let share = if **units >= per_item { "  (its whole share)" } else { "" };
        writeln!(out, "  {units:>5}  {}{share}", plain(item))?;
    }
    if let more @ 1.. = items.len().saturating_sub(SHOWN_ITEMS) {
        writeln!(out, "         … {more} more items (--json lists all)")?;
    }
    let most = view.maximum;
    match (left, most.saturating_sub(total)) {
        (0, 0) => writeln!(out, "the operator allows no more (RETRY_BUDGET_MAX was {most} at submission)"),
        (0, room) => writeln!(out, "add up to {room}:  undaunted budget top-up {id} {room}"),
        _ => Ok(()),
    }
}

fn top_up(jobs: &Jobs, id: &str, retries: u32, as_json: bool) -> Result<Exit> {
    let job = jobs.read(id)?;
    let most = job.ceilings().max_total;
    let Some(pool) = job.pool else {
        return Err(CommandError::Usage(format!(
            "job {id} has no retry pool; to change the limits of its commands, use \
             `undaunted resume {id} --update FILE`"
        )));
    };
    if pool.limits.total >= most {
        return Err(CommandError::Usage(format!(
            "the pool of job {id} has {} retries, and the operator allows at most {most} \
             (RETRY_BUDGET_MAX at submission); `undaunted budget show {id}` shows which items used \
             them",
            pool.limits.total
        )));
    }
    let request = JobRequest::TopUp(retries);
    let owner = match jobs.claim_or_ask(id, request)? {
        ClaimOrOwner::Claimed(claimed) => {
            let job = journal::record_input(&*jobs.store, *claimed, &request.input(), Clock::set().now());
            return topped_up(&job?, pool, retries, as_json);
        }
        ClaimOrOwner::Owner(owner) => owner.pid,
    };
    // The owner decides how many are added.
    let view = TopUpRequestView { job_id: id.to_owned(), asked: retries, requested: true, owner };
    let more = count(retries, "retry", "retries");
    print(&view, as_json, |out, _| {
        writeln!(
            out,
            "asked process {owner}, which is running job {id}, to add {more} \
             (the operator allows {most} in total); `undaunted budget show {id}` shows the result"
        )
    })?;
    Ok(Exit::Done)
}

fn topped_up(job: &Job, before: Pool, retries: u32, as_json: bool) -> Result<Exit> {
    let id = job.id();
    let total = job.pool.map_or(0, |pool| pool.limits.total);
    let added = total.saturating_sub(before.limits.total);
    let view = TopUpView { job_id: id.to_owned(), asked: retries, added, total_budget: total };
    print(&view, as_json, |out, _| {
        let bound = match job.ceilings().max_total {
            most if added < retries => format!(" (the operator allows at most {most})"),
            _ => String::new(),
        };
        let more = count(added, "retry", "retries");
        writeln!(out, "added {more} to job {id}, {total} in total{bound}")?;
        if job.stage.has_ended() {
            writeln!(out, "redrive its dead letters:  undaunted dlq redrive {id}")?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}
