//! The answer to an HTTP request, read according to its protocol.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use undaunted_policy::FailureCause;

/// The most bytes of an answer that are read, unless the command says otherwise.
pub(super) const MOST: u64 = 16 << 20;
/// How many bytes of it are shown.
pub(super) const SHOWN: usize = 4 << 10;

#[derive(Clone, Debug)]
pub struct HttpAnswer {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// Without an error text, the beginning of the body is shown instead.
type AnswerFailure = (FailureCause, Option<String>);

impl HttpAnswer {
    /// The status decides, and the body is the output; an unwanted one need not be UTF-8.
    pub(super) fn plain(
        &self,
        expect: &[RangeInclusive<u16>],
        wanted: bool,
    ) -> Result<String, AnswerFailure> {
        self.expected(expect)?;
        if wanted { self.text() } else { Ok(String::new()) }
    }

    /// The body says whether the step succeeded, and holds its outputs.
    pub(super) fn argyll(&self, expect: &[RangeInclusive<u16>]) -> Result<String, AnswerFailure> {
        self.expected(expect)?;
        match step_result(&self.text()?) {
            StepResult::Given(outputs) => Ok(outputs),
            StepResult::Failed(error) => Err((FailureCause::Refused, Some(error))),
            StepResult::Unreadable(why) => Err((FailureCause::Unreadable, Some(why))),
        }
    }

    fn expected(&self, expect: &[RangeInclusive<u16>]) -> Result<(), AnswerFailure> {
        if expect.iter().any(|range| range.contains(&self.status)) {
            Ok(())
        } else {
            Err((FailureCause::Status(self.status), None))
        }
    }

    fn text(&self) -> Result<String, AnswerFailure> {
        let text = String::from_utf8(self.body.clone());
        text.map_err(|_| {
            let error = "the response is not valid UTF-8".to_owned();
            (FailureCause::Unreadable, Some(error))
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Its outputs, as JSON.
    Given(String),
    Failed(String),
    Unreadable(String),
}

/// Reads the result of a step of a flow: `success`, and `outputs` or `error`.
pub fn step_result(text: &str) -> StepResult {
    let unreadable =
        |why: &str| StepResult::Unreadable(format!("the result does not follow the protocol: {why}"));
    let body: Value = match serde_json::from_str(text) {
        Ok(body) => body,
        Err(error) => return unreadable(&error.to_string()),
    };
    match (body.get("success"), body.get("outputs")) {
        (Some(Value::Bool(true)), None | Some(Value::Null)) => StepResult::Given("{}".to_owned()),
        (Some(Value::Bool(true)), Some(outputs @ Value::Object(_))) => StepResult::Given(outputs.to_string()),
        (Some(Value::Bool(true)), Some(_)) => unreadable("`outputs` must be an object"),
        (Some(Value::Bool(false)), _) => {
            let error = body.get("error").and_then(Value::as_str);
            let error = error.unwrap_or("the step returned `success: false` without an error");
            StepResult::Failed(error.to_owned())
        }
        _ => unreadable("`success` must be true or false"),
    }
}

/// The wait that `Retry-After` asks for: seconds, or an HTTP date.
pub(super) fn parse_retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        // A number that does not fit is longer than any limit.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default())
}

pub(super) fn prefix(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn answer(status: u16, body: &str) -> HttpAnswer {
        HttpAnswer { status, retry_after: None, body: body.into() }
    }

    #[test]
    fn retry_after_is_seconds_or_an_http_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(parse_retry_after("120", now), Some(Duration::from_mins(2)));
        assert_eq!(parse_retry_after("0", now), Some(Duration::ZERO));
        let date = "Sun, 06 Nov 1994 08:49:47 GMT";
        assert_eq!(parse_retry_after(date, now), Some(Duration::from_secs(10)));
        let past = "Sun, 06 Nov 1994 08:00:00 GMT";
        assert_eq!(parse_retry_after(past, now), Some(Duration::ZERO));
        let huge = "99999999999999999999999";
        assert_eq!(parse_retry_after(huge, now), Some(Duration::from_secs(u64::MAX)));
        for wrong in ["", "-1", "1.5", "soon", "2s"] {
            assert_eq!(parse_retry_after(wrong, now), None, "{wrong}");
        }
    }

    #[test]
    fn the_status_decides_a_plain_answer() {
        let expect = [200..=299];
        assert_eq!(answer(200, "hi").plain(&expect, true).unwrap(), "hi");
        for status in [199, 302, 404, 503] {
            let (cause, error) = answer(status, "hi").plain(&expect, true).unwrap_err();
            assert_eq!((cause, error), (FailureCause::Status(status), None));
        }
    }

    #[test]
    fn the_body_decides_the_answer_of_a_step() {
        let read = |body: &str| answer(200, body).argyll(&[200..=200]);
        assert_eq!(read("{\"success\":true}").unwrap(), "{}");
        let outputs = "{\"success\":true,\"outputs\":{\"a\":1}}";
        assert_eq!(read(outputs).unwrap(), "{\"a\":1}");
        let (cause, error) = read("{\"success\":false,\"error\":\"no\"}").unwrap_err();
        assert_eq!((cause, error.as_deref()), (FailureCause::Refused, Some("no")));
        for wrong in ["", "hi", "{}", "{\"success\":1}", "{\"success\":true,\"outputs\":[]}"] {
            assert_eq!(read(wrong).unwrap_err().0, FailureCause::Unreadable, "{wrong}");
        }
    }
}
