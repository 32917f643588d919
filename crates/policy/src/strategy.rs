//! Descriptions of backoff strategies, as data: names, parameters, help texts.
//!
//! Code that reads, writes, checks, shows or completes a `backoff` uses
//! [`Backoff::strategy`](crate::Backoff::strategy) and names no strategy itself. Only the format of `state
//! export` has a list of its own.

use core::time::Duration;
use std::borrow::Cow;

/// The description of a backoff strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Strategy {
    /// The name in a `retry_config`.
    pub name: &'static str,
    /// What the strategy does, in a sentence.
    pub about: &'static str,
    /// The parameters that may follow the name.
    pub parameters: &'static [Parameter],
}

impl Strategy {
    /// The required parameters, each with the text that says what is missing without it.
    pub fn required(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let parameters = self.parameters.iter();
        parameters.filter_map(|parameter| Some((parameter.key, parameter.required?)))
    }
}

/// The description of one parameter of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parameter {
    /// The name of the parameter.
    pub key: &'static str,
    /// The setting that it sets: a different name if `key` is only another spelling.
    pub of: &'static str,
    /// The type of its value.
    pub kind: ParameterKind,
    /// What the parameter is for, in a sentence.
    pub about: &'static str,
    /// For a required parameter: what is missing without it, with an example.
    pub required: Option<&'static str>,
}

/// The type of a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParameterKind {
    /// One duration, such as `5s`.
    Span,
    /// A number of at least 1.
    Factor,
    /// A list of durations.
    Spans,
}

impl Parameter {
    /// The setting that most strategies grow from; it can be written inside or outside of `backoff`.
    pub const INITIAL_DELAY: &'static str = "initial_delay";

    pub(crate) const INITIAL: Self =
        Self::new("initial", ParameterKind::Span, "The first delay; the same as `initial_delay`.")
            .spelling(Self::INITIAL_DELAY);

    pub(crate) const fn new(key: &'static str, kind: ParameterKind, about: &'static str) -> Self {
        Self { key, of: key, kind, about, required: None }
    }

    /// Makes the parameter another spelling of this setting.
    pub(crate) const fn spelling(self, of: &'static str) -> Self {
        Self { of, ..self }
    }

    /// Makes the parameter required.
    pub(crate) const fn required(self, missing: &'static str) -> Self {
        Self { required: Some(missing), ..self }
    }
}

/// A mutable reference to the value of a parameter.
pub(crate) enum ParameterValue<'a> {
    Span(&'a mut Duration),
    Factor(&'a mut f64),
    Spans(&'a mut Cow<'static, [Duration]>),
}
