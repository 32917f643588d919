//! The text of a workflow in an event.
//!
//! Only the text is stored. The process that checked it keeps the plan beside it, so that making a job
//! parses nothing.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

use super::codec::{Decoded, Encoded};
use crate::plan::Plan;

/// A workflow's text, and its plan if this process has checked it. Equality compares the text only.
#[derive(Clone, Default)]
pub struct WorkflowText {
    text: Arc<str>,
    plan: Option<Arc<Plan>>,
}

impl WorkflowText {
    pub fn checked(text: impl Into<Arc<str>>, plan: impl Into<Arc<Plan>>) -> Self {
        Self { text: text.into(), plan: Some(plan.into()) }
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
        Self { text: text.into(), plan: None }
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
    fn encode<W: Write>(&self, to: &mut Encoder<W>, _: &mut C) -> Encoded<W> {
        to.str(&self.text)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for WorkflowText {
    fn decode(from: &mut Decoder<'b>, _: &mut C) -> Decoded<Self> {
        Ok(from.str()?.into())
    }
}
