//! Timing a group in rounds.
//!
//! The figure of a round is its fastest batch: nothing makes a batch faster than its work, while other programs
//! on the machine can slow it down without limit.

use std::time::Duration;

use undaunted_bench_figures::{Figures, alternate};
use undaunted_bench_policy::{Contestant, Group, Role, Target};

pub(crate) const ROUNDS: usize = 7;
pub(crate) const BATCHES: usize = 36;
pub(crate) const BATCH: Duration = Duration::from_millis(2);
const WARM_UP: Duration = Duration::from_millis(50);

pub(crate) struct Measured {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) target: Option<Target>,
    pub(crate) left_out: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// A contestant and its figures, in nanoseconds.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) role: Role,
    pub(crate) rounds: Figures,
}

impl Row {
    pub(crate) fn median(&self) -> f64 {
        self.rounds.median()
    }
}

impl Measured {
    /// The cost of the cheapest peer, if there is one.
    pub(crate) fn cheapest_peer(&self) -> Option<f64> {
        let peers = self.rows.iter().filter(|row| row.role == Role::Peer);
        peers.map(Row::median).min_by(f64::total_cmp)
    }
}

pub(crate) fn measure(group: Group) -> Measured {
    let mut turns: Vec<Turn> = group.contestants.into_iter().map(Turn::warmed_up).collect();
    let measured = alternate(ROUNDS, turns.len(), |_, who| {
        let turn = turns.get_mut(who).ok_or("no such contestant")?;
        Ok::<f64, &str>(turn.take())
    });
    let rows = turns.into_iter().zip(measured).map(|(turn, rounds)| Row {
        name: turn.contestant.name,
        about: turn.contestant.about,
        role: turn.contestant.role,
        rounds: Figures::of(rounds.unwrap_or_default()),
    });
    Measured {
        name: group.name,
        about: group.about,
        target: group.target,
        left_out: group.left_out,
        rows: rows.collect(),
    }
}

struct Turn {
    contestant: Contestant,
    /// The iterations of a batch.
    iterations: u64,
}

impl Turn {
    /// Determines how many iterations fill a batch, and warms caches and branch predictors.
    fn warmed_up(mut contestant: Contestant) -> Self {
        let mut iterations = 1_u64;
        while contestant.time(iterations) < WARM_UP {
            iterations = iterations.saturating_mul(2);
        }
        let took = contestant.time(iterations).as_secs_f64();
        Self { iterations: share(iterations, BATCH.as_secs_f64() / took), contestant }
    }

    fn take(&mut self) -> f64 {
        let batches = (0..BATCHES).map(|_| {
            let took = self.contestant.time(self.iterations);
            nanoseconds_each(took, self.iterations)
        });
        batches.fold(f64::INFINITY, f64::min)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a number of iterations, roughly"
)]
fn share(iterations: u64, part: f64) -> u64 {
    ((iterations as f64 * part) as u64).max(1)
}

#[expect(clippy::cast_precision_loss, reason = "no measurement has 2^53 iterations")]
fn nanoseconds_each(took: Duration, iterations: u64) -> f64 {
    took.as_secs_f64() * 1e9 / iterations as f64
}
