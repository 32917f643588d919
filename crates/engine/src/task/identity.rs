//! Ids that the outside world sees and that never change: computed, so that nothing is stored.

use undaunted_policy::Seed;

use crate::fnv::Fnv1a;
use crate::id::{CommandId, ItemId};
use crate::job::Job;

/// A UUID made from the names of the job and the item.
pub fn correlation_id(job: &Job, item: ItemId) -> String {
    let draws = name_of(job).draws(item.index.into(), item.step.0.into(), 0);
    let (high, low) = (draws.at(1), draws.at(2));
    // Version 8 (custom) and the variant of RFC 9562.
    let high = (high & !0xf000) | 0x8000;
    let low = (low & !(0b11 << 62)) | (0b10 << 62);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
}

/// The same for all attempts of a command in a round.
pub fn receipt_token(job: &Job, item: ItemId, command: CommandId, round: u32) -> String {
    let place = u64::from(item.step.0) << 32 | u64::from(item.index);
    let draws = name_of(job).draws(place, command.0.into(), round);
    format!("{:016x}{:016x}", draws.at(3), draws.at(4))
}

/// Jobs with the same seed must not share ids, so the seed comes from the job's name. The stored key
/// makes tokens impossible to guess.
fn name_of(job: &Job) -> Seed {
    let key = job.submitted().token_key;
    let key = key.map(u64::to_le_bytes).into_iter().flatten();
    let name = job.id().bytes().chain(key);
    Seed(Fnv1a::of(name))
}
