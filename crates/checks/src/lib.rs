//! Checks of the whole repository, run as tests.
//!
//! They cover what no single crate can see about itself: which crate may use which (`arrows`), the
//! conventions of the files (`tidy`), laws that hold for any bytes (`fuzz`), whole jobs while processes crash
//! (`simulate`, and with the built program `kill`), and the store after a power cut (`powercut`). They change
//! nothing; repairs are for `./fix` and for people.

use std::path::Path;

pub mod arrows;
mod campaign;
pub mod fuzz;
pub mod kill;
pub mod powercut;
pub mod random;
pub mod simulate;
pub mod tidy;

/// The root of the repository in which these checks were compiled.
pub fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}
