//! The names and values of a step's items, in one buffer.
//!
//! There may be a million, most of them a dozen letters long, so no item has an allocation or even a word
//! of its own. Each text follows its length; the offset of every sixteenth item is kept, and the others
//! are found from there. A string item that is named by its own value is stored once.
//!
//! A process that only shows a job does not need the names and values of all its items: it starts from
//! [`ItemInputs::left_out`] and adds those that it shows with [`ItemInputs::learn`].

use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ItemInputs {
    bytes: Vec<u8>,
    /// Where every [`STRIDE`]th item begins.
    marks: Vec<usize>,
    count: usize,
    /// If names and values were left out: those that were added since.
    learned: Option<BTreeMap<usize, (String, String)>>,
}

const STRIDE: usize = 16;

impl ItemInputs {
    /// A number of items without their names and values.
    pub(super) fn left_out(count: usize) -> Self {
        Self { count, learned: Some(BTreeMap::new()), ..Self::default() }
    }

    pub(super) fn push(&mut self, identity: &str, input: &str) {
        if self.learned.is_some() {
            self.count = self.count.saturating_add(1);
            return;
        }
        if self.count.is_multiple_of(STRIDE) {
            self.marks.push(self.bytes.len());
        }
        self.count = self.count.saturating_add(1);
        // Length 0 stands for a name that is the value without its quotes; the others are one longer.
        if without_quotes(input) == Some(identity) {
            self.put_length(0);
        } else {
            self.put_length(identity.len().saturating_add(1));
            self.bytes.extend_from_slice(identity.as_bytes());
        }
        self.put_length(input.len());
        self.bytes.extend_from_slice(input.as_bytes());
    }

    /// Seven bits per byte, the lowest first.
    fn put_length(&mut self, mut length: usize) {
        let low = |length: usize| u8::try_from(length & 0x7f).unwrap_or_default();
        while length > 0x7f {
            self.bytes.push(0x80 | low(length));
            length >>= 7;
        }
        self.bytes.push(low(length));
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `None` unless the bytes hold exactly this many items.
    pub(super) fn from_bytes(bytes: &[u8], count: usize) -> Option<Self> {
        let mut marks = Vec::with_capacity(count.div_ceil(STRIDE).min(bytes.len()));
        let mut rest = InputBytes(bytes);
        for item in 0..count {
            if item.is_multiple_of(STRIDE) {
                marks.push(bytes.len().saturating_sub(rest.0.len()));
            }
            rest.pair()?;
        }
        let bytes = bytes.to_vec();
        rest.0.is_empty().then_some(Self { bytes, marks, count, learned: None })
    }

    pub(super) const fn are_left_out(&self) -> bool {
        self.learned.is_some()
    }

    /// The items that were left out and added since, in order.
    pub(super) fn learned(&self) -> impl Iterator<Item = usize> {
        self.learned.iter().flat_map(|learned| learned.keys().copied())
    }

    /// Only for items that were left out.
    pub(super) fn learn(&mut self, item: usize, identity: &str, input: &str) {
        if let Some(learned) = self.learned.as_mut().filter(|_| item < self.count) {
            let _ = learned.insert(item, (identity.to_owned(), input.to_owned()));
        }
    }

    pub(super) fn forget(&mut self) {
        if let Some(learned) = &mut self.learned {
            learned.clear();
        }
    }

    pub(super) fn get(&self, item: usize) -> Option<(&str, &str)> {
        if let Some(learned) = &self.learned {
            let (identity, input) = learned.get(&item)?;
            return Some((identity, input));
        }
        let begin = self.marks.get(item / STRIDE)?;
        let mut rest = InputBytes(self.bytes.get(*begin..)?);
        for _ in 0..item % STRIDE {
            rest.pair()?;
        }
        let (identity, input) = rest.pair()?;
        let input = std::str::from_utf8(input).ok()?;
        match identity {
            Some(identity) => Some((std::str::from_utf8(identity).ok()?, input)),
            None => Some((without_quotes(input)?, input)),
        }
    }
}

struct InputBytes<'a>(&'a [u8]);

impl<'a> InputBytes<'a> {
    /// The next name (`None` if it is part of the value) and value.
    fn pair(&mut self) -> Option<(Option<&'a [u8]>, &'a [u8])> {
        let identity = match self.length()?.checked_sub(1) {
            Some(length) => Some(self.bytes(length)?),
            None => None,
        };
        let length = self.length()?;
        Some((identity, self.bytes(length)?))
    }

    #[inline]
    fn length(&mut self) -> Option<usize> {
        // Most texts are short.
        if let Some((&byte, rest)) = self.0.split_first()
            && byte < 0x80
        {
            self.0 = rest;
            return Some(byte.into());
        }
        self.long_length()
    }

    fn long_length(&mut self) -> Option<usize> {
        let (mut length, mut shift) = (0_usize, 0_u32);
        loop {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            length |= usize::from(byte & 0x7f).checked_shl(shift)?;
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some(length);
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

fn without_quotes(input: &str) -> Option<&str> {
    input.strip_prefix('"')?.strip_suffix('"')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::ItemInputs;

    proptest! {
        #[test]
        fn every_item_keeps_its_name_and_value(
            given in prop::collection::vec(("[a\"é]{0,300}", "\"?[a\"é]{0,300}\"?"), 0..60),
        ) {
            let mut inputs = ItemInputs::default();
            for (identity, input) in &given {
                inputs.push(identity, input);
            }
            for (item, (identity, input)) in given.iter().enumerate() {
                prop_assert_eq!(inputs.get(item), Some((identity.as_str(), input.as_str())));
            }
            prop_assert_eq!(inputs.get(given.len()), None);
        }
    }

    #[test]
    fn items_that_were_left_out_are_learned_one_by_one() {
        let mut inputs = ItemInputs::left_out(2);
        assert_eq!(inputs.get(0), None);
        inputs.push("c", "1");
        for item in [1, 2, 3] {
            inputs.learn(item, "b", "null");
        }
        assert_eq!([1, 2].map(|it| inputs.get(it)), [Some(("b", "null")); 2]);
        assert_eq!([0, 3].map(|it| inputs.get(it)), [None; 2]);
    }

    #[test]
    fn an_item_named_by_its_value_is_stored_once() {
        let mut inputs = ItemInputs::default();
        inputs.push("item-1", "\"item-1\"");
        assert_eq!(inputs.get(0), Some(("item-1", "\"item-1\"")));
        assert_eq!(inputs.bytes.len(), 2 + "\"item-1\"".len());
    }
}
