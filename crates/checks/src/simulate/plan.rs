//! What a seed stands for: jobs, and what goes wrong while they run.

use super::case::Case;
use super::harm::Harm;
use crate::die::Die;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where chance comes from.
    pub seed: u64,
    /// The jobs.
    pub cases: Vec<Case>,
    /// What goes wrong.
    pub harm: Harm,
}

impl Plan {
    /// What a seed stands for.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut die = Die::new(seed);
        let jobs = if die.falls(1, 3) { die.between(2, 3) } else { 1 };
        let cases = (0..jobs).map(|_| Case::drawn(&mut die)).collect();
        let harm = Harm::drawn(&mut die);
        Self { seed, cases, harm }
    }

    /// The first of its jobs, and nothing goes wrong.
    #[must_use]
    pub fn calm(&self) -> Self {
        Self { seed: self.seed, cases: self.cases.first().cloned().into_iter().collect(), harm: Harm::none() }
    }

    /// The same with one thing less, each in its turn.
    #[must_use]
    pub fn smaller(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.cases.len() > 1 {
            for place in 0..self.cases.len() {
                let mut less = self.clone();
                less.cases.remove(place);
                found.push(less);
            }
        }
        for harm in self.harm.smaller() {
            found.push(Self { harm, ..self.clone() });
        }
        for (place, case) in self.cases.iter().enumerate() {
            for smaller in case.smaller() {
                let mut less = self.clone();
                if let Some(case) = less.cases.get_mut(place) {
                    *case = smaller;
                }
                found.push(less);
            }
        }
        found
    }
}
