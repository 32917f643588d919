//! A law, and how it was broken.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawViolation {
    pub law: &'static str,
    pub what: String,
}

#[derive(Default)]
pub(super) struct Claims {
    pub(super) broken: Vec<LawViolation>,
}

impl Claims {
    pub(super) fn claim(&mut self, law: &'static str, holds: bool, place: impl FnOnce() -> String) {
        if !holds {
            let what = place();
            self.broken.push(LawViolation { law, what });
        }
    }
}
