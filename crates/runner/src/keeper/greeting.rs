//! The first message each way.
//!
//! Both sides are the same binary, so another version means a keeper or an engine of another release, and
//! is refused rather than guessed at. The greeting and its refusal have had the same bytes since the first
//! release and keep them, so that each side of any version understands that the other is of another.

use super::Refusal;

/// The version of the messages.
pub(crate) const VERSION: u32 = 2;

const GREETING: u8 = 0;
const REFUSED: u8 = 5;
/// Why an engine is not let in, by the number that stands for it.
const WHY: [Refusal; 3] = [Refusal::Malformed, Refusal::Version, Refusal::Busy];

/// What an engine says first, as it goes over the socket.
pub(crate) fn greeting() -> [u8; 9] {
    let [a, b, c, d] = VERSION.to_le_bytes();
    [5, 0, 0, 0, GREETING, a, b, c, d]
}

/// Whether these bytes are a greeting of this version.
#[doc(hidden)]
pub fn understood(greeting: &[u8]) -> Result<(), Refusal> {
    match greeting.split_first() {
        Some((&GREETING, version)) if version == VERSION.to_le_bytes() => Ok(()),
        Some((&GREETING, [_, _, _, _])) => Err(Refusal::Version),
        _ => Err(Refusal::Malformed),
    }
}

/// What an engine hears that is not let in, as it goes over the socket.
pub(crate) fn not_let_in(why: Refusal) -> [u8; 11] {
    let why = (0..).zip(WHY).find(|(_, each)| *each == why);
    let number = why.map_or(0, |(number, _)| number);
    [7, 0, 0, 0, REFUSED, 0, number, 0, 0, 0, 0]
}

/// Why an engine was not let in, if that is what these bytes say. CBOR of a reply never begins like this.
pub(crate) fn refusal(bytes: &[u8]) -> Option<Refusal> {
    match bytes {
        [REFUSED, 0, number, 0, 0, 0, 0] => WHY.get(usize::from(*number)).copied(),
        _ => None,
    }
}
