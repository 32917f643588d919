//! Steps that respond at once, and a client that records nothing.
//!
//! The client is configured like the product's and sends the same headers and a body of the same shape. It only
//! records nothing.

use std::error::Error;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::{StatusCode, header};
use axum::routing::post;
use reqwest::{Client, redirect, retry};
use tokio::runtime::{Builder, Runtime};

/// The response of a successful step.
const DONE: &str = r#"{"success":true,"outputs":{}}"#;

/// Serves until its input ends: `/` succeeds at once, `/busy` always fails. Prints its URL.
pub(crate) fn serve() -> Result<(), Box<dyn Error>> {
    // The parent may die without stopping this process.
    std::thread::spawn(|| {
        let mut nothing = Vec::new();
        drop(std::io::stdin().read_to_end(&mut nothing));
        std::process::exit(0);
    });
    let done = |_: Bytes| async { ([(header::CONTENT_TYPE, "application/json")], DONE) };
    let busy = |_: Bytes| async { StatusCode::SERVICE_UNAVAILABLE };
    let steps = Router::new().route("/", post(done)).route("/busy", post(busy));
    runtime()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        std::io::stdout().flush()?;
        axum::serve(listener, steps).await
    })?;
    Ok(())
}

/// Sends this many requests, `width` of them at a time, and times them.
pub(crate) fn bare(url: &str, width: u32, requests: u32) -> Result<Duration, Box<dyn Error>> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .user_agent("undaunted/0.1.0")
        .build()?;
    let url = reqwest::Url::parse(url)?;
    let next = Arc::new(AtomicU32::new(0));
    let began = Instant::now();
    runtime()?.block_on(async {
        let senders = (0..width).map(|_| {
            let (client, url, next) = (client.clone(), url.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        return Ok(());
                    }
                    send(&client, url.clone(), number).await?;
                }
            })
        });
        let senders: Vec<_> = senders.collect();
        for sender in senders {
            sender.await?.map_err(|error: reqwest::Error| error)?;
        }
        Ok::<_, Box<dyn Error>>(())
    })?;
    Ok(began.elapsed())
}

async fn send(client: &Client, url: reqwest::Url, number: u32) -> Result<(), reqwest::Error> {
    let token = format!("{number:08x}-0000-4000-8000-{number:012x}");
    let body = format!(
        r#"{{"arguments":{{"item":{number}}},"metadata":{{"flow_id":"measured","receipt_token":"{token}","step_id":"measured"}}}}"#
    );
    let sent = client
        .post(url)
        .header("Content-Type", "application/json")
        .header("Idempotency-Key", &token)
        .header("Undaunted-Correlation-Id", &token)
        .body(body)
        .send();
    let mut answer = sent.await?.error_for_status()?;
    while answer.chunk().await?.is_some() {}
    Ok(())
}

/// A runtime with as many threads as the product uses for requests.
fn runtime() -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
