//! `undaunted budget`: the retries a whole job may make.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;
use undaunted_engine::event::{Event, Record};
use undaunted_engine::id::ItemId;
use undaunted_engine::job::Job;
use undaunted_policy::Pool;
use undaunted_runner::clock::Clock;
use undaunted_runner::journal::{self, JournalError};
use undaunted_runner::request::{JobRequest, ask};
use undaunted_store::ClaimError;

use crate::exit::{Exit, Refused};
use crate::jobs::Jobs;
use crate::screen::plain;

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

/// How many units each item has taken from the pool. Read from the journal: settled items no longer have it.
fn taken(jobs: &Jobs, id: &str) -> Result<(Job, BTreeMap<String, u32>), Refused> {
    let mut taken: BTreeMap<ItemId, u32> = BTreeMap::new();
    let read = journal::replay(&*jobs.store, id, &jobs.plans, |_, _, record: &Record| {
        if let Event::Item(event) = &record.event
            && event.is_charged()
        {
            let units = taken.entry(event.item()).or_default();
            *units = units.saturating_add(1);
        }
    });
    let (job, _) = read?;
    let mut named: BTreeMap<String, u32> = BTreeMap::new();
    for (item, units) in taken.into_iter().filter(|_| job.pool.is_some()) {
        let name = job.identity(item).to_owned();
        // Items of different steps may have the same name.
        let all = named.entry(name).or_default();
        *all = all.saturating_add(units);
    }
    Ok((job, named))
}

fn show(jobs: &Jobs, id: &str, json: bool) -> Result<Exit> {
    let (job, taken) = taken(jobs, id)?;
    let mut out = io::stdout().lock();
    if json {
        let shown = json!({
            "job_id": id,
            "total_budget": job.pool.map(|pool| pool.limits.total),
            "per_workflow_max": job.pool.map(|pool| pool.limits.per_item),
            "consumed": job.pool.map_or(0, |pool| pool.consumed),
            "per_workflow_consumed": taken,
        });
        writeln!(out, "{shown}")?;
        return Ok(Exit::Done);
    }
    let Some(Pool { limits, consumed }) = job.pool else {
        writeln!(
            out,
            "job {id} has no pool: only the limits of each command bound its retries\n\
             a workflow has one if it says `retry_budget: 20` at the top"
        )?;
        return Ok(Exit::Done);
    };
    let left = limits.total.saturating_sub(consumed);
    writeln!(
        out,
        "job {id}: {consumed} of {} retries used, {left} left; at most {} an item",
        limits.total, limits.per_item
    )?;
    let mut items: Vec<(&String, &u32)> = taken.iter().collect();
    items.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (item, units) in items.iter().take(NAMED) {
        let share = if **units >= limits.per_item {
            "  (all of its share)"
        } else {
            ""
        };
        writeln!(out, "  {units:>5}  {}{share}", plain(item))?;
    }
    if let more @ 1.. = items.len().saturating_sub(NAMED) {
        writeln!(out, "         … {more} more items: --json has all")?;
    }
    let most = job.ceilings().max_total;
    if left == 0 && limits.total < most {
        let room = most.saturating_sub(limits.total);
        writeln!(
            out,
            "allow more, {room} at most:  undaunted budget top-up {id} {room}"
        )?;
    } else if left == 0 {
        writeln!(
            out,
            "the operator allows no more (RETRY_BUDGET_MAX was {most} when it was submitted)"
        )?;
    }
    Ok(Exit::Done)
}

fn top_up(jobs: &Jobs, id: &str, retries: u32, json: bool) -> Result<Exit> {
    let job = jobs.read(id)?;
    let most = job.ceilings().max_total;
    let Some(pool) = job.pool else {
        return Err(Refused::Usage(format!(
            "job {id} has no pool to top up: only the limits of each command bound its retries; \
             change them with `undaunted resume {id} --update FILE`"
        ))
        .into());
    };
    if pool.limits.total >= most {
        return Err(Refused::Usage(format!(
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
            let told = told.map_err(Refused::from)?;
            return topped_up(&told, pool, retries, json);
        }
        Err(JournalError::Claim(ClaimError::OwnedBy { owner, .. })) => {
            ask(&*jobs.store, id, request).map_err(Refused::from)?;
            owner.pid
        }
        Err(error) => return Err(Refused::from(error).into()),
    };
    // The owner decides how many are added.
    let mut out = io::stdout().lock();
    if json {
        let told = json!({ "job_id": id, "asked": retries, "requested": true, "owner": owner });
        writeln!(out, "{told}")?;
    } else {
        writeln!(
            out,
            "job {id} is being run by process {owner}, which was asked to allow {retries} more \
             (the operator allows {most} in all); `undaunted budget show {id}` says what it has"
        )?;
    }
    Ok(Exit::Done)
}

fn topped_up(job: &Job, before: Pool, retries: u32, json: bool) -> Result<Exit> {
    let id = job.id();
    let total = job.pool.map_or(0, |pool| pool.limits.total);
    let added = total.saturating_sub(before.limits.total);
    let mut out = io::stdout().lock();
    if json {
        let told = json!({
            "job_id": id, "asked": retries, "added": added, "total_budget": total,
        });
        writeln!(out, "{told}")?;
        return Ok(Exit::Done);
    }
    let bound = if added < retries {
        format!(
            " (the operator allows {} at most)",
            job.ceilings().max_total
        )
    } else {
        String::new()
    };
    let more = if added == 1 { "retry" } else { "retries" };
    writeln!(
        out,
        "job {id} may make {added} more {more}, {total} in all{bound}"
    )?;
    if job.stage.has_ended() {
        writeln!(
            out,
            "try its dead letters again:  undaunted dlq redrive {id}"
        )?;
    }
    Ok(Exit::Done)
}
