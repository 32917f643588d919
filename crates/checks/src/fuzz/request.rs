//! HTTP requests written as text.
//!
//! Requests are separated by a line `===`: a line with method and target, header lines, an empty line, the
//! body. Headers that a client adds are added if they are missing: host, length and type of the body, and the
//! end of the connection. In a WebSocket request every line of the body is a message.

use std::iter;

#[derive(Clone, Debug)]
pub(super) struct FuzzRequest {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<String>,
    body: Vec<u8>,
}

impl FuzzRequest {
    /// A GET request with these headers.
    pub(super) fn get(path: &str, headers: &[&str]) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: headers.iter().map(|&header| header.to_owned()).collect(),
            body: Vec::new(),
        }
    }

    pub(super) fn all(text: &[u8]) -> Vec<Self> {
        let mut all = vec![vec![]];
        for line in text.split(|byte| *byte == b'\n') {
            if line == b"===" {
                all.push(vec![]);
            } else if let Some(last) = all.last_mut() {
                last.push(line);
            }
        }
        all.into_iter().map(|lines| Self::of(&lines)).collect()
    }

    fn of(lines: &[&[u8]]) -> Self {
        let text = |line: &&[u8]| String::from_utf8_lossy(line).trim_end().to_owned();
        let mut rest = lines.iter();
        let first = rest.next().map(text).unwrap_or_default();
        let (method, path) = first.split_once(' ').unwrap_or((&first, "/"));
        let headers = rest.by_ref().map(text).take_while(|line| !line.is_empty());
        let headers = headers.collect();
        let body: Vec<&[u8]> = rest.copied().collect();
        Self { method: method.to_owned(), path: path.to_owned(), headers, body: body.join(&b'\n') }
    }

    /// The value of a header, if it is set.
    pub(super) fn header(&self, wanted: &str) -> Option<&str> {
        let mut headers = self.headers.iter().filter_map(|line| line.split_once(':'));
        let found = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.trim())
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let asks_for_socket = self.header("upgrade").is_some();
        let length = if asks_for_socket { 0 } else { self.body.len() };
        let added = [
            ("host", "localhost".to_owned()),
            ("content-type", "application/json".to_owned()),
            ("content-length", length.to_string()),
            ("connection", "close".to_owned()),
        ];
        let chunked = self.header("transfer-encoding").is_some();
        let added = added
            .into_iter()
            .filter(|(name, _)| self.header(name).is_none() && !(chunked && *name == "content-length"));
        let added = added.map(|(name, value)| format!("{name}: {value}"));
        let first = format!("{} {} HTTP/1.1", self.method, self.path);
        let lines = iter::once(first).chain(self.headers.iter().cloned()).chain(added);
        let mut bytes: Vec<u8> = lines.flat_map(|line| (line + "\r\n").into_bytes()).collect();
        bytes.extend(b"\r\n");
        if asks_for_socket {
            let lines = self.body.split(|byte| *byte == b'\n');
            bytes.extend(lines.flat_map(frame));
        } else {
            bytes.extend(&self.body);
        }
        bytes
    }
}

/// A message of a WebSocket client, masked with zeros.
fn frame(text: &[u8]) -> Vec<u8> {
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes();
    let [.., high, low] = length;
    let mut frame = vec![0x81];
    match text.len() {
        0..=125 => frame.push(0x80 | low),
        126..=0xffff => frame.extend([0x80 | 0x7e, high, low]),
        _ => {
            frame.push(0x80 | 0x7f);
            frame.extend(length);
        }
    }
    frame.extend([0; 4]);
    frame.extend(text);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_headers_are_added_and_given_ones_stay() {
        let all = FuzzRequest::all(b"GET /a\nHost: x\n===\nPOST /b\n\n{}\n");
        let [get, post] = &all[..] else {
            panic!("{all:?}");
        };
        let sent = String::from_utf8(get.bytes()).unwrap();
        assert_eq!(
            sent,
            "GET /a HTTP/1.1\r\nHost: x\r\ncontent-type: application/json\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        );
        assert!(post.bytes().ends_with(b"content-length: 3\r\nconnection: close\r\n\r\n{}\n"));
    }

    #[test]
    fn messages_of_every_length_are_framed() {
        assert_eq!(frame(b"hi"), [0x81, 0x82, 0, 0, 0, 0, b'h', b'i']);
        assert_eq!(frame(&[b'x'; 300])[..4], [0x81, 0xfe, 1, 44]);
        assert_eq!(frame(&vec![b'x'; 70_000])[..4], [0x81, 0xff, 0, 0]);
    }
}
