//! A client: one request on a connection of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(10);
const CONNECTING: Duration = Duration::from_secs(1);

/// A status and a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Asks; nothing if nobody answers.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECTING).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut reading = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reading.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let length = header(&head, "content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reading.read_exact(&mut body).ok()?;
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(Answer { status, body })
}

/// A header of a message, by its name in lower case.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Sends a body to an address such as `http://127.0.0.1:7070/webhook/…`.
pub(crate) fn post(url: &str, body: &str) -> Option<Answer> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    ask(host.parse().ok()?, "POST", &format!("/{path}"), body)
}
