//! A round of a job: `run`, killed; `resume`, killed, a few times; then left alone until it ends.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::compare::{Case, compare};
use super::found::{Found, Kind};
use super::journal::{self, Event};
use super::plan::{self, Plan, Stage};
use super::step_server::StepServer;
use super::strokes::{self, Life, Who};
use super::world::{Ended, Running, World};
use crate::die::Die;

/// How long a job that is left alone may take, whatever its waits.
const HEALING: Duration = Duration::from_secs(30);
/// How long it is left running after the last stroke that hit others.
const LEFT: Duration = Duration::from_millis(250);
/// Exit codes of a job that has ended.
const ENDS: &[i32] = &[0, 1, 4];

struct Round<'w> {
    world: &'w World,
    found: Found,
    is_stored: bool,
}

/// Runs it, and tells what was found.
pub(crate) fn round(world: &World, seed: u64, actor: &Path) -> io::Result<Found> {
    let mut die = Die::new(seed);
    let server = StepServer::start(seed)?;
    let calls = server.origin();
    let stage = Stage { actor, folder: world.folder(), calls: &calls };
    let plan = plan::draw(&mut die, &stage, strokes::turn(seed));
    world.write("w.yaml", &format!("{:#}\n", plan.workflow))?;
    world.write("items.txt", &(plan.items.join("\n") + "\n"))?;
    let mut round = Round { world, found: Found::default(), is_stored: false };
    for life in strokes::of_job(&mut die, seed) {
        if round.live(&life)? {
            break;
        }
    }
    let report = round.heal()?;
    world.mourn_all();
    if let Some(report) = report {
        round.compare(&plan, &server, &report)?;
    }
    world.tell(&mut round.found);
    Ok(round.found)
}

impl Round<'_> {
    fn start(&self, place: Option<&str>) -> io::Result<Running> {
        let args: &[&str] =
            if self.is_stored { &["resume", "@last", "--json"] } else { &["run", "w.yaml", "--json"] };
        self.world.start(args, place)
    }

    /// One life of an engine. True if the job has ended in it.
    fn live(&mut self, life: &Life) -> io::Result<bool> {
        thread::sleep(life.away);
        let mut engine = self.start(life.place.as_deref())?;
        let doubled = life.twin && self.is_stored;
        let mut twin = if doubled { Some(self.start(None)?) } else { None };
        let mut is_over = false;
        for stroke in &life.strokes {
            is_over = engine.ends_within(stroke.after)?;
            if is_over {
                break;
            }
            match stroke.who {
                Who::Engine => self.world.kill(&mut engine)?,
                Who::Keeper => self.world.kill_keepers(),
                Who::Command => self.world.kill_commands(false),
                Who::EngineAndKeeper => {
                    self.world.kill(&mut engine)?;
                    self.world.kill_keepers();
                }
                Who::All => {
                    self.world.kill(&mut engine)?;
                    self.world.kill_keepers();
                    self.world.kill_commands(true);
                }
            }
        }
        if !is_over && !engine.ends_within(LEFT)? {
            self.world.kill(&mut engine)?;
        }
        if let Some(twin) = &mut twin {
            self.world.kill(twin)?;
            self.world.mourn(twin);
            let ended = twin.ended()?;
            self.is_fine(&ended);
        }
        self.world.mourn(&engine);
        let ended = engine.ended()?;
        self.is_fine(&ended);
        self.look()?;
        Ok(ENDS.contains(&ended.code))
    }

    /// Whatever happens to it, it ends in one of a few ways.
    fn is_fine(&mut self, ended: &Ended) {
        // 7: another has the job, or its keeper was killed before it could be reached.
        let fine = ENDS.contains(&ended.code) || [7, -9].contains(&ended.code);
        self.found
            .claim(Kind::Unlawful, fine, || format!("the program ended with {}: {}", ended.code, ended.err));
    }

    /// Whether the job is stored; if not, nothing has run.
    fn look(&mut self) -> io::Result<()> {
        if self.is_stored {
            return Ok(());
        }
        let listed = self.world.call(&["ls", "--json"])?;
        self.is_stored = listed.out.lines().next().is_some();
        let ran = self.world.record().len();
        self.found.claim(Kind::Lost, self.is_stored || ran == 0, || {
            format!("{ran} commands have run for a job that is not on record")
        });
        Ok(())
    }

    /// Leaves it alone until it has ended: its report.
    fn heal(&mut self) -> io::Result<Option<Ended>> {
        for _ in 0..20 {
            let mut engine = self.start(None)?;
            if !engine.ends_within(HEALING)? {
                self.found.lost(format!("the job does not end within {HEALING:?}"));
                return Ok(None);
            }
            let ended = engine.ended()?;
            if ENDS.contains(&ended.code) {
                return Ok(Some(ended));
            }
            if ended.code != 7 {
                self.is_fine(&ended);
                return Ok(None);
            }
            self.is_stored = true;
            thread::sleep(Duration::from_millis(50));
        }
        self.found.lost("nobody can go on with the job".to_owned());
        Ok(None)
    }

    fn compare(&mut self, plan: &Plan, server: &StepServer, report: &Ended) -> io::Result<()> {
        let events = self.world.call(&["events", "@last", "--json"])?;
        let Some(events) = journal::read(&events.out) else {
            self.found.lost(format!("the events cannot be read: {}", events.err));
            return Ok(());
        };
        let case = Case {
            plan,
            events: &events,
            runs: &self.world.record(),
            calls: &server.calls(),
            posted: &[],
            deeds: &self.world.deeds(),
        };
        self.found.absorb(compare(&case));
        reported(plan, &events, report, &mut self.found);
        let listed = self.world.call(&["ls", "--json"])?;
        let jobs = listed.out.lines().count();
        self.found.claim(Kind::Duplicated, jobs == 1, || format!("{jobs} jobs are on record"));
        Ok(())
    }
}

/// What the report says is what the journal says.
fn reported(plan: &Plan, events: &[Event], report: &Ended, found: &mut Found) {
    let report: Value = serde_json::from_str(&report.out).unwrap_or_default();
    let count = |kind: &str| {
        let events = events.iter().filter(|it| {
            let drawn = plan.commands.get(it.text("command"));
            it.is(kind) && drawn.is_some_and(|it| !it.is_handler)
        });
        u64::try_from(events.count()).ok()
    };
    let said = |name: &str| report.get(name).and_then(Value::as_u64);
    let started = count("attempt_started");
    found.claim(Kind::Lost, said("attempts") == started, || {
        format!("{started:?} attempts are on record, and the report says {report}")
    });
    let status = report.get("status").and_then(Value::as_str).unwrap_or_default();
    let last = events.last().map(|it| it.text("status")).unwrap_or_default();
    found.claim(Kind::Lost, status == last, || format!("{last} is on record, and the report says {status}"));
}
