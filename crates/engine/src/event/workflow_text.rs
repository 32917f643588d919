//! The text of a workflow, as an event holds it.
//!
//! Only the text is stored. The process that has checked the text keeps its plan beside it, so that
//! making a job of it parses nothing; a record that was read from a journal brings the text alone.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use minicbor::decode::{self, Decoder};
use minicbor::encode::{self, Encoder, Write};
use minicbor::{Decode, Encode};

use crate::plan::Plan;

/// The text of a workflow, and its plan where this process has checked it. Two are equal if their
/// texts are.
#[derive(Clone, Default)]
pub struct WorkflowText {
    text: Arc<str>,
    plan: Option<Arc<Plan>>,
}

impl WorkflowText {
    /// A text and the plan it was checked to, for the submission it becomes a part of.
    pub fn checked(text: impl Into<Arc<str>>, plan: impl Into<Arc<Plan>>) -> Self {
        Self {
            text: text.into(),
            plan: Some(plan.into()),
        }
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    pub(crate) fn plan(&self) -> Option<Arc<Plan>> {
        self.plan.clone()
    }
}

impl<T: Into<Arc<str>>> From<T> for WorkflowText {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            plan: None,
        }
    }
}

impl Deref for WorkflowText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for WorkflowText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for WorkflowText {}

impl fmt::Debug for WorkflowText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl<C> Encode<C> for WorkflowText {
    fn encode<W: Write>(
        &self,
        to: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), encode::Error<W::Error>> {
        to.str(&self.text)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for WorkflowText {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Result<Self, decode::Error> {
        Ok(from.str()?.into())
    }
}
