//! Parses what a server sends over one connection.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ServerOutput {
    HttpResponse(HttpResponse),
    Message(Vec<u8>),
    Control,
    /// Bytes that are neither.
    Nonsense(Vec<u8>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct HttpResponse {
    pub(super) status: u16,
    pub(super) kind: String,
    pub(super) body: Vec<u8>,
}

impl HttpResponse {
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

pub(super) fn parse_output(mut bytes: &[u8]) -> Vec<ServerOutput> {
    let mut parse_output = Vec::new();
    let mut is_socket = false;
    while !bytes.is_empty() {
        let next = if is_socket { message(bytes) } else { answer(bytes) };
        let Some((output, rest)) = next else {
            parse_output.push(ServerOutput::Nonsense(bytes.to_vec()));
            break;
        };
        is_socket = is_socket || matches!(&output, ServerOutput::HttpResponse(it) if it.status == 101);
        parse_output.push(output);
        bytes = rest;
    }
    parse_output
}

fn answer(bytes: &[u8]) -> Option<(ServerOutput, &[u8])> {
    let end = bytes.windows(4).position(|it| it == b"\r\n\r\n")?;
    let (head, rest) = bytes.split_at_checked(end)?;
    let rest = rest.get(4..)?;
    let mut lines = str::from_utf8(head).ok()?.split("\r\n");
    let mut first = lines.next()?.splitn(3, ' ');
    if !first.next()?.starts_with("HTTP/1.") {
        return None;
    }
    let status = first.next()?.parse().ok()?;
    let header = |wanted: &str| {
        let mut headers = lines.clone().filter_map(|line| line.split_once(':'));
        let found = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim())
    };
    let kind = header("content-type").unwrap_or_default().to_owned();
    let length = header("content-length").map_or(Ok(0), str::parse);
    let length: usize = length.ok()?;
    // A response to HEAD has no body, and the next response follows at once.
    let has_body = !rest.is_empty() && !rest.starts_with(b"HTTP/1.");
    let (body, rest) = rest.split_at_checked(if has_body { length } else { 0 })?;
    let body = body.to_vec();
    Some((ServerOutput::HttpResponse(HttpResponse { status, kind, body }), rest))
}

/// A frame of a server, which is not masked.
fn message(bytes: &[u8]) -> Option<(ServerOutput, &[u8])> {
    let [first, second, rest @ ..] = bytes else {
        return None;
    };
    let (length, rest) = match second {
        127 => {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            (usize::try_from(u64::from_be_bytes(*length)).ok()?, rest)
        }
        126 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        length => (usize::from(*length), rest),
    };
    let (payload, rest) = rest.split_at_checked(length)?;
    let output = match first {
        0x81 => ServerOutput::Message(payload.to_vec()),
        0x88..=0x8a => ServerOutput::Control,
        _ => return None,
    };
    Some((output, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_and_messages_are_distinguished() {
        let head =
            |status: u16, length: usize| format!("HTTP/1.1 {status} x\r\nContent-Length: {length}\r\n\r\n");
        let sent = [
            head(400, 2).as_bytes(),
            b"{}",
            head(404, 9).as_bytes(),
            head(101, 0).as_bytes(),
            b"\x81\x02hi\x88\x00\x81\x7e\x00\x01x",
        ]
        .concat();
        let output = parse_output(&sent);
        let answer = |status, body: &[u8]| {
            ServerOutput::HttpResponse(HttpResponse { status, kind: String::new(), body: body.to_vec() })
        };
        let message = |text: &[u8]| ServerOutput::Message(text.to_vec());
        assert_eq!(
            output,
            [
                answer(400, b"{}"),
                answer(404, b""),
                answer(101, b""),
                message(b"hi"),
                ServerOutput::Control,
                message(b"x")
            ]
        );
        assert_eq!(parse_output(b"HTTP"), [ServerOutput::Nonsense(b"HTTP".to_vec())]);
    }
}
