//! A round of one job: `run` is killed, then `resume` a few times; then the job is left alone until it ends.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::compare::{KillEvidence, compare};
use super::findings::KillFindings;
use super::journal::{self, JournalEvent};
use super::plan::{self, KillPlan, PlanContext};
use super::sandbox::{ProgramExit, RoundSandbox, RunningProgram};
use super::schedule::{self, KillTarget, ProcessPlan};
use super::step_server::RecordingStepServer;
use crate::random::SeededRandom;

/// How long an undisturbed job may take, whatever its waits.
const FINISH_WITHIN: Duration = Duration::from_secs(30);
/// How long an engine runs after the last kill of another process.
const UNDISTURBED: Duration = Duration::from_millis(250);
/// Exit codes of a job that has ended.
const ENDS: &[i32] = &[0, 1, 4];

struct JobRound<'w> {
    sandbox: &'w RoundSandbox,
    findings: KillFindings,
    is_stored: bool,
}

pub(crate) fn round(sandbox: &RoundSandbox, seed: u64, actor: &Path) -> io::Result<KillFindings> {
    let mut random = SeededRandom::new(seed);
    let server = RecordingStepServer::start(seed)?;
    let calls = server.origin();
    let stage = PlanContext { actor, folder: sandbox.folder(), calls: &calls };
    let plan = plan::draw(&mut random, &stage, schedule::turn(seed));
    sandbox.write("w.yaml", &format!("{:#}\n", plan.workflow))?;
    sandbox.write("items.txt", &(plan.items.join("\n") + "\n"))?;
    let mut round = JobRound { sandbox, findings: KillFindings::default(), is_stored: false };
    for plan in schedule::of_job(&mut random, seed) {
        if round.run_killed(&plan)? {
            break;
        }
    }
    let report = round.finish()?;
    sandbox.note_deaths();
    if let Some(report) = report {
        round.compare(&plan, &server, &report)?;
    }
    sandbox.report_deaths(&mut round.findings);
    Ok(round.findings)
}

impl JobRound<'_> {
    fn start(&self, failpoint: Option<&str>) -> io::Result<RunningProgram> {
        let args: &[&str] =
            if self.is_stored { &["resume", "@last", "--json"] } else { &["run", "w.yaml", "--json"] };
        self.sandbox.start(args, failpoint)
    }

    /// Runs one engine with its kills. True if the job has ended.
    fn run_killed(&mut self, plan: &ProcessPlan) -> io::Result<bool> {
        thread::sleep(plan.pause);
        let mut engine = self.start(plan.failpoint.as_deref())?;
        let doubled = plan.has_rival && self.is_stored;
        let mut rival = if doubled { Some(self.start(None)?) } else { None };
        let mut is_over = false;
        for kill in &plan.kills {
            is_over = engine.ends_within(kill.after)?;
            if is_over {
                break;
            }
            match kill.target {
                KillTarget::Engine => self.sandbox.kill(&mut engine)?,
                KillTarget::Keeper => self.sandbox.kill_keepers(),
                KillTarget::Command => self.sandbox.kill_commands(false),
                KillTarget::EngineAndKeeper => {
                    self.sandbox.kill(&mut engine)?;
                    self.sandbox.kill_keepers();
                }
                KillTarget::All => {
                    self.sandbox.kill(&mut engine)?;
                    self.sandbox.kill_keepers();
                    self.sandbox.kill_commands(true);
                }
            }
        }
        if !is_over && !engine.ends_within(UNDISTURBED)? {
            self.sandbox.kill(&mut engine)?;
        }
        if let Some(rival) = &mut rival {
            self.sandbox.kill(rival)?;
            self.sandbox.note_deaths_of(rival);
            let ended = rival.ended()?;
            self.check_exit(&ended);
        }
        self.sandbox.note_deaths_of(&engine);
        let ended = engine.ended()?;
        self.check_exit(&ended);
        self.check_stored()?;
        Ok(ENDS.contains(&ended.code))
    }

    /// Whatever kills it, a program ends with one of a few codes.
    fn check_exit(&mut self, ended: &ProgramExit) {
        // 7: another process owns the job, or its keeper was killed before it could be reached.
        let fine = ENDS.contains(&ended.code) || [7, -9].contains(&ended.code);
        self.findings
            .unlawful_unless(fine, format_args!("the program ended with {}: {}", ended.code, ended.err));
    }

    /// A job that is not stored has run nothing.
    fn check_stored(&mut self) -> io::Result<()> {
        if self.is_stored {
            return Ok(());
        }
        let listed = self.sandbox.call(&["ls", "--json"])?;
        self.is_stored = listed.out.lines().next().is_some();
        let ran = self.sandbox.record().len();
        self.findings.lost_unless(
            self.is_stored || ran == 0,
            format_args!("{ran} commands have run for a job that is not on record"),
        );
        Ok(())
    }

    /// Resumes the job until it has ended, and returns its report.
    fn finish(&mut self) -> io::Result<Option<ProgramExit>> {
        for _ in 0..20 {
            let mut engine = self.start(None)?;
            if !engine.ends_within(FINISH_WITHIN)? {
                self.findings.lost(format_args!("the job does not end within {FINISH_WITHIN:?}"));
                return Ok(None);
            }
            let ended = engine.ended()?;
            if ENDS.contains(&ended.code) {
                return Ok(Some(ended));
            }
            if ended.code != 7 {
                self.check_exit(&ended);
                return Ok(None);
            }
            self.is_stored = true;
            thread::sleep(Duration::from_millis(50));
        }
        self.findings.lost(format_args!("no process can resume the job"));
        Ok(None)
    }

    fn compare(
        &mut self,
        plan: &KillPlan,
        server: &RecordingStepServer,
        report: &ProgramExit,
    ) -> io::Result<()> {
        let events = self.sandbox.call(&["events", "@last", "--json"])?;
        let Some(events) = journal::read(&events.out) else {
            self.findings.lost(format_args!("the events cannot be read: {}", events.err));
            return Ok(());
        };
        let case = KillEvidence {
            plan,
            events: &events,
            runs: &self.sandbox.record(),
            calls: &server.calls(),
            posted: &[],
            kills: &self.sandbox.kills(),
        };
        self.findings.absorb(compare(&case));
        reported(plan, &events, report, &mut self.findings);
        let listed = self.sandbox.call(&["ls", "--json"])?;
        let jobs = listed.out.lines().count();
        self.findings.duplicated_unless(jobs == 1, format_args!("{jobs} jobs are on record"));
        Ok(())
    }
}

/// The report agrees with the journal.
fn reported(plan: &KillPlan, events: &[JournalEvent], report: &ProgramExit, findings: &mut KillFindings) {
    let report: Value = serde_json::from_str(&report.out).unwrap_or_default();
    let count = |kind: &str| {
        let events = events.iter().filter(|it| {
            let planned = plan.commands.get(it.text("command"));
            it.is(kind) && planned.is_some_and(|it| !it.is_handler)
        });
        u64::try_from(events.count()).ok()
    };
    let said = |name: &str| report.get(name).and_then(Value::as_u64);
    let started = count("attempt_started");
    findings.lost_unless(
        said("attempts") == started,
        format_args!("{started:?} attempts are on record, and the report says {report}"),
    );
    let status = report.get("status").and_then(Value::as_str).unwrap_or_default();
    let last = events.last().map(|it| it.text("status")).unwrap_or_default();
    findings.lost_unless(status == last, format_args!("{last} is on record, and the report says {status}"));
}
