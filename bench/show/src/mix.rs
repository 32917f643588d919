//! How the items of a measured job end, and the errors of their attempts.

/// How an item ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The first attempt succeeds.
    Succeeds,
    /// The second attempt succeeds.
    SucceedsLater,
    /// Both attempts fail, and the item becomes a dead letter.
    Dies,
    /// The first attempt has failed, and the retry is pending.
    Waits,
}

/// The items of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) items: u32,
    /// Whether the last items wait for their retries. If not, the job ends.
    pub(crate) waits: bool,
}

/// The items that wait in a job that has not ended.
pub(crate) const WAITING: u32 = 10;
/// The maximum of dead letters in a job.
pub(crate) const MOST_DEAD: u32 = 10_000;
/// One item of each period becomes a dead letter, and one is retried.
const PERIOD: u32 = 100;
/// The positions of these two items in a period.
const DIES: u32 = 7;
const RETRIED: u32 = 53;

impl Mix {
    pub(crate) fn course(self, item: u32) -> Course {
        if self.waits && item >= self.items.saturating_sub(WAITING) {
            return Course::Waits;
        }
        let place = item % PERIOD;
        if place == DIES && item / PERIOD < MOST_DEAD {
            Course::Dies
        } else if place == RETRIED {
            Course::SucceedsLater
        } else {
            Course::Succeeds
        }
    }
}

/// The error of a failed attempt.
pub(crate) fn error(item: u32) -> String {
    let number = item / PERIOD;
    match number % 4 {
        0 => format!("HTTP 503 from 10.0.{}.{}: no healthy upstream", number % 7, number % 251),
        1 => format!("connection reset by peer after {} ms", number % 1999),
        2 => format!("row {number}: value {} is out of range 0..4096", number % 5003),
        _ => format!("lock held by process {} for {} s", 4000 + number % 801, number % 61),
    }
}

#[cfg(test)]
mod tests {
    use super::{Course, Mix, WAITING};

    fn count(mix: Mix, course: Course) -> usize {
        (0..mix.items).filter(|item| mix.course(*item) == course).count()
    }

    #[test]
    fn one_item_of_a_hundred_becomes_a_dead_letter_and_one_is_retried() {
        let mix = Mix { items: 1000, waits: false };
        let courses = [Course::Dies, Course::SucceedsLater, Course::Waits];
        assert_eq!(courses.map(|course| count(mix, course)), [10, 10, 0]);
    }

    #[test]
    fn the_last_items_of_a_job_that_has_not_ended_wait() {
        let mix = Mix { items: 1000, waits: true };
        assert_eq!(count(mix, Course::Waits), usize::try_from(WAITING).unwrap_or_default());
        assert_eq!(mix.course(999), Course::Waits);
    }

    #[test]
    fn there_are_at_most_ten_thousand_dead_letters() {
        let mix = Mix { items: 1_200_000, waits: false };
        assert_eq!(count(mix, Course::Dies), 10_000);
    }
}
