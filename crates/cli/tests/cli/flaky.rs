//! A server that fails, always in the same way: by what is asked for, and how often it was.
//!
//! A path that ends with a number of which 3 is the last digit is answered with 503 when it is asked
//! for the first time; one whose number ends with 00 is, until a client has requested `/mend`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

pub(crate) struct FlakyServer {
    address: SocketAddr,
}

impl FlakyServer {
    /// Starts it; it lives as long as the tests.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let mut asked = RequestHead::default();
            for connection in listener.incoming().flatten() {
                // The client has disconnected.
                let _ = asked.answer(&connection);
            }
        });
        Self { address }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }
}

/// How often each path was asked for.
#[derive(Default)]
struct RequestHead {
    times: BTreeMap<String, u32>,
    mended: bool,
}

impl RequestHead {
    fn answer(&mut self, connection: &TcpStream) -> std::io::Result<()> {
        connection.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut lines = BufReader::new(connection).lines();
        let request = lines.next().transpose()?.unwrap_or_default();
        // A connection that is closed with something unread is reset.
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let path = request.split(' ').nth(1).unwrap_or("/");
        let times = self.times.entry(path.to_owned()).or_default();
        *times += 1;
        self.mended |= path == "/mend";
        let fails = path.ends_with('3') && *times == 1 || path.ends_with("00") && !self.mended;
        let (status, body) = if fails {
            ("503 Service Unavailable", "busy\n".to_owned())
        } else {
            ("200 OK", format!("this is {path}\n"))
        };
        let length = body.len();
        let mut connection = connection;
        write!(connection, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
    }
}
