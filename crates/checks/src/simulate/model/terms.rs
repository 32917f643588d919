//! The terms on which a command is retried, merged from all places with the closest first, and the delays
//! they give.

use std::time::Duration;

use super::prediction::DelayRange;

use crate::simulate::case::{
    CaseAction, CaseAttempts, CaseBackoff, CaseFailureKind, CaseJitter, CaseRetry, CaseRule, CaseWorkBackoff,
    CaseWorkConfig,
};

/// The terms of a command, defaults included.
#[derive(Clone, Debug)]
pub(super) struct ModelTerms {
    pub(super) attempts: CaseAttempts,
    pub(super) growth: ModelBackoff,
    pub(super) initial_delay: Duration,
    pub(super) max_delay: Duration,
    pub(super) jitter: CaseJitter,
    pub(super) budget: Option<Duration>,
    pub(super) retry_on: Vec<CaseFailureKind>,
    pub(super) statuses: Vec<u16>,
    pub(super) max_retry_after: Duration,
    pub(super) rules: Vec<CaseRule>,
}

#[derive(Clone, Debug)]
pub(super) enum ModelBackoff {
    Of(CaseBackoff),
    /// The first delay times the number of the retry.
    Multiples,
}

impl ModelTerms {
    /// Without any configuration a command runs once.
    pub(super) fn once() -> Self {
        Self { attempts: CaseAttempts::Times(0), ..Self::defaults() }
    }

    /// The defaults inside a `retry_config`.
    pub(super) fn defaults() -> Self {
        Self {
            attempts: CaseAttempts::Times(3),
            growth: ModelBackoff::Of(CaseBackoff::Exponential(4)),
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            jitter: CaseJitter::None,
            budget: None,
            retry_on: Vec::new(),
            statuses: Vec::new(),
            max_retry_after: Duration::from_mins(5),
            rules: Vec::new(),
        }
    }

    /// The closest place comes first. Without any, the command runs once, unless retries are requested
    /// otherwise.
    pub(super) fn merged(places: &[Option<&CaseRetry>], asked_for: bool) -> Self {
        if !asked_for && places.iter().all(Option::is_none) {
            return Self::once();
        }
        let mut terms = Self::defaults();
        for place in places.iter().rev().flatten() {
            terms.override_with(place);
        }
        terms
    }

    fn override_with(&mut self, place: &CaseRetry) {
        self.attempts = place.attempts.unwrap_or(self.attempts);
        if let Some(backoff) = &place.backoff {
            self.growth = ModelBackoff::Of(backoff.clone());
        }
        self.initial_delay = place.initial_delay.unwrap_or(self.initial_delay);
        self.max_delay = place.max_delay.unwrap_or(self.max_delay);
        self.jitter = place.jitter.unwrap_or(self.jitter);
        self.budget = place.budget.or(self.budget);
        self.max_retry_after = place.max_retry_after.unwrap_or(self.max_retry_after);
        if !place.retry_on.is_empty() {
            self.retry_on.clone_from(&place.retry_on);
        }
        if !place.statuses.is_empty() {
            self.statuses.clone_from(&place.statuses);
        }
        if !place.rules.is_empty() {
            self.rules.clone_from(&place.rules);
        }
    }

    /// With the rule's own terms on top.
    pub(super) fn of_rule(&self, own: Option<&CaseRetry>) -> Self {
        let mut terms = self.clone();
        if let Some(own) = own {
            terms.override_with(own);
        }
        terms
    }

    /// The terms of a flow step.
    pub(super) fn of_work(work: Option<&CaseWorkConfig>) -> Self {
        let defaults = CaseWorkConfig { max_retries: Some(10), ..CaseWorkConfig::default() };
        let work = work.unwrap_or(&defaults);
        let growth = match work.growth.unwrap_or(CaseWorkBackoff::Exponential) {
            CaseWorkBackoff::Fixed => ModelBackoff::Of(CaseBackoff::Fixed),
            CaseWorkBackoff::Linear => ModelBackoff::Multiples,
            CaseWorkBackoff::Exponential => ModelBackoff::Of(CaseBackoff::Exponential(4)),
        };
        Self {
            attempts: CaseAttempts::Times(work.max_retries.unwrap_or(0)),
            growth,
            initial_delay: work.backoff.unwrap_or(Duration::from_secs(1)),
            max_delay: work.max_backoff.unwrap_or(Duration::from_mins(1)),
            ..Self::defaults()
        }
    }

    /// The largest number of retries of these terms and their rules; `None` is unlimited.
    pub(super) fn most_retries(&self) -> Option<u32> {
        let own = self.rules.iter().filter_map(|rule| match &rule.then {
            CaseAction::Retry(Some(own)) => own.attempts,
            _ => None,
        });
        let all = own.chain([self.attempts]).map(|attempts| match attempts {
            CaseAttempts::Times(times) => Some(times),
            CaseAttempts::Unlimited => None,
        });
        let all: Option<Vec<u32>> = all.collect();
        all.map(|it| it.into_iter().max().unwrap_or_default())
    }
}

/// The delay before a retry of a command with this `retry_config`, if it does not depend on the delay before
/// it.
pub fn delay_before(config: &CaseRetry, retry: u32) -> DelayRange {
    delay_range(&ModelTerms::merged(&[Some(config)], false), retry, None)
}

/// The shortest and the longest delay before retry `n`, counted from 1; equal without jitter.
pub(super) fn delay_range(terms: &ModelTerms, n: u32, previous: Option<Duration>) -> DelayRange {
    let capped = computed(terms, n).min(terms.max_delay);
    let part = |percent: u32| capped.saturating_mul(percent).checked_div(100);
    match terms.jitter {
        CaseJitter::None | CaseJitter::Around(0) => rounded(capped),
        CaseJitter::Around(share) => DelayRange {
            least: part(100_u32.saturating_sub(share)).unwrap_or_default(),
            most: part(100_u32.saturating_add(share)).unwrap_or(capped),
        },
        CaseJitter::Full => DelayRange { least: Duration::ZERO, most: capped },
        CaseJitter::Equal => DelayRange { least: part(50).unwrap_or_default(), most: capped },
        CaseJitter::Decorrelated => {
            // Between the first delay and three times the previous one, capped last.
            let least = terms.initial_delay;
            let most = previous.unwrap_or(least).saturating_mul(3).max(least);
            DelayRange { least: least.min(terms.max_delay), most: most.min(terms.max_delay) }
        }
    }
}

/// A fraction of a millisecond may be rounded to a whole one.
fn rounded(delay: Duration) -> DelayRange {
    let whole = u64::try_from(delay.as_millis()).map_or(delay, Duration::from_millis);
    if whole == delay {
        return DelayRange::exactly(delay);
    }
    DelayRange { least: whole, most: whole.saturating_add(Duration::from_millis(1)) }
}

fn computed(terms: &ModelTerms, n: u32) -> Duration {
    let first = terms.initial_delay;
    let before = n.saturating_sub(1);
    match &terms.growth {
        ModelBackoff::Multiples => first.saturating_mul(n),
        ModelBackoff::Of(CaseBackoff::Fixed) => first,
        ModelBackoff::Of(CaseBackoff::Linear(by)) => first.saturating_add(by.saturating_mul(before)),
        ModelBackoff::Of(CaseBackoff::Exponential(halves)) => {
            let mut delay = first;
            for _ in 0..before {
                delay = delay.saturating_mul(*halves).checked_div(2).unwrap_or(delay);
            }
            delay
        }
        ModelBackoff::Of(CaseBackoff::Fibonacci) => {
            let (mut this, mut next) = (1_u32, 1_u32);
            for _ in 0..before {
                (this, next) = (next, this.saturating_add(next));
            }
            first.saturating_mul(this)
        }
        ModelBackoff::Of(CaseBackoff::Custom(delays)) => {
            let place = usize::try_from(before).unwrap_or(usize::MAX);
            delays.get(place).copied().unwrap_or(terms.max_delay)
        }
    }
}
