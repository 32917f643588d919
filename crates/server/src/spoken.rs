//! Plain HTTP over a socket, for tests: what is sent is exactly what is written here.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// Sends a request as it is, and gives status, head and body of the answer.
pub(crate) fn say(address: SocketAddr, request: &str) -> (u16, String, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    // One that is refused early may not be read to its end.
    let _ = stream.write_all(request.as_bytes());
    hear(&mut stream)
}

/// Reads an answer up to the end of the connection.
pub(crate) fn hear(stream: &mut TcpStream) -> (u16, String, Value) {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).map_or(0, |it| it.parse().unwrap());
    let body = serde_json::from_str(body).unwrap_or(Value::String(body.to_owned()));
    (status, head.to_ascii_lowercase(), body)
}

/// The text of a request with these headers.
pub(crate) fn request(method: &str, path: &str, headers: &[&str], body: &str) -> String {
    let headers: String = headers.iter().flat_map(|it| [*it, "\r\n"]).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}
