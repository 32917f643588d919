//! Messages: what is said is understood, and nonsense is only nonsense.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

use proptest::prelude::*;

use super::{Refusal, Reply, Request, reread_reply, reread_request};
use crate::bytes::{decode, encode};
use crate::keeper::Spec;
use crate::keeper::frame::{Frame, framed, next_frame};
use crate::spool::reread_log;

fn text() -> impl Strategy<Value = OsString> {
    prop::collection::vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
}

prop_compose! {
    fn spec()(
        id in any::<u64>(),
        argv in prop::collection::vec(text(), 0..5),
        env in prop::collection::vec((text(), text()), 0..5),
        working_dir in text(),
        stdin in prop::option::of(text()),
        timeout in prop::option::of(any::<u64>()),
        output_limit in prop::option::of(any::<u64>()),
        capture in any::<u64>(),
        grace in any::<u64>(),
    ) -> Spec {
        Spec {
            id,
            argv,
            env,
            working_dir: working_dir.into(),
            stdin: stdin.map(Into::into),
            timeout: timeout.map(Duration::from_nanos),
            output_limit,
            capture,
            grace: Duration::from_nanos(grace),
        }
    }
}

proptest! {
    #[test]
    fn a_command_arrives_as_it_was_sent(spec in spec()) {
        let request = Request::Start(spec);
        let stream = framed(&request).unwrap();
        let Frame::Message(payload) = next_frame(&mut stream.as_slice()).unwrap() else {
            panic!("no message");
        };
        prop_assert_eq!(decode::<Request>(&payload), Ok(request));
    }

    #[test]
    fn a_message_cut_off_or_with_something_behind_it_is_none(spec in spec(), cut in any::<prop::sample::Index>()) {
        let mut whole = encode(&Request::Start(spec));
        let cut = cut.index(whole.len());
        prop_assert!(decode::<Request>(&whole[..cut]).is_err());
        whole.push(0);
        prop_assert!(decode::<Request>(&whole).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (reread_request(&bytes), reread_reply(&bytes), reread_log(&bytes));
        let _ = next_frame(&mut bytes.as_slice());
    }
}

#[test]
fn a_length_alone_takes_no_memory() {
    // A start whose list of arguments claims four billion entries.
    let mut claim = vec![1, 0, 0, 0, 0, 0, 0, 0, 0];
    claim.extend([255; 4]);
    assert!(decode::<Request>(&claim).is_err());
    let longest = [255, 255, 255, 255, 0];
    assert_eq!(next_frame(&mut longest.as_slice()).unwrap(), Frame::TooLong);
}

#[test]
fn the_greeting_keeps_its_bytes() {
    // A keeper of another release must be able to say that it does not understand.
    let hello = framed(&Request::Hello { version: 1 }).unwrap();
    assert_eq!(hello, [5, 0, 0, 0, 0, 1, 0, 0, 0]);
    let refused = Reply::Refused {
        id: None,
        why: Refusal::Version,
    };
    assert_eq!(framed(&refused).unwrap(), [7, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0]);
}
