//! The servers of a round, one or two on one store, and an HTTP client.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::findings::KillFindings;
use super::sandbox::{RoundSandbox, RunningProgram, deadline};
use super::schedule::ProcessPlan;

/// How long a server may take until it listens.
const STARTING: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_micros(500);

pub(crate) struct ManagedServer<'w> {
    sandbox: &'w RoundSandbox,
    address: SocketAddr,
    plans: VecDeque<ProcessPlan>,
    doing: ServerPhase,
}

enum ServerPhase {
    /// Down until then.
    Away(Instant),
    /// Running, and killed then if it is not to be left alone.
    Running(RunningProgram, Option<Instant>),
}

impl<'w> ManagedServer<'w> {
    /// A server that is not started yet.
    pub(crate) fn at(sandbox: &'w RoundSandbox, address: SocketAddr, plans: Vec<ProcessPlan>) -> Self {
        Self { sandbox, address, plans: plans.into(), doing: ServerPhase::Away(Instant::now()) }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it runs, and no kill is planned any more.
    pub(crate) const fn is_left_alone(&self) -> bool {
        matches!(self.doing, ServerPhase::Running(_, None))
    }

    /// Starts or kills the server, or notes its end, whatever is due.
    pub(crate) fn poll(&mut self, found: &mut KillFindings) -> io::Result<()> {
        let now = Instant::now();
        match &mut self.doing {
            ServerPhase::Away(until) if *until > now => {}
            ServerPhase::Away(_) => self.begin()?,
            ServerPhase::Running(running, until) => {
                if until.is_some_and(|until| until <= now) {
                    self.sandbox.kill(running)?;
                }
                if running.has_ended()? {
                    self.sandbox.note_deaths_of(running);
                    let ended = running.ended()?;
                    found.unlawful_unless(
                        ended.code == -9,
                        format_args!("a server ended with {}: {}", ended.code, ended.err),
                    );
                    let away = self.plans.front().map(|it| it.pause).unwrap_or_default();
                    self.doing = ServerPhase::Away(deadline(away));
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> io::Result<()> {
        let plan = self.plans.pop_front();
        let failpoint = plan.as_ref().and_then(|it| it.failpoint.clone());
        let listen = self.address.to_string();
        let running = self.sandbox.start(&["serve", "--listen", &listen], failpoint.as_deref())?;
        let kill = plan.as_ref().and_then(|it| it.kills.first());
        let until = kill.map(|it| deadline(it.after));
        self.doing = ServerPhase::Running(running, until);
        Ok(())
    }

    /// Starts the server and waits until it listens.
    pub(crate) fn listens(&mut self) -> io::Result<()> {
        self.begin()?;
        let until = deadline(STARTING);
        if let ServerPhase::Running(running, _) = &mut self.doing {
            while !running.out().contains("listening on") {
                if running.has_ended()? || Instant::now() >= until {
                    let said = running.ended()?.err;
                    return Err(io::Error::other(format!("a server does not listen: {said}")));
                }
                thread::sleep(PAUSE);
            }
        }
        Ok(())
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if let ServerPhase::Running(running, _) = &mut self.doing {
            self.sandbox.kill(running)?;
            self.sandbox.note_deaths_of(running);
        }
        self.doing = ServerPhase::Away(Instant::now());
        Ok(())
    }
}

/// A free port below the range from which the system assigns ports.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id().wrapping_rem(600)).unwrap_or_default();
    for _ in 0..1000 {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = own.wrapping_mul(16).wrapping_add(next).wrapping_rem(9000);
        let address = SocketAddr::from(([127, 0, 0, 1], port.saturating_add(20_500)));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(io::Error::other("no address is free"))
}

/// Longer than any response takes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientResponse {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends a request; `None` without a response.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> Option<ClientResponse> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT)).ok()?;
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
    Some(ClientResponse { status, body })
}

/// A header of a message, by its name in lower case.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Posts a body to an address such as `http://127.0.0.1:7070/webhook/…`.
pub(crate) fn post(url: &str, body: &str) -> Option<ClientResponse> {
    let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
    ask(host.parse().ok()?, "POST", &format!("/{path}"), body)
}
