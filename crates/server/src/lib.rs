//! What others reach over HTTP.
//!
//! A step of a flow may answer at once that it has taken the work on, and send the result later, to
//! an address it was given with the call. [`Webhooks`] is where such results arrive.

mod answer;
mod flow_events;
mod flow_plan;
mod flow_state;
mod guard;
mod limits;
mod listen;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod spoken;
mod webhooks;

pub use flow_events::{catalog_event, flow_event};
pub use flow_plan::{PlanView, plan};
pub use flow_state::FlowState;
pub use guard::Access;
pub use limits::Limits;
pub use listen::Listening;
pub use webhooks::{Deliver, Delivered, Delivery, Webhooks};
