//! Bytes that may be messages between engine and keeper, or the log of a spool.
//!
//! Bytes as they are stand for a greeting, a message each way, a stream of messages, and a log. In text form
//! they are lines: `>` before a message to the keeper, `<` before one from it, `#` before a log record, then
//! its CBOR as JSON, with texts as bytes in messages to the keeper. What is not JSON is words, for the
//! greeting and for the log format of the previous release: a number with its width (`7b`, `7i` and `7q` for
//! 1, 4 and 8 bytes) or a quoted text, which is preceded by its length. Lengths and checksums are filled in
//! correctly, so that the contents are reached.

use std::collections::BTreeSet;

use undaunted_engine::event::RecordError;
use undaunted_runner::keeper::{KeeperRefusal, messages, reread_reply, reread_request, understood};
use undaunted_runner::spool::{SpoolDamage, reread_log};

use super::law::uphold;
use super::notation::{cbor, lines};

const REQUESTS: [&str; 9] =
    ["start", "cancel", "cancel all", "forget", "trust", "goodbye", "reserve", "withdraw", "environment"];
const REPLIES: [&str; 6] = ["welcome", "ready", "running", "exited", "vanished", "refused"];

pub fn keeper_bytes(data: &[u8]) -> BTreeSet<&'static str> {
    let mut outcomes = BTreeSet::new();
    if !matches!(data.first(), Some(b'>' | b'<' | b'#')) {
        outcomes.extend(greeting(data));
        outcomes.extend(message(data, reread_request, &REQUESTS));
        outcomes.extend(message(data, reread_reply, &REPLIES));
        outcomes.extend(stream(data));
        outcomes.extend(log(data));
        return outcomes;
    }
    let (mut sent, mut written) = (vec![], vec![]);
    for line in lines(data) {
        let text = line.get(1..).unwrap_or_default();
        let payload = cbor(text, line.starts_with(b">")).unwrap_or_else(|| bytes_of_words(text));
        match line.first() {
            Some(b'>') => {
                outcomes.extend(greeting(&payload));
                outcomes.extend(message(&payload, reread_request, &REQUESTS));
            }
            Some(b'<') => outcomes.extend(message(&payload, reread_reply, &REPLIES)),
            _ => {
                written.extend(length(&payload));
                written.extend(crc32fast::hash(&payload).to_le_bytes());
                written.extend(&payload);
                continue;
            }
        }
        sent.extend(length(&payload));
        sent.extend(&payload);
    }
    outcomes.extend(stream(&sent));
    outcomes.extend(log(&written));
    outcomes
}

fn length(payload: &[u8]) -> [u8; 4] {
    u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes()
}

/// The bytes that the words stand for.
fn bytes_of_words(mut words: &[u8]) -> Vec<u8> {
    let mut bytes = vec![];
    loop {
        words = words.trim_ascii_start();
        if let Some(text) = words.strip_prefix(b"\"") {
            let end = text.iter().position(|byte| *byte == b'"');
            let (text, rest) = text.split_at(end.unwrap_or(text.len()));
            bytes.extend(length(text));
            bytes.extend(text);
            words = rest.get(1..).unwrap_or_default();
            continue;
        }
        let end = words.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = words.split_at(end.unwrap_or(words.len()));
        let Some((width, digits)) = word.split_last() else {
            return bytes;
        };
        let number = str::from_utf8(digits).ok();
        let number: i128 = number.and_then(|it| it.parse().ok()).unwrap_or(-1);
        let width = match width {
            b'b' => 1,
            b'q' => 8,
            _ => 4,
        };
        // A number that does not fit loses its upper bytes.
        bytes.extend(number.to_le_bytes().iter().take(width));
        words = rest;
    }
}

/// There is one greeting; another number in it is another version.
fn greeting(given: &[u8]) -> Option<&'static str> {
    let told = understood(given);
    let shape = given.len() == 5 && given.starts_with(&[0]);
    let right = match told {
        Ok(()) => given == [0, 4, 0, 0, 0],
        Err(KeeperRefusal::Version) => shape,
        Err(why) => !shape && why == KeeperRefusal::Malformed,
    };
    uphold("a greeting is of a version", right, &(given, told));
    shape.then_some("hello")
}

/// A message that was read is written so that the same is read again.
fn message(
    given: &[u8],
    reread: fn(&[u8]) -> Result<Vec<u8>, RecordError>,
    names: &'static [&'static str],
) -> Option<&'static str> {
    match reread(given) {
        Ok(written) => {
            let tag = written.get(1).map_or(usize::MAX, |tag| usize::from(*tag));
            let name = names.get(tag).copied();
            uphold("a message is one of those there are", name.is_some(), &written);
            let same = reread(&written).as_ref() == Ok(&written);
            uphold("a message is written as it was read", same, &(given, &written));
            let longer = [given, &[0]].concat();
            let noticed = reread(&longer).is_err();
            uphold("no byte follows a message", noticed, &longer);
            name
        }
        Err(why) => {
            uphold("an error has words", !why.to_string().is_empty(), &why);
            None
        }
    }
}

/// A stream contains its messages one after the other.
fn stream(given: &[u8]) -> Option<&'static str> {
    let found = messages(given).unwrap_or_default();
    let framed = found.iter().map(|it| [&length(it), it.as_slice()].concat());
    let framed: Vec<u8> = framed.flatten().collect();
    uphold("a stream is read from its beginning", given.starts_with(&framed), &found);
    (!found.is_empty()).then_some("stream")
}

/// No record before a damage is lost, and none behind it is believed.
fn log(given: &[u8]) -> Option<&'static str> {
    let whole = u64::try_from(given.len()).unwrap_or(u64::MAX);
    let (written, damage) = match reread_log(given) {
        Ok(read) => read,
        Err(damage) => {
            let all = damage.offset == 0 && damage.unread == whole;
            uphold("garbage is garbage from its beginning", all, &damage);
            return None;
        }
    };
    let again = reread_log(&written);
    let same = again.as_ref() == Ok(&(written.clone(), None));
    uphold("a log is written as it was read", same, &(&written, &again));
    let Some(damage) = damage else {
        let longer = [given, &[0]].concat();
        let told = SpoolDamage { offset: whole, unread: 1 };
        let noticed = reread_log(&longer) == Ok((written, Some(told)));
        uphold("nothing is silently skipped", noticed, &longer);
        return Some("log");
    };
    let add_up = damage.offset.checked_add(damage.unread) == Some(whole);
    uphold("what is unread is the rest", add_up && damage.unread > 0, &damage);
    let sound = usize::try_from(damage.offset).ok();
    let sound = sound.and_then(|sound| given.get(..sound)).unwrap_or_default();
    let before = reread_log(sound);
    let kept = before.as_ref() == Ok(&(written, None));
    uphold("nothing before a damage is lost", kept, &(damage, before));
    Some("damaged log")
}
