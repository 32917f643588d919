//! Events as they happen, over a WebSocket.
//!
//! One task for each socket receives requests, reads new events and sends them. It reads nothing while it
//! cannot send, so a slow client costs no memory; a client that takes nothing at all is disconnected.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::{HttpRefusal, error_response};
use crate::api::Api;
use crate::follow::{Follower, refusal};
use crate::room::ConnectionPermit;
use crate::subscription::SubscriptionRequest;

const MAX_MESSAGE_BYTES: usize = 64 << 10;
/// How often the store is read without a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The least time between two reads of the store.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// How often the client is pinged; it counts as gone after two pings without an answer.
const PING: Duration = Duration::from_secs(30);

/// The client has gone, or is to be disconnected.
struct Disconnected;

pub(crate) async fn connect(
    State(api): State<Api>,
    Extension(permit): Extension<ConnectionPermit>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    match upgrade {
        Ok(upgrade) => {
            let Some(open) = permit.open_socket() else {
                let busy = HttpRefusal::unavailable("too many WebSockets at once; retry later");
                return busy.into_response();
            };
            upgrade.max_message_size(MAX_MESSAGE_BYTES).max_frame_size(MAX_MESSAGE_BYTES).on_upgrade(
                async move |socket| {
                    // It keeps the permit of its connection for as long as it lasts.
                    let _permits = (permit, open);
                    ClientSession::of(api, socket).run().await;
                },
            )
        }
        Err(wrong) => error_response(wrong.status(), &wrong.body_text()),
    }
}

struct ClientSession {
    socket: WebSocket,
    api: Api,
    /// `None` only while a blocking task has it.
    follower: Option<Follower>,
}

impl ClientSession {
    fn of(api: Api, socket: WebSocket) -> Self {
        let follower = Some(Follower::of(api.host()));
        Self { socket, api, follower }
    }

    async fn run(mut self) {
        let mut ending = self.api.ending();
        let mut news = self.api.changes().subscribe();
        let mut polled = Instant::now();
        let mut due = polled.checked_add(POLL_INTERVAL).unwrap_or(polled);
        let mut notified = false;
        let mut has_signal = true;
        let mut ping = Instant::now();
        let mut silent = 0_u32;
        loop {
            let going = tokio::select! {
                received = self.socket.recv() => {
                    silent = 0;
                    self.handle(received).await
                }
                signal = news.changed(), if has_signal && !notified => {
                    has_signal = signal.is_ok();
                    notified = true;
                    due = due.min(polled.checked_add(MIN_INTERVAL).unwrap_or(polled));
                    Ok(())
                }
                () = sleep_until(due) => {
                    let more = self.send_events(notified).await;
                    polled = Instant::now();
                    notified = false;
                    let wait = if matches!(more, Ok(true)) { MIN_INTERVAL } else { POLL_INTERVAL };
                    due = polled.checked_add(wait).unwrap_or(polled);
                    more.map(|_| ())
                }
                () = sleep_until(ping) => {
                    silent = silent.saturating_add(1);
                    ping = ping.checked_add(PING).unwrap_or(ping);
                    if silent > 2 { Err(Disconnected) } else { self.send(Message::Ping(Vec::new().into())).await }
                }
                () = ending.reached() => {
                    self.close(close_code::AWAY, "the server is shutting down").await;
                    Err(Disconnected)
                }
            };
            if going.is_err() {
                return;
            }
        }
    }

    async fn handle(&mut self, received: Option<Result<Message, axum::Error>>) -> Result<(), Disconnected> {
        let request = match received {
            Some(Ok(Message::Text(text))) => SubscriptionRequest::read(&text),
            Some(Ok(Message::Binary(_))) => Err("messages must be text".to_owned()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Close(_))) | None => return Err(Disconnected),
            Some(Err(_)) => {
                self.close(close_code::SIZE, "message is not valid or too large").await;
                return Err(Disconnected);
            }
        };
        let answer = match request {
            Ok(request) => self.work(move |follower| follower.handle(request)).await?,
            Err(why) => Some(refusal(&why, 400, None, None)),
        };
        match answer {
            Some(answer) => self.send_json(&answer).await,
            None => Ok(()),
        }
    }

    /// Sends new events; `true` if there may be more at once.
    async fn send_events(&mut self, notified: bool) -> Result<bool, Disconnected> {
        if self.follower.as_ref().is_none_or(Follower::is_idle) {
            return Ok(false);
        }
        let (events, more) = self.work(move |follower| follower.poll(notified)).await?;
        for event in &events {
            self.send_json(event).await?;
        }
        Ok(more)
    }

    /// Runs work that may block on the store.
    async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Follower) -> T + Send + 'static,
    ) -> Result<T, Disconnected> {
        let mut follower = self.follower.take().ok_or(Disconnected)?;
        let worked = spawn_blocking(move || {
            let done = work(&mut follower);
            (follower, done)
        });
        let (follower, done) = worked.await.map_err(|_| Disconnected)?;
        self.follower = Some(follower);
        Ok(done)
    }

    async fn send_json(&mut self, message: &Value) -> Result<(), Disconnected> {
        self.send(Message::Text(message.to_string().into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Disconnected> {
        match timeout(self.api.patience(), self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Disconnected),
        }
    }

    async fn close(&mut self, code: u16, reason: &'static str) {
        let reason = reason.into();
        let frame = CloseFrame { code, reason };
        drop(self.send(Message::Close(Some(frame))).await);
    }
}

#[cfg(test)]
mod tests;
