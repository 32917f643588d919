//! A bounded run of a target: a number of inputs, all from one seed.
//!
//! The same seed feeds the same inputs, so a finding is repeated by its seed. The caller chooses the seed and
//! prints.

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use undaunted_policy::Seed;

use super::mutant::{mutant, noise};
use crate::random::SeededRandom;

/// The longest time for one input. Most take less than a millisecond, but the machine may be busy.
const LONGEST: Duration = Duration::from_secs(20);

/// A function that panics when its input breaks a law, and returns what the input brought up.
pub type FuzzTarget = fn(&[u8]) -> BTreeSet<&'static str>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzFinding {
    pub seed: u64,
    /// The index of the input in the run.
    pub number: u64,
    pub input: Vec<u8>,
    /// The message of the panic.
    pub message: String,
}

impl fmt::Display for FuzzFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "input {} of seed {}: {}", self.number, self.seed, self.message)?;
        writeln!(f, "  input:  {}", self.input.escape_ascii())?;
        write!(f, "  repeat: UNDAUNTED_SEED={} cargo test -p undaunted-checks --test fuzz", self.seed)
    }
}

impl std::error::Error for FuzzFinding {}

/// Feeds a target with the corpus, then with mutants of it (random bytes, if there is no corpus), `inputs` in
/// all. Returns everything that came up.
pub fn run(
    target: FuzzTarget,
    corpus: &[Vec<u8>],
    inputs: u64,
    seed: u64,
) -> Result<BTreeSet<&'static str>, FuzzFinding> {
    let mut brought_up = BTreeSet::new();
    for number in 0..inputs {
        let given = usize::try_from(number).ok();
        let input = match given.and_then(|number| corpus.get(number)) {
            Some(member) => member.clone(),
            None => made(corpus, number, seed),
        };
        let began = Instant::now();
        let message = match catch_unwind(AssertUnwindSafe(|| target(&input))) {
            Ok(_) if began.elapsed() > LONGEST => format!("it took {:?}", began.elapsed()),
            Ok(names) => {
                brought_up.extend(names);
                continue;
            }
            Err(panic) => message(panic.as_ref()),
        };
        return Err(FuzzFinding { seed, number, input, message });
    }
    Ok(brought_up)
}

fn made(corpus: &[Vec<u8>], number: u64, seed: u64) -> Vec<u8> {
    let mut random = SeededRandom::of(Seed(seed).draws(number, 0, 1));
    if corpus.is_empty() { noise(&mut random, 400) } else { mutant(&mut random, corpus) }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}
