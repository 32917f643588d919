//! `undaunted budget`: the retries a whole job may make.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};
use undaunted_engine::job::Job;
use undaunted_engine::view::{TopUpRequestView, TopUpView};
use undaunted_policy::Pool;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal::{self, JournalError};
use undaunted_runner::request::{JobRequest, ask};
use undaunted_store::ClaimError;

use crate::exit::{CommandError, Exit};
use crate::jobs::Jobs;
use crate::opened::OpenedJob;
use crate::screen::{json, plain};

const NAMED: usize = 20;

/// What to do with the pool of a job.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted budget show @last
  undaunted budget show @last --json
  undaunted budget top-up @last 10     # also while the job runs

A job has a pool if its workflow says `retry_budget` or `retry_budget_per_workflow`, or the
operator set RETRY_BUDGET_DEFAULT. Every retry of every item takes one unit of it, and none is
given back. A top-up allows the job more; an item never more than
`retry_budget_per_workflow`.")]
pub(crate) struct BudgetArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show how much of it is used, and by which items
    Show {
        /// The job
        #[arg(value_name = "JOB")]
        job: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Allow more retries, up to the operator's maximum when the job was submitted
    TopUp {
        /// The job
        #[arg(value_name = "JOB")]
        job: String,
        /// How many more
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        retries: u32,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(store: Option<&Path>, args: &BudgetArgs) -> Result<Exit> {
    let jobs = Jobs::open(store)?;
    match &args.what {
        What::Show { job, json } => show(&jobs, &jobs.find(job)?, *json),
        What::TopUp { job, retries, json } => top_up(&jobs, &jobs.find(job)?, *retries, *json),
    }
}

fn show(jobs: &Jobs, id: &str, as_json: bool) -> Result<Exit> {
    let view = OpenedJob::open(jobs, id)?.budget()?;
    let mut out = io::stdout().lock();
    if as_json {
        json(&mut out, &view)?;
        return Ok(Exit::Done);
    }
    let (Some(total), Some(per_item)) = (view.total_budget, view.per_workflow_max) else {
        writeln!(
            out,
            "job {id} has no pool: only the limits of each command bound its retries\n\
             a workflow has one if it says `retry_budget: 20` at the top"
        )?;
        return Ok(Exit::Done);
    };
    let consumed = view.consumed;
    let left = total.saturating_sub(consumed);
    writeln!(out, "job {id}: {consumed} of {total} retries used, {left} left; at most {per_item} an item")?;
    let mut items: Vec<(&String, &u32)> = view.per_workflow_consumed.iter().collect();
    items.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (item, units) in items.iter().take(NAMED) {
        let share = if **units >= per_item { "  (all of its share)" } else { "" };
        writeln!(out, "  {units:>5}  {}{share}", plain(item))?;
    }
    if let more @ 1.. = items.len().saturating_sub(NAMED) {
        writeln!(out, "         … {more} more items: --json has all")?;
    }
    let most = view.maximum;
    if left == 0 && total < most {
        let room = most.saturating_sub(total);
        writeln!(out, "allow more, {room} at most:  undaunted budget top-up {id} {room}")?;
    } else if left == 0 {
        writeln!(out, "the operator allows no more (RETRY_BUDGET_MAX was {most} when it was submitted)")?;
    }
    Ok(Exit::Done)
}

fn top_up(jobs: &Jobs, id: &str, retries: u32, as_json: bool) -> Result<Exit> {
    let job = jobs.read(id)?;
    let most = job.ceilings().max_total;
    let Some(pool) = job.pool else {
        return Err(CommandError::Usage(format!(
            "job {id} has no pool to top up: only the limits of each command bound its retries; \
             change them with `undaunted resume {id} --update FILE`"
        ))
        .into());
    };
    if pool.limits.total >= most {
        return Err(CommandError::Usage(format!(
            "the pool of job {id} has {} retries, and the operator allowed {most} at most \
             (RETRY_BUDGET_MAX when it was submitted); `undaunted budget show {id}` says who used \
             them",
            pool.limits.total
        ))
        .into());
    }
    let request = JobRequest::TopUp(retries);
    let owner = match journal::claim(&*jobs.store, id, &jobs.plans) {
        Ok(held) => {
            let now = Clock::set().now();
            let told = journal::tell(&*jobs.store, held, &request.input(), now);
            let told = told.map_err(CommandError::from)?;
            return topped_up(&told, pool, retries, as_json);
        }
        Err(JournalError::Claim(ClaimError::OwnedBy { owner, .. })) => {
            ask(&*jobs.store, id, request).map_err(CommandError::from)?;
            owner.pid
        }
        Err(error) => return Err(CommandError::from(error).into()),
    };
    // The owner decides how many are added.
    let mut out = io::stdout().lock();
    if as_json {
        let told = TopUpRequestView { job_id: id.to_owned(), asked: retries, requested: true, owner };
        json(&mut out, &told)?;
    } else {
        writeln!(
            out,
            "job {id} is being run by process {owner}, which was asked to allow {retries} more \
             (the operator allows {most} in all); `undaunted budget show {id}` says what it has"
        )?;
    }
    Ok(Exit::Done)
}

fn topped_up(job: &Job, before: Pool, retries: u32, as_json: bool) -> Result<Exit> {
    let id = job.id();
    let total = job.pool.map_or(0, |pool| pool.limits.total);
    let added = total.saturating_sub(before.limits.total);
    let mut out = io::stdout().lock();
    if as_json {
        let told = TopUpView { job_id: id.to_owned(), asked: retries, added, total_budget: total };
        json(&mut out, &told)?;
        return Ok(Exit::Done);
    }
    let bound = if added < retries {
        format!(" (the operator allows {} at most)", job.ceilings().max_total)
    } else {
        String::new()
    };
    let more = if added == 1 { "retry" } else { "retries" };
    writeln!(out, "job {id} may make {added} more {more}, {total} in all{bound}")?;
    if job.stage.has_ended() {
        writeln!(out, "try its dead letters again:  undaunted dlq redrive {id}")?;
    }
    Ok(Exit::Done)
}
