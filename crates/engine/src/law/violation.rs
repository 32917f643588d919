//! A law, and how it was broken.

/// A law, and how it was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub law: &'static str,
    pub what: String,
}

/// Claims, and those of them that do not hold.
#[derive(Default)]
pub(super) struct Claims {
    pub(super) broken: Vec<Violation>,
}

impl Claims {
    /// A law, whether it holds, and where it was looked at.
    pub(super) fn claim(&mut self, law: &'static str, holds: bool, place: impl FnOnce() -> String) {
        if !holds {
            let what = place();
            self.broken.push(Violation { law, what });
        }
    }
}
