//! Compares a store with a naive model.
//!
//! Random operations from a seed run on two handles and three aggregates. After each the answers are compared,
//! and at the end all contents. A seed reproduces its run.

use std::collections::BTreeMap;

use super::Reopenable;
use super::fixture::{findings, job, remaining};
use crate::{AggregateId, Append, AppendError, ClaimError, Epoch, Question, RequestId, Store, Version};

const STEPS: usize = 120;
const IDS: [&str; 3] = ["a", "b", "c"];

/// A pseudo-random generator (`SplitMix64`).
struct ModelRandom(u64);

impl ModelRandom {
    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).checked_rem(end).unwrap_or(0)
    }

    fn id(&mut self) -> &'static str {
        let index = usize::try_from(self.below(3)).unwrap();
        IDS[index]
    }
}

#[derive(Clone, Default)]
struct SuiteAggregate {
    epoch: Epoch,
    owner: Option<usize>,
    /// All records, including trimmed ones.
    records: Vec<String>,
    /// The version of the first record of each append.
    starts: Vec<u64>,
    /// Records below this version may have been trimmed.
    trimmed: u64,
    requests: Vec<RequestId>,
    snapshot: Option<u64>,
}

impl SuiteAggregate {
    fn length(&self) -> u64 {
        u64::try_from(self.records.len()).unwrap()
    }

    /// Checks the records that were read: the end of the journal, which includes every record that must not be
    /// trimmed. A store may keep the whole append of the first such record.
    fn compare(&self, read: &[(u64, String)]) {
        let numbered = (1..).zip(&self.records);
        let numbered: Vec<(u64, String)> = numbered.map(|(n, text)| (n, text.clone())).collect();
        let missing = numbered.len().checked_sub(read.len()).unwrap();
        assert_eq!(read, &numbered[missing..]);
        let starts = self.starts.iter().filter(|start| **start <= self.trimmed);
        let least = starts.max().map_or(0, |start| start - 1);
        let missing = u64::try_from(missing).unwrap();
        assert!((least..=self.trimmed.saturating_sub(1)).contains(&missing));
    }
}

struct SuiteComparison<'a> {
    stores: &'a Reopenable,
    handles: [Option<Box<dyn Store>>; 2],
    model: BTreeMap<&'static str, SuiteAggregate>,
    random: ModelRandom,
    written: u64,
}

pub(super) fn compare(stores: &Reopenable, seed: u64) {
    let mut run = SuiteComparison {
        stores,
        handles: [None, None],
        model: IDS.into_iter().map(|id| (id, SuiteAggregate::default())).collect(),
        random: ModelRandom(seed),
        written: 0,
    };
    for _ in 0..STEPS {
        run.step();
    }
    run.handles = [None, None];
    run.everything();
}

impl SuiteComparison<'_> {
    fn step(&mut self) {
        let handle = usize::try_from(self.random.below(2)).unwrap();
        if self.handles[handle].is_none() {
            self.handles[handle] = Some(self.stores.open());
        }
        match self.random.below(18) {
            0..=6 => self.append(handle),
            7..=8 => self.claim(handle),
            9 => self.release(handle),
            10..=11 => self.request(handle),
            12 => self.snapshot(handle),
            13 => self.remove(handle),
            14 => self.close(handle),
            15..=16 => self.trim(handle),
            _ => self.everything(),
        }
    }

    fn store(&self, handle: usize) -> &dyn Store {
        &**self.handles[handle].as_ref().unwrap()
    }

    /// One or two appends: some are facts, the others have mostly the right version and epoch.
    fn append(&mut self, handle: usize) {
        let mut after = self.model.clone();
        let (mut appends, mut reached) = (vec![], vec![]);
        let mut refusal = None;
        for _ in 0..=self.random.below(2) {
            let id = self.random.id();
            let aggregate = after.get_mut(id).unwrap();
            let length = aggregate.length();
            let version = length + u64::from(self.random.below(8) == 0);
            let epoch = match self.random.below(8) {
                0 => Epoch(self.random.below(6)),
                _ => aggregate.epoch,
            };
            let texts: Vec<String> =
                (0..self.random.below(4)).map(|n| format!("{}.{n}", self.written)).collect();
            self.written += 1;
            let taken = aggregate.requests.first().copied().filter(|_| self.random.below(2) == 0);
            let bytes = texts.iter().map(|text| text.clone().into_bytes()).collect();
            let append = if self.random.below(3) == 0 {
                Append::facts(job(id), bytes)
            } else {
                let wrong_epoch = (epoch != aggregate.epoch).then_some("fenced");
                let wrong_version = (version != length).then_some("conflict");
                refusal = refusal.or(wrong_epoch).or(wrong_version);
                Append::new(job(id), Version(version), epoch, bytes)
            };
            appends.push(append.taking(taken));
            if !texts.is_empty() {
                aggregate.starts.push(length + 1);
            }
            aggregate.records.extend(texts);
            reached.push(Version::EMPTY.after(aggregate.records.len()));
            aggregate.requests.retain(|request| Some(*request) != taken);
        }
        let result = self.store(handle).append(appends);
        let answer = result.as_ref().map_err(AppendError::code);
        assert_eq!(answer, refusal.map_or(Ok(&reached), Err), "{result:?}");
        if refusal.is_none() {
            self.model = after;
        }
    }

    fn claim(&mut self, handle: usize) {
        let id = self.random.id();
        let result = self.store(handle).claim(&job(id));
        let highest = self.model.values().map(|one| one.epoch).max().unwrap();
        let aggregate = self.model.get_mut(id).unwrap();
        match result {
            Ok(claim) => {
                assert_eq!(aggregate.owner, None);
                assert!(claim.epoch > highest);
                assert_eq!(claim.version, Version::EMPTY.after(aggregate.records.len()));
                aggregate.owner = Some(handle);
                aggregate.epoch = claim.epoch;
            }
            Err(ClaimError::OwnedBy { .. }) => assert_ne!(aggregate.owner, None),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn release(&mut self, handle: usize) {
        let id = self.random.id();
        let aggregate = self.model[id].clone();
        let claim =
            crate::aggregate::Claim { aggregate: job(id), epoch: aggregate.epoch, version: Version::EMPTY };
        if aggregate.owner.is_some() {
            self.store(handle).unclaim(&claim).unwrap();
            self.model.get_mut(id).unwrap().owner = None;
        }
    }

    fn request(&mut self, handle: usize) {
        let id = self.random.id();
        let result = self.store(handle).request(&job(id), vec![1, 2, 3]);
        let aggregate = self.model.get_mut(id).unwrap();
        assert_eq!(result.is_ok(), !aggregate.records.is_empty());
        aggregate.requests.extend(result.ok());
    }

    fn snapshot(&mut self, handle: usize) {
        let id = self.random.id();
        let at = self.random.below(12);
        let result = self.store(handle).save_snapshot(&job(id), Version(at), at.to_string().into_bytes());
        let aggregate = self.model.get_mut(id).unwrap();
        let length = aggregate.length();
        let known = length > 0 || aggregate.epoch > Epoch::UNCLAIMED;
        assert_eq!(result.is_ok(), known && at <= length, "{result:?}");
        if result.is_ok() {
            aggregate.snapshot = aggregate.snapshot.max(Some(at));
        }
    }

    fn trim(&mut self, handle: usize) {
        let id = self.random.id();
        let aggregate = self.model.get_mut(id).unwrap();
        // Sometimes past the end.
        let before = self.random.below(aggregate.length() + 4);
        aggregate.trimmed = aggregate.trimmed.max(before.min(aggregate.length()));
        self.store(handle).trim(&job(id), Version(before)).unwrap();
    }

    fn remove(&mut self, handle: usize) {
        let id = self.random.id();
        let epoch = self.model[id].epoch;
        self.store(handle).remove(&job(id), epoch).unwrap();
        self.model.insert(id, SuiteAggregate::default());
    }

    fn close(&mut self, handle: usize) {
        self.handles[handle] = None;
        for aggregate in self.model.values_mut() {
            aggregate.owner = aggregate.owner.filter(|owner| *owner != handle);
        }
    }

    fn everything(&self) {
        let store = self.stores.open();
        for (id, aggregate) in &self.model {
            aggregate.compare(&remaining(&*store, id, 0));
            let head = store.head(&job(id)).unwrap().unwrap_or_default();
            assert_eq!(head.epoch, aggregate.epoch);
            assert_eq!(head.version, Version::EMPTY.after(aggregate.records.len()));
            let requests = store.requests(&job(id)).unwrap();
            let requests: Vec<RequestId> = requests.into_iter().map(|one| one.id).collect();
            assert_eq!(requests, aggregate.requests);
            let found = store.latest_snapshot(&job(id)).unwrap();
            assert_eq!(found.latest.map(|one| one.at.0), aggregate.snapshot);
        }
        for (number, handle) in self.handles.iter().enumerate() {
            let Some(handle) = handle else { continue };
            let found = findings(&**handle, Question::default()).requests;
            let own = |it: &SuiteAggregate| it.owner == Some(number) && !it.requests.is_empty();
            let waiting = self.model.iter().filter(|(_, it)| own(it));
            let waiting: Vec<AggregateId> = waiting.map(|(id, _)| job(id)).collect();
            assert_eq!(found.into_keys().collect::<Vec<_>>(), waiting);
        }
        let listed = store.list("job", "").unwrap();
        assert_eq!(listed.len(), self.model.values().filter(|one| !one.records.is_empty()).count());
    }
}
