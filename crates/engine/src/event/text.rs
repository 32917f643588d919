//! Texts in events: one that is stored once and referred to by number, and the text of a workflow.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use minicbor::encode::Write;
use minicbor::{Decode, Decoder, Encode, Encoder};

use super::codec::{Decoded, Encoded};
use crate::plan::Plan;
use crate::stored::stored;

stored! {
    /// Items that fail together fail alike, so the text of an error is kept once, by a `TextKept` event, and
    /// referred to by its number. If there are too many different texts, they are stored in place.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum StoredText {
        /// The number of a text that was kept before, from 0.
        Kept(u32 = 0) = 0,
        Itself(String = 0) = 1,
    }
}

impl StoredText {
    /// Shortens a text that is stored in place to this many bytes, and marks the cut.
    pub(crate) fn brief(self, max_bytes: usize) -> Self {
        match self {
            Self::Itself(text) if text.len() > max_bytes => {
                let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end));
                let kept = text.get(..end.unwrap_or_default()).unwrap_or_default();
                Self::Itself(format!("{kept}…"))
            }
            short => short,
        }
    }
}

/// The text of a workflow, and its plan if this process has checked it. Only the text is stored and compared;
/// the plan saves parsing the text again.
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
