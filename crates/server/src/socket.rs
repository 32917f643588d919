//! Events as they happen, over a WebSocket.
//!
//! One task for each socket receives requests, reads new events and sends them. It reads nothing while it
//! cannot send, so a slow client costs no memory; a client that takes nothing at all is disconnected.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use axum::response::Response;
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};

use crate::answer::said;
use crate::api::Api;
use crate::follow::{Follower, refusal};
use crate::listen::ConnectionPermit;
use crate::wish::Subscribe;

const LONGEST: usize = 64 << 10;
/// How often the store is read without a signal.
const LOOK: Duration = Duration::from_millis(200);
const PACE: Duration = Duration::from_millis(10);
/// How often the client is pinged; it counts as gone after two pings without an answer.
const PING: Duration = Duration::from_secs(30);

/// The client has gone, or is to be disconnected.
struct Over;

pub(crate) async fn connect(
    State(api): State<Api>,
    Extension(place): Extension<ConnectionPermit>,
    asked: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    match asked {
        Ok(asked) => {
            asked.max_message_size(LONGEST).max_frame_size(LONGEST).on_upgrade(async move |socket| {
                // It keeps the permit of its connection for as long as it lasts.
                let _place = place;
                Session::of(api, socket).run().await;
            })
        }
        Err(wrong) => said(wrong.status(), &wrong.body_text()),
    }
}

struct Session {
    socket: WebSocket,
    api: Api,
    /// `None` only while a blocking task has it.
    follower: Option<Follower>,
}

impl Session {
    fn of(api: Api, socket: WebSocket) -> Self {
        let follower = Some(Follower::of(api.host()));
        Self { socket, api, follower }
    }

    async fn run(mut self) {
        let mut ending = self.api.ending();
        let mut news = self.api.news().listen();
        let mut looked = Instant::now();
        let mut due = looked.checked_add(LOOK).unwrap_or(looked);
        let mut stirred = false;
        let mut is_told = true;
        let mut ping = Instant::now();
        let mut silent = 0_u32;
        loop {
            let going = tokio::select! {
                heard = self.socket.recv() => {
                    silent = 0;
                    self.hear(heard).await
                }
                told = news.changed(), if is_told && !stirred => {
                    is_told = told.is_ok();
                    stirred = true;
                    due = due.min(looked.checked_add(PACE).unwrap_or(looked));
                    Ok(())
                }
                () = sleep_until(due) => {
                    let more = self.look(stirred).await;
                    looked = Instant::now();
                    stirred = false;
                    let wait = if matches!(more, Ok(true)) { PACE } else { LOOK };
                    due = looked.checked_add(wait).unwrap_or(looked);
                    more.map(|_| ())
                }
                () = sleep_until(ping) => {
                    silent = silent.saturating_add(1);
                    ping = ping.checked_add(PING).unwrap_or(ping);
                    if silent > 2 { Err(Over) } else { self.send(Message::Ping(Vec::new().into())).await }
                }
                () = ending.comes() => {
                    self.close(close_code::AWAY, "the server ends").await;
                    Err(Over)
                }
            };
            if going.is_err() {
                return;
            }
        }
    }

    async fn hear(&mut self, heard: Option<Result<Message, axum::Error>>) -> Result<(), Over> {
        let wish = match heard {
            Some(Ok(Message::Text(text))) => Subscribe::read(&text),
            Some(Ok(Message::Binary(_))) => Err("a message is text".to_owned()),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Close(_))) | None => return Err(Over),
            Some(Err(_)) => {
                self.close(close_code::SIZE, "a message that cannot be taken").await;
                return Err(Over);
            }
        };
        let answer = match wish {
            Ok(wish) => self.work(move |follower| follower.ask(wish)).await?,
            Err(why) => Some(refusal(&why, 400, None, None)),
        };
        match answer {
            Some(answer) => self.tell(&answer).await,
            None => Ok(()),
        }
    }

    /// Sends new events; `true` if there may be more at once.
    async fn look(&mut self, stirred: bool) -> Result<bool, Over> {
        if self.follower.as_ref().is_none_or(Follower::is_idle) {
            return Ok(false);
        }
        let (told, more) = self.work(move |follower| follower.look(stirred)).await?;
        for event in &told {
            self.tell(event).await?;
        }
        Ok(more)
    }

    /// Runs work that may block on the store.
    async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut Follower) -> T + Send + 'static,
    ) -> Result<T, Over> {
        let mut follower = self.follower.take().ok_or(Over)?;
        let worked = spawn_blocking(move || {
            let done = work(&mut follower);
            (follower, done)
        });
        let (follower, done) = worked.await.map_err(|_| Over)?;
        self.follower = Some(follower);
        Ok(done)
    }

    async fn tell(&mut self, message: &Value) -> Result<(), Over> {
        self.send(Message::Text(message.to_string().into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Over> {
        match timeout(self.api.patience(), self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Over),
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
