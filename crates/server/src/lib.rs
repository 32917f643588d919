//! What others reach over HTTP.
//!
//! A step of a flow may answer at once that it has taken the work on, and send the result later, to
//! an address it was given with the call. [`Webhooks`] is where such results arrive.

mod answer;
mod guard;
mod limits;
mod listen;
#[cfg(test)]
mod spoken;
mod webhooks;

pub use guard::Access;
pub use limits::Limits;
pub use listen::Listening;
pub use webhooks::{Deliver, Delivered, Delivery, Webhooks};
