//! Checks of the whole repository, run as tests.
//!
//! What no single crate can see about itself: which crate may use which (`arrows`), whether
//! the files keep the habits of the house (`tidy`), whether the laws hold whatever bytes come in
//! (`fuzz`), whether whole jobs come to what they must however often something dies (`simulate`, and with
//! the built program `kill`), and whether a store keeps what it acknowledged when the power is cut
//! (`powercut`). It changes nothing: repairs are for `./fix` and for people.

use std::path::Path;

pub mod arrows;
mod campaign;
pub mod fuzz;
pub mod kill;
pub mod powercut;
pub mod random;
pub mod simulate;
pub mod tidy;

/// The folder of the repository these checks were compiled in.
pub fn repository() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}
