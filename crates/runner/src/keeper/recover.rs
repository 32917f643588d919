//! Recovering a spool after the death of its keeper: ends the remaining processes of its commands, and
//! records the fates of the commands.
//!
//! Done under the spool's lock, before anything else: by the next keeper when it starts, or by a program that
//! only needs the fates. Doing it twice changes nothing.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::KeeperError;
use crate::process::{self, EndedGroup, descendants, end_all};
use crate::spool::{BegunCommand, FoundLog, ReadLog, SpoolEntries, SpoolHeader};
use crate::{
    OutputSegments, OutputSlot, ProcessMark, RecoveredSpool, Spool, SpoolDamage, SpoolEntry, SpoolError,
    SpoolLock, SpoolLog, SpoolRecord, SpooledOutput, SystemProcess, VanishedCommand,
};

/// How often to look for leftovers; new ones may appear while others are ended.
const ROUNDS: u32 = 5;
/// How long a dying keeper may hold the lock.
const DYING: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct RecoveredRun {
    pub(crate) log: SpoolLog,
    pub(crate) segments: OutputSegments,
    pub(crate) damage: Option<SpoolDamage>,
}

/// Determines the fates of the commands of a dead keeper, and ends their remaining processes. Fails if a
/// keeper is alive.
pub fn recover(folder: &Path) -> Result<RecoveredSpool, KeeperError> {
    let spool = Spool::open(folder)?;
    let lock = lock(&spool)?;
    let name = process::random_name().map_err(KeeperError::Processes)?;
    let recovered = recover_spool(&spool, &lock, name)?;
    let fates = recovered.log.entries().iter();
    Ok(RecoveredSpool {
        fates: fates.map(|(id, entry)| (id, entry.fate(id))).collect(),
        uncertain: recovered.log.is_uncertain(),
        damage: recovered.damage,
    })
}

/// Takes the lock; waits for a dying keeper, which may hold it for a moment.
fn lock(spool: &Spool) -> Result<SpoolLock, SpoolError> {
    let until = Instant::now().checked_add(DYING);
    loop {
        match spool.lock() {
            Err(SpoolError::Locked { .. }) if until.is_some_and(|until| Instant::now() < until) => {
                std::thread::sleep(PAUSE);
            }
            locked => return locked,
        }
    }
}

/// Ends the processes that the last keeper left, and begins the log of a keeper called `name` with their
/// fates.
pub(crate) fn recover_spool(spool: &Spool, _: &SpoolLock, name: String) -> Result<RecoveredRun, KeeperError> {
    let pid = rustix::process::getpid().as_raw_pid();
    let header = SpoolHeader::now(name, pid).map_err(KeeperError::Processes)?;
    let unusable = SpoolError::unusable(spool.folder());
    let found = FoundLog::at(&spool.log()).map_err(unusable)?;
    let is_same_boot = matches!(&found, FoundLog::Log(log) if log.header.boot == header.boot);
    let segments = OutputSegments::open(spool, is_same_boot).map_err(unusable)?;
    let (entries, uncertain, damage) = match found {
        // Without a log nothing is certain. On the very first start no attempt is on record either.
        FoundLog::Nothing => (SpoolEntries::default(), true, None),
        FoundLog::Garbage(damage) => (SpoolEntries::default(), true, Some(damage)),
        FoundLog::Log(log) if is_same_boot => {
            let ended = end_leftovers(&log, header.pid_space).map_err(KeeperError::Processes)?;
            let uncertain = log.header.uncertain || log.damage.is_some();
            let entries = conclude(spool, &segments, &log, &ended);
            (entries, uncertain, log.damage)
        }
        FoundLog::Log(log) => (forget_everything(&log.entries), true, log.damage),
    };
    let header = SpoolHeader { uncertain, ..header };
    let log = SpoolLog::create(spool, header, entries).map_err(unusable)?;
    Ok(RecoveredRun { log, segments, damage })
}

/// After another boot nothing in the spool is trusted: it was never synced.
fn forget_everything(entries: &SpoolEntries) -> SpoolEntries {
    let mut vanished = SpoolEntries::default();
    for (id, entry) in entries.iter() {
        let began = match entry {
            SpoolEntry::Begun(begun) => begun.at,
            SpoolEntry::Exited(exited) => exited.began,
            SpoolEntry::Vanished(vanished) => vanished.began,
        };
        vanished.apply(&SpoolRecord::Vanished(VanishedCommand {
            id,
            began,
            stdout: SpooledOutput::default(),
            stderr: SpooledOutput::default(),
            ended: 0,
            survived: 0,
        }));
    }
    vanished
}

/// Records that all attempts without an end have vanished, and keeps their output.
fn conclude(
    spool: &Spool,
    segments: &OutputSegments,
    log: &ReadLog,
    ended: &BTreeMap<u64, EndedGroup>,
) -> SpoolEntries {
    let mut entries = log.entries.clone();
    for (id, begun) in begun(&log.entries) {
        let [stdout, stderr] = OutputSlot::reopen(spool, begun.slot).map_or_else(
            |_| [SpooledOutput::default(); 2],
            |slot| [&slot.out, &slot.err].map(|file| segments.keep(file, 0).unwrap_or_default()),
        );
        let EndedGroup { ended, survived } = ended.get(&id).copied().unwrap_or_default();
        entries.apply(&SpoolRecord::Vanished(VanishedCommand {
            id,
            began: begun.at,
            stdout,
            stderr,
            ended,
            survived,
        }));
    }
    entries
}

fn begun(entries: &SpoolEntries) -> impl Iterator<Item = (u64, &BegunCommand)> {
    entries.iter().filter_map(|(id, entry)| match entry {
        SpoolEntry::Begun(begun) => Some((id, begun)),
        _ => None,
    })
}

/// Ends the processes of all attempts without an end, and counts them by attempt.
fn end_leftovers(log: &ReadLog, pid_space: u64) -> io::Result<BTreeMap<u64, EndedGroup>> {
    let mut outcome = BTreeMap::<u64, EndedGroup>::new();
    // Every process is created after a record of its attempt.
    if log.damage.is_none() && begun(&log.entries).next().is_none() {
        return Ok(outcome);
    }
    for _ in 0..ROUNDS {
        let families = leftovers(log, pid_space)?;
        if families.is_empty() {
            break;
        }
        // In parallel, so that the graces of many commands pass at the same time.
        let threads = families.iter().map(|(owner, members)| {
            let grace = match owner.attempt().and_then(|id| log.entries.get(id)) {
                Some(SpoolEntry::Begun(begun)) => begun.grace,
                _ => Duration::ZERO,
            };
            (owner.attempt(), members, grace)
        });
        std::thread::scope(|scope| {
            let ending: Vec<_> = threads
                .map(|(id, members, grace)| (id, scope.spawn(move || end_all(members, grace))))
                .collect();
            for (id, ending) in ending {
                if let (Some(id), Ok(round)) = (id, ending.join()) {
                    let sum = outcome.entry(id).or_default();
                    sum.ended = sum.ended.saturating_add(round.ended);
                    // Only the last round counts: a survivor is found again in the next.
                    sum.survived = round.survived;
                }
            }
        });
    }
    Ok(outcome)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CommandOwner {
    /// A child of the dead keeper before `exec`; its attempt is not known.
    Keeper,
    Attempt(u64),
}

impl CommandOwner {
    const fn attempt(self) -> Option<u64> {
        match self {
            Self::Keeper => None,
            Self::Attempt(id) => Some(id),
        }
    }
}

/// The living processes of attempts without an end, by owner.
fn leftovers(log: &ReadLog, pid_space: u64) -> io::Result<BTreeMap<CommandOwner, Vec<SystemProcess>>> {
    let all = SystemProcess::all()?;
    let header = &log.header;
    // Process numbers are valid only in the pid namespace of the log, and the session is the keeper's only if
    // its leader is dead: a living process has reused the number.
    let has_numbers =
        header.pid_space == pid_space && !all.iter().any(|each| each.pid == header.pid && !each.ended);
    let own = rustix::process::getpid().as_raw_pid();
    let mut roots = BTreeMap::<i32, CommandOwner>::new();
    for each in all.iter().filter(|each| !each.ended && each.pid != own) {
        let by_group = begun(&log.entries)
            .find(|(_, begun)| begun.pid == Some(each.group) && each.session == header.pid)
            .filter(|_| has_numbers)
            .map(|(id, _)| CommandOwner::Attempt(id));
        if let Some(found) = by_group.or_else(|| marked(log, each)) {
            roots.insert(each.pid, found);
        }
    }
    let mut families = BTreeMap::<CommandOwner, Vec<SystemProcess>>::new();
    for (root, owner) in &roots {
        let members = descendants(&all, |each| each.pid == *root);
        let family = families.entry(*owner).or_default();
        for member in members.into_iter().filter(|member| !member.ended) {
            if member.pid != own && !family.contains(&member) {
                family.push(member);
            }
        }
    }
    Ok(families)
}

/// The attempt whose mark a process carries, if that attempt has no end on record.
fn marked(log: &ReadLog, process: &SystemProcess) -> Option<CommandOwner> {
    let marks = ProcessMark::of(process.pid);
    let mark = marks.iter().find(|mark| mark.keeper == log.header.keeper)?;
    let Some(id) = mark.id else {
        return Some(CommandOwner::Keeper);
    };
    match log.entries.get(id) {
        Some(SpoolEntry::Begun(_)) => Some(CommandOwner::Attempt(id)),
        Some(_) => None,
        // Forgotten, so its processes may stay; but if the log is damaged, that is not certain.
        None => log.damage.map(|_| CommandOwner::Attempt(id)),
    }
}
