//! The bodies of requests: read whole, bounded in size and time, and counted over all requests.
//!
//! A body takes no permit of a request while it arrives, so that slow clients do not keep others from being
//! answered. What is held of all bodies together is bounded; a body that no longer fits is refused with 503. Callers
//! with the token then have some room of their own, so that webhooks cannot shut them out.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::answer::HttpRefusal;
use crate::limits::{Caller, ListenLimits};

/// How much of a refused body is read, and for how long: a client that still sends would not get the answer.
const DISCARDED_BYTES: usize = 16 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(2);
/// A client that pauses this long waits for the answer.
const DISCARD_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct RequestBodies {
    /// One permit for each byte that may be held.
    free: Arc<Semaphore>,
    /// The same, beyond `free` and only for callers with the token.
    reserve: Arc<Semaphore>,
    pause: Duration,
    time: Duration,
}

/// A body in memory. Its bytes count for as long as this exists.
#[derive(Debug, Default)]
pub(crate) struct HeldBody {
    pub(crate) bytes: Vec<u8>,
    permit: Option<OwnedSemaphorePermit>,
    reserved: Option<OwnedSemaphorePermit>,
}

impl RequestBodies {
    pub(crate) fn of(limits: &ListenLimits) -> Self {
        let most = limits.body_bytes.min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(most)),
            reserve: Arc::new(Semaphore::new(most / 4)),
            pause: limits.body_pause,
            time: limits.request,
        }
    }

    /// Reads a body of at most `most` bytes.
    pub(crate) async fn read(
        &self,
        caller: Caller,
        mut body: Body,
        most: usize,
    ) -> Result<HeldBody, HttpRefusal> {
        if body.is_end_stream() {
            return Ok(HeldBody::default());
        }
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        let read =
            if announced > most { Err(too_large(most)) } else { self.collect(caller, &mut body, most).await };
        if read.is_err() {
            discard(body).await;
        }
        read
    }

    async fn collect(&self, caller: Caller, body: &mut Body, most: usize) -> Result<HeldBody, HttpRefusal> {
        let end = Instant::now().checked_add(self.time).unwrap_or_else(Instant::now);
        let mut held = HeldBody::default();
        loop {
            let piece = timeout_at(end, timeout(self.pause, next(body))).await;
            let Ok(Ok(piece)) = piece else {
                return Err(HttpRefusal::timed_out("the request body took too long to arrive"));
            };
            let Some(piece) = piece else {
                return Ok(held);
            };
            let piece = piece.map_err(|_| HttpRefusal::bad_request("the request body cannot be read"))?;
            if held.bytes.len().saturating_add(piece.len()) > most {
                return Err(too_large(most));
            }
            self.hold(caller, &mut held, &piece)?;
        }
    }

    fn hold(&self, caller: Caller, held: &mut HeldBody, piece: &Bytes) -> Result<(), HttpRefusal> {
        let full = || HttpRefusal::unavailable("too many bytes of requests at once; retry in a second");
        let many = u32::try_from(piece.len()).map_err(|_| full())?;
        let is_held = take(&self.free, many, &mut held.permit)
            || caller == Caller::Trusted && take(&self.reserve, many, &mut held.reserved);
        if !is_held {
            return Err(full());
        }
        held.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// Adds to what is held, if that many are free.
fn take(free: &Arc<Semaphore>, many: u32, held: &mut Option<OwnedSemaphorePermit>) -> bool {
    let Ok(permit) = Arc::clone(free).try_acquire_many_owned(many) else {
        return false;
    };
    match held {
        Some(all) => all.merge(permit),
        None => *held = Some(permit),
    }
    true
}

fn too_large(most: usize) -> HttpRefusal {
    HttpRefusal::too_large(format!("the request body has more than {most} bytes"))
}

/// The next bytes of a body. Trailers are skipped.
async fn next(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
        match frame.map(Frame::into_data) {
            Ok(Ok(bytes)) => return Some(Ok(bytes)),
            Ok(Err(_)) => {}
            Err(error) => return Some(Err(error)),
        }
    }
}

/// Reads a refused body without keeping it, within limits.
pub(crate) async fn discard(mut body: Body) {
    let read = async {
        let mut many = 0_usize;
        while many < DISCARDED_BYTES
            && let Ok(Some(Ok(piece))) = timeout(DISCARD_PAUSE, next(&mut body)).await
        {
            many = many.saturating_add(piece.len());
        }
    };
    drop(timeout(DISCARD_TIME, read).await);
}
