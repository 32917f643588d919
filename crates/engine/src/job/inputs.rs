//! The names and values of a step's items, in one buffer.
//!
//! There may be a million, most of them a dozen letters long, so no item has an allocation or even a word
//! of its own. Each text follows its length; the offset of every sixteenth item is known, and the others
//! are found from there. A string item that is named by its own value is stored once.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    bytes: Vec<u8>,
    /// Where every [`STRIDE`]th item begins.
    marks: Vec<usize>,
    many: usize,
}

const STRIDE: usize = 16;

impl Inputs {
    pub(super) fn push(&mut self, identity: &str, input: &str) {
        if self.many.is_multiple_of(STRIDE) {
            self.marks.push(self.bytes.len());
        }
        self.many = self.many.saturating_add(1);
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
    pub(super) fn from_bytes(bytes: &[u8], many: usize) -> Option<Self> {
        let mut marks = Vec::with_capacity(many.div_ceil(STRIDE).min(bytes.len()));
        let mut rest = Rest(bytes);
        for item in 0..many {
            if item.is_multiple_of(STRIDE) {
                marks.push(bytes.len().saturating_sub(rest.0.len()));
            }
            rest.pair()?;
        }
        let bytes = bytes.to_vec();
        rest.0.is_empty().then_some(Self { bytes, marks, many })
    }

    pub(super) fn get(&self, item: usize) -> Option<(&str, &str)> {
        let begin = self.marks.get(item / STRIDE)?;
        let mut rest = Rest(self.bytes.get(*begin..)?);
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

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// The next name, `None` if it is part of the value, and the value.
    fn pair(&mut self) -> Option<(Option<&'a [u8]>, &'a [u8])> {
        let identity = match self.length()?.checked_sub(1) {
            Some(length) => Some(self.bytes(length)?),
            None => None,
        };
        let length = self.length()?;
        Some((identity, self.bytes(length)?))
    }

    fn length(&mut self) -> Option<usize> {
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

    use super::Inputs;

    proptest! {
        #[test]
        fn every_item_has_the_name_and_the_value_it_was_given(
            given in prop::collection::vec(("[a\"é]{0,300}", "\"?[a\"é]{0,300}\"?"), 0..60),
        ) {
            let mut inputs = Inputs::default();
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
    fn a_text_that_is_called_by_itself_stands_once() {
        let mut inputs = Inputs::default();
        inputs.push("item-1", "\"item-1\"");
        assert_eq!(inputs.get(0), Some(("item-1", "\"item-1\"")));
        assert_eq!(inputs.bytes.len(), 2 + "\"item-1\"".len());
    }
}
