//! Alternating rounds of measurements, and statistics of their figures.
//!
//! A machine is never idle, and its load changes from minute to minute. So contestants are measured in turns,
//! the order is reversed from round to round, and a ratio compares two figures of the same round. All
//! measurements of this workspace are taken in this way.

pub mod machine;

/// The figures of one contestant, one for each round.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures(Vec<f64>);

impl Figures {
    /// The figures of the rounds, in their order.
    #[must_use]
    pub const fn of(rounds: Vec<f64>) -> Self {
        Self(rounds)
    }

    /// The figures of the rounds, in their order.
    #[must_use]
    pub fn rounds(&self) -> &[f64] {
        &self.0
    }

    /// The median; NaN without figures.
    #[must_use]
    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        let last = sorted.len().saturating_sub(1);
        let middle = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
        f64::midpoint(middle(last / 2), middle(last.div_ceil(2)))
    }

    /// The minimum and the maximum; NaN without figures.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        let sorted = self.sorted();
        let end = |figure: Option<&f64>| figure.copied().unwrap_or(f64::NAN);
        (end(sorted.first()), end(sorted.last()))
    }

    /// The ratio to `other`, round by round.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        Self(pairs.map(|(figure, other)| figure / other).collect())
    }

    /// The difference to `other`, round by round.
    #[must_use]
    pub fn less(&self, other: &Self) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        Self(pairs.map(|(figure, other)| figure - other).collect())
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

impl FromIterator<f64> for Figures {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

/// Measures every contestant once in each round, reversing the order from round to round.
///
/// `turn` gets the number of the round, from 1, and the index of the contestant. A contestant whose turn fails
/// gets no further turn, and its result is the error.
pub fn alternate<T, E>(
    rounds: usize,
    contestants: usize,
    mut turn: impl FnMut(usize, usize) -> Result<T, E>,
) -> Vec<Result<Vec<T>, E>> {
    let mut taken: Vec<Result<Vec<T>, E>> = (0..contestants).map(|_| Ok(Vec::new())).collect();
    for round in 1..=rounds {
        let mut order: Vec<usize> = (0..contestants).collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        for contestant in order {
            let Some(slot) = taken.get_mut(contestant) else {
                continue;
            };
            if let Ok(figures) = slot {
                match turn(round, contestant) {
                    Ok(figure) => figures.push(figure),
                    Err(reason) => *slot = Err(reason),
                }
            }
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() < 1e-9
    }

    #[test]
    fn the_median_is_the_middle_figure_whatever_their_order() {
        assert!(close(Figures::of(vec![9.0, 1.0, 2.0]).median(), 2.0));
        assert!(close(Figures::of(vec![4.0, 1.0, 2.0, 9.0]).median(), 3.0));
        assert!(Figures::of(vec![]).median().is_nan());
    }

    #[test]
    fn the_range_is_from_the_least_to_the_greatest() {
        let (low, high) = Figures::of(vec![3.0, 1.0, 2.0]).range();
        assert!(close(low, 1.0) && close(high, 3.0));
    }

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let (ours, theirs) = (Figures::of(vec![10.0, 40.0]), Figures::of(vec![5.0, 10.0]));
        assert_eq!(ours.over(&theirs), Figures::of(vec![2.0, 4.0]));
        assert_eq!(ours.less(&theirs), Figures::of(vec![5.0, 30.0]));
    }

    #[test]
    fn the_order_of_turns_is_reversed_in_every_other_round() {
        let mut turns = Vec::new();
        let taken = alternate(2, 3, |round, who| {
            turns.push((round, who));
            Ok::<_, ()>(who)
        });
        assert_eq!(turns, [(1, 0), (1, 1), (1, 2), (2, 2), (2, 1), (2, 0)]);
        assert_eq!(taken, [Ok(vec![0, 0]), Ok(vec![1, 1]), Ok(vec![2, 2])]);
    }

    #[test]
    fn a_failed_contestant_gets_no_further_turn() {
        let mut turns = 0;
        let taken = alternate(3, 2, |_, who| {
            turns += 1;
            if who == 0 { Err("no") } else { Ok(who) }
        });
        assert_eq!(taken, [Err("no"), Ok(vec![1, 1, 1])]);
        assert_eq!(turns, 4);
    }
}
