//! One HTTP/1 connection, over a socket or in memory.
//!
//! hyper answers a malformed head by itself and without a body, and says nothing when a head takes too long.
//! [`ClientStream`] lies between hyper and the socket and gives these errors the shape of all others. It also
//! disconnects a client that takes nothing of its answer, for which hyper would wait for ever.

use std::future::Future;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::StatusCode;
use hyper::server::conn::http1::Builder;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

use crate::answer::error_body;
use crate::listen::PermittedRoutes;

/// The most bytes of a head, and of a body that are read ahead.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How long sending a last error may take.
const LAST_WORD: Duration = Duration::from_secs(1);

/// How a connection is served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionSettings {
    /// How long a head may take to arrive.
    pub(crate) head: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub(crate) stall: Duration,
    /// The client has sent everything and still wants the answer.
    pub(crate) half_close: bool,
}

/// Serves until the connection ends. After `ending`, no further request is taken.
pub(crate) async fn serve_connection<I>(
    io: I,
    routes: PermittedRoutes,
    settings: ConnectionSettings,
    ending: impl Future<Output = ()>,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = Builder::new();
    let head = Some(settings.head);
    http.timer(TokioTimer::new()).header_read_timeout(head);
    http.max_buf_size(MAX_HEAD_BYTES).half_close(settings.half_close);
    let io = TokioIo::new(ClientStream::of(io, settings.stall));
    let mut connection = http.serve_connection(io, TowerToHyperService::new(routes)).with_upgrades();
    let ended = tokio::select! {
        ended = Pin::new(&mut connection) => Some(ended),
        () = ending => None,
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        Pin::new(&mut connection).graceful_shutdown();
        Pin::new(&mut connection).await
    };
    if let Err(error) = ended
        && let Some(status) = unanswered(&error)
        && let Some(parts) = connection.into_parts()
        // An idle client has asked nothing.
        && !parts.read_buf.is_empty()
    {
        let mut io = parts.io.into_inner();
        io.replace(status);
        // The client may be gone.
        drop(timeout(LAST_WORD, io.shutdown()).await);
    }
}

/// The status of an error that hyper does not answer.
fn unanswered(error: &hyper::Error) -> Option<StatusCode> {
    if error.is_timeout() {
        Some(StatusCode::REQUEST_TIMEOUT)
    } else {
        // HTTP/2 counts as a head that cannot be parsed.
        (error.is_incomplete_message() || error.is_parse()).then_some(StatusCode::BAD_REQUEST)
    }
}

/// Replaces the answers that hyper makes itself, and bounds how long sending may stall.
#[derive(Debug)]
struct ClientStream<I> {
    io: I,
    patience: Duration,
    /// Ends the wait for a client that takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
    /// What takes the place of an answer, as far as it is not sent yet.
    unsent: Vec<u8>,
    /// The last answer is under way.
    is_last: bool,
    /// After an upgrade the bytes are no HTTP.
    is_upgraded: bool,
}

impl<I> ClientStream<I> {
    const fn of(io: I, patience: Duration) -> Self {
        let unsent = Vec::new();
        Self { io, patience, stalled: None, unsent, is_last: false, is_upgraded: false }
    }

    /// Passes the outcome of a write on, unless the client has taken nothing for too long.
    fn within_patience(
        &mut self,
        context: &mut Context<'_>,
        sent: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if sent.is_ready() {
            self.stalled = None;
            return sent;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    /// Sends this error, unless one was sent before.
    fn replace(&mut self, status: StatusCode) {
        if !std::mem::replace(&mut self.is_last, true) && !self.is_upgraded {
            self.unsent = last_answer(status);
        }
    }

    /// Whether these bytes are an answer of hyper, which is then replaced.
    fn takes(&mut self, bytes: &[u8]) -> bool {
        if self.is_upgraded {
            return false;
        }
        self.is_upgraded = bytes.starts_with(b"HTTP/1.1 101 ");
        let Some(status) = automatic(bytes) else {
            return false;
        };
        self.replace(status);
        true
    }
}

impl<I: AsyncWrite + Unpin> ClientStream<I> {
    fn poll_unsent(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            let sent = Pin::new(&mut self.io).poll_write(context, &self.unsent);
            let sent = ready!(self.within_patience(context, sent))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            drop(self.unsent.drain(..sent.min(self.unsent.len())));
        }
        Poll::Ready(Ok(()))
    }
}

/// The status of an answer that hyper has made. hyper writes it in one piece, and only after everything before
/// it was sent. Answers of the routes have a type, and errors a body.
fn automatic(bytes: &[u8]) -> Option<StatusCode> {
    const LONGEST: usize = 512;
    let is_error = bytes.starts_with(b"HTTP/1.") && matches!(bytes.get(9), Some(b'4' | b'5'));
    if !is_error || bytes.len() > LONGEST || !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?.to_ascii_lowercase();
    let is_empty = head.contains("\r\ncontent-length: 0\r\n") && !head.contains("\r\ncontent-type:");
    let status = head.get(9..12)?.parse().ok()?;
    is_empty.then(|| StatusCode::from_u16(status).ok())?
}

fn last_answer(status: StatusCode) -> Vec<u8> {
    let why = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "the request head is too large",
        StatusCode::URI_TOO_LONG => "the request URL is too long",
        StatusCode::REQUEST_TIMEOUT => "the request head took too long to arrive",
        _ => "the request head is malformed, or not HTTP/1.1",
    };
    let body = error_body(status, why).to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

impl<I: AsyncRead + Unpin> AsyncRead for ClientStream<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ClientStream<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(context))?;
        if self.takes(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let sent = Pin::new(&mut self.io).poll_write(context, bytes);
        self.within_patience(context, sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_unsent(context))?;
        if let [only] = pieces
            && self.takes(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        let sent = Pin::new(&mut self.io).poll_write_vectored(context, pieces);
        self.within_patience(context, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(context))?;
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_unsent(context))?;
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
