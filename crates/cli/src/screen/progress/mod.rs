//! The progress of a running job on standard error: bars on a terminal, plain lines elsewhere.

mod display;
mod draw;
mod frame;
mod line;
mod sentences;
mod shared;
mod speed;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use display::{Display, Quietness};
pub(super) use sentences::Sentences;

use draw::Size;
use frame::ProgressFrame;
use line::{FrameLine, width};
use speed::Speed;
