//! What a strategy is called, takes and is for, as data.
//!
//! Code that reads, writes, checks, shows or completes a `backoff` asks [`Backoff::strategy`](crate::Backoff::strategy)
//! and names no strategy itself, so a new strategy is added only where its arithmetic is.

use core::time::Duration;
use std::borrow::Cow;

/// A strategy in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Strategy {
    /// Its name, as written in a `retry_config`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// What may be written behind its name.
    pub parameters: &'static [Parameter],
}

impl Strategy {
    /// The parameters that cannot be left out, each with the words for who leaves it out.
    pub fn required(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let parameters = self.parameters.iter();
        parameters.filter_map(|parameter| Some((parameter.key, parameter.required?)))
    }
}

/// A parameter of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    /// Its name.
    pub key: &'static str,
    /// The name of the setting: another one if this is only another spelling.
    pub of: &'static str,
    /// What stands behind it.
    pub kind: ParameterKind,
    /// What it is for, in a sentence.
    pub about: &'static str,
    /// If it cannot be left out: what is missing without it, with an example.
    pub required: Option<&'static str>,
}

/// What stands behind a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParameterKind {
    /// A duration.
    Span,
    /// A number of at least 1.
    Factor,
    /// A list of durations.
    Spans,
}

impl Parameter {
    /// The setting that a strategy shares with all others.
    pub const INITIAL_DELAY: &'static str = "initial_delay";

    pub(crate) const INITIAL: Self =
        Self::new("initial", ParameterKind::Span, "The first delay; the same as `initial_delay`.")
            .spelling(Self::INITIAL_DELAY);

    pub(crate) const fn new(key: &'static str, kind: ParameterKind, about: &'static str) -> Self {
        Self { key, of: key, kind, about, required: None }
    }

    /// The same as another spelling of this setting.
    pub(crate) const fn spelling(self, of: &'static str) -> Self {
        Self { of, ..self }
    }

    /// The same, not to be left out.
    pub(crate) const fn required(self, missing: &'static str) -> Self {
        Self { required: Some(missing), ..self }
    }
}

/// Where the value of a parameter is kept.
pub(crate) enum ParameterValue<'a> {
    Span(&'a mut Duration),
    Factor(&'a mut f64),
    Spans(&'a mut Cow<'static, [Duration]>),
}
