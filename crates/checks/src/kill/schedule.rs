//! Which processes are killed when.

use std::time::Duration;

use crate::random::SeededRandom;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillTarget {
    Engine,
    Keeper,
    Command,
    EngineAndKeeper,
    All,
}

impl KillTarget {
    pub(crate) const fn is_engine(self) -> bool {
        matches!(self, Self::Engine | Self::EngineAndKeeper | Self::All)
    }
}

/// A SIGKILL from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InjectedKill {
    /// Since the previous kill.
    pub(crate) after: Duration,
    pub(crate) target: KillTarget,
}

/// What happens to one started process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessPlan {
    /// The pause before it is started.
    pub(crate) pause: Duration,
    /// The failpoint at which it dies, `<failpoint>:<number>`.
    pub(crate) failpoint: Option<String>,
    pub(crate) kills: Vec<InjectedKill>,
    /// Whether another process is started at the same time.
    pub(crate) has_rival: bool,
}

/// Failpoints of engines and keepers, with the highest number that is worth a try.
const OF_JOBS: &[(&str, u64)] = &[
    ("claimed", 1),
    ("append-before", 60),
    ("append-after", 60),
    ("begin-before", 20),
    ("begin-after", 20),
    ("ended-before", 20),
    ("forget-after", 20),
    ("items-read", 1),
    ("results-before-rename", 1),
    ("results-after-rename", 1),
    ("spawning", 20),
    ("spawned", 20),
    ("exited", 20),
    ("exited-after", 20),
    ("commit-before", 40),
    ("commit-after", 40),
    ("told-before", 25),
    ("told-after", 25),
    ("answer-before", 15),
    ("answer-after", 15),
    ("log-before-rename", 2),
    ("log-after-rename", 2),
    ("file-before-rename", 4),
    ("file-after-rename", 4),
    ("call-before", 6),
    ("call-after", 6),
];

/// Failpoints of servers.
const OF_SERVERS: &[(&str, u64)] = &[
    ("claimed", 3),
    ("append-before", 20),
    ("append-after", 20),
    ("begin-before", 5),
    ("commit-before", 25),
    ("commit-after", 25),
    ("call-before", 10),
    ("call-after", 10),
    ("flow-written", 4),
    ("flow-begun", 4),
    ("result-taken", 5),
    ("result-handed-on", 2),
];

/// Every failpoint of the campaign.
pub(crate) fn failpoints() -> impl Iterator<Item = &'static str> {
    OF_JOBS.iter().chain(OF_SERVERS).map(|(failpoint, _)| *failpoint)
}

fn failpoint(random: &mut SeededRandom, list: &[(&str, u64)]) -> Option<String> {
    let (failpoint, most) = random.one_of(list)?;
    // Low numbers are always reached, high ones seldom.
    let most = if random.chance(1, 2) { (*most).min(6) } else { *most };
    Some(format!("{failpoint}:{}", random.between(1, most)))
}

/// The failpoint of a round: all of them take turns.
pub(crate) fn turn(round: u64) -> &'static str {
    let turn = usize::try_from(round).unwrap_or_default();
    let turn = turn.checked_rem(OF_JOBS.len()).unwrap_or_default();
    OF_JOBS.get(turn).map_or("", |(failpoint, _)| failpoint)
}

/// The engines of a job before it is left alone. The first one runs `run` and has the failpoint of the round.
pub(crate) fn of_job(random: &mut SeededRandom, round: u64) -> Vec<ProcessPlan> {
    let name = turn(round);
    let own: Vec<_> = OF_JOBS.iter().filter(|(it, _)| *it == name).copied().collect();
    let plans = (0..random.between(3, 7)).map(|number| {
        let is_first = number == 0;
        let from = if is_first { own.as_slice() } else { OF_JOBS };
        let dies = is_first || random.chance(1, 2);
        let failpoint = if dies { failpoint(random, from) } else { None };
        let pause = if random.chance(1, 3) { random.between(0, 150) } else { 0 };
        ProcessPlan {
            pause: Duration::from_millis(pause),
            kills: kills(random, failpoint.is_some()),
            failpoint,
            has_rival: !is_first && random.chance(1, 6),
        }
    });
    plans.collect()
}

fn kills(random: &mut SeededRandom, has_place: bool) -> Vec<InjectedKill> {
    let mut kills = Vec::new();
    // A process with a failpoint gets the time to reach it.
    let most = if has_place { 800_000 } else { 200_000 };
    for _ in 0..random.between(1, 3) {
        let target = match random.below(20) {
            0..8 => KillTarget::Engine,
            8..11 => KillTarget::Keeper,
            11..14 => KillTarget::Command,
            14..16 => KillTarget::EngineAndKeeper,
            _ => KillTarget::All,
        };
        let after = Duration::from_micros(random.between(0, most));
        kills.push(InjectedKill { after, target });
        if target.is_engine() {
            break;
        }
    }
    kills
}

/// The processes of one server before it is left alone.
pub(crate) fn of_server(random: &mut SeededRandom, round: u64) -> Vec<ProcessPlan> {
    let plans = random.between(2, 5);
    let plans = (0..plans).map(|number| {
        let turn = usize::try_from(round).unwrap_or_default();
        let turn = turn.checked_rem(OF_SERVERS.len()).unwrap_or_default();
        let own = OF_SERVERS.get(turn..=turn).unwrap_or_default();
        let from = if number == 0 { own } else { OF_SERVERS };
        let failpoint = if random.chance(2, 3) { failpoint(random, from) } else { None };
        let after = Duration::from_micros(random.between(20_000, 260_000));
        ProcessPlan {
            pause: Duration::from_millis(random.between(0, 40)),
            failpoint,
            kills: vec![InjectedKill { after, target: KillTarget::Engine }],
            has_rival: false,
        }
    });
    plans.collect()
}
