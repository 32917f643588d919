//! Encoding and decoding messages, including malformed ones.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::CommandSpec;
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
        secrets in prop::collection::vec(".{0,8}", 0..3),
    ) -> CommandSpec {
        CommandSpec {
            id,
            argv,
            env,
            working_dir: working_dir.into(),
            stdin: stdin.map(Into::into),
            timeout: timeout.map(Duration::from_nanos),
            output_limit,
            capture,
            grace: Duration::from_nanos(grace),
            secrets,
            inherited: Arc::default(),
        }
    }
}

proptest! {
    #[test]
    fn a_command_arrives_as_it_was_sent(spec in spec()) {
        let request = KeeperRequest::Start(spec);
        let stream = framed(&request).unwrap();
        let KeeperFrame::Message(payload) = next_frame(&mut stream.as_slice()).unwrap() else {
            panic!("no message");
        };
        prop_assert_eq!(read::<KeeperRequest>(&payload), Ok(request));
    }

    #[test]
    fn a_message_that_is_cut_off_or_has_trailing_bytes_is_refused(spec in spec(), cut in any::<prop::sample::Index>()) {
        let mut whole = written(&KeeperRequest::Start(spec));
        let cut = cut.index(whole.len());
        prop_assert!(read::<KeeperRequest>(&whole[..cut]).is_err());
        whole.push(0);
        prop_assert!(read::<KeeperRequest>(&whole).is_err());
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (reread_request(&bytes), reread_reply(&bytes), reread_log(&bytes));
        let _ = next_frame(&mut bytes.as_slice());
    }
}

#[test]
fn a_claimed_length_allocates_no_memory() {
    // A start whose list of arguments claims four billion entries.
    let claim = [0x82, 0, 0x81, 0x82, 7, 0x9a, 255, 255, 255, 255];
    assert!(read::<KeeperRequest>(&claim).is_err());
    // The same for an argument of four billion bytes.
    let claim = [0x82, 0, 0x81, 0x82, 7, 0x81, 0x5a, 255, 255, 255, 255];
    assert!(read::<KeeperRequest>(&claim).is_err());
    assert_eq!(next_frame(&mut [255, 255, 255, 255, 0].as_slice()).unwrap(), KeeperFrame::TooLong);
}

#[test]
fn the_greeting_and_its_refusal_keep_their_bytes() {
    // A keeper of another release must be able to refuse the greeting.
    assert_eq!(greeting(), [5, 0, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(understood(&[0, 4, 0, 0, 0]), Ok(()));
    assert_eq!(understood(&[0, 1, 0, 0, 0]), Err(KeeperRefusal::Version));
    assert_eq!(understood(&[0, 4, 0, 0, 0, 0]), Err(KeeperRefusal::Malformed));
    let reasons = [KeeperRefusal::Malformed, KeeperRefusal::Version, KeeperRefusal::Busy];
    for (number, why) in (0..).zip(reasons) {
        let refused = framed_refusal(why);
        assert_eq!(refused, [7, 0, 0, 0, 5, 0, number, 0, 0, 0, 0]);
        assert_eq!(refusal(&refused[4..]), Some(why));
    }
    let refused = written(&KeeperReply::Refused { id: None, why: KeeperRefusal::Version });
    assert_eq!(refusal(&refused), None);
}
