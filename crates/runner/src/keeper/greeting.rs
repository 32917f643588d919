//! The first message each way.
//!
//! Both sides are the same binary, so another version means another release, and is refused. The bytes of the
//! greeting and of its refusal never change, so that each side can tell that the other one is of another
//! version.

use super::KeeperRefusal;

pub(crate) const VERSION: u32 = 2;

const GREETING: u8 = 0;
const REFUSED: u8 = 5;
/// Reasons to refuse an engine; the index is the number on the wire.
const WHY: [KeeperRefusal; 3] = [KeeperRefusal::Malformed, KeeperRefusal::Version, KeeperRefusal::Busy];

/// The first message of an engine, framed.
pub(crate) fn greeting() -> [u8; 9] {
    let [a, b, c, d] = VERSION.to_le_bytes();
    [5, 0, 0, 0, GREETING, a, b, c, d]
}

#[doc(hidden)]
pub fn understood(greeting: &[u8]) -> Result<(), KeeperRefusal> {
    match greeting.split_first() {
        Some((&GREETING, version)) if version == VERSION.to_le_bytes() => Ok(()),
        Some((&GREETING, [_, _, _, _])) => Err(KeeperRefusal::Version),
        _ => Err(KeeperRefusal::Malformed),
    }
}

/// The refusal of an engine, framed.
pub(crate) fn framed_refusal(why: KeeperRefusal) -> [u8; 11] {
    let why = (0..).zip(WHY).find(|(_, each)| *each == why);
    let number = why.map_or(0, |(number, _)| number);
    [7, 0, 0, 0, REFUSED, 0, number, 0, 0, 0, 0]
}

/// Why an engine was refused, if these bytes are a refusal. CBOR of a reply never begins like this.
pub(crate) fn refusal(bytes: &[u8]) -> Option<KeeperRefusal> {
    match bytes {
        [REFUSED, 0, number, 0, 0, 0, 0] => WHY.get(usize::from(*number)).copied(),
        _ => None,
    }
}
