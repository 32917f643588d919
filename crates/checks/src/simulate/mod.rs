//! Whole jobs on virtual time.
//!
//! Random jobs with scripts of what their commands do (`case`), and what must come of them when
//! nobody crashes (`model`), worked out without the engine.

pub mod case;
pub mod model;
