//! Functions: commands that are async functions of the program that runs the job.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::runtime::Handle;
use undaunted_engine::id::StartId;
use undaunted_engine::input::AttemptEnd;
use undaunted_engine::task::FunctionCall;
use undaunted_policy::{FailureCause, FailureClass};

use super::answer::prefix;
use super::{ExecutorMessage, MOST, SHOWN, failed};
use crate::{CancelCall, Notifier, Secrets};

/// What a registered function returns: the output of its command, or why the attempt failed.
pub type FunctionResult = Result<Value, FunctionFailure>;

type FunctionFuture = Pin<Box<dyn Future<Output = FunctionResult> + Send>>;
type Function = Arc<dyn Fn(FunctionAttempt) -> FunctionFuture + Send + Sync>;

/// One attempt of a command, passed to its function.
#[derive(Clone, Debug)]
pub struct FunctionAttempt {
    call: Box<FunctionCall>,
}

/// Why an attempt of a function failed, and whether trying again can help.
///
/// Any error converts into a transient failure, with its causes in the text, so functions can use `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionFailure {
    class: FailureClass,
    error: String,
    retry_after: Option<Duration>,
}

/// The functions of a program, by the names that commands call them by.
#[derive(Clone, Default)]
pub struct Functions {
    known: BTreeMap<String, Function>,
}

pub struct FunctionOrder {
    pub start: StartId,
    pub call: Box<FunctionCall>,
    pub timeout: Option<Duration>,
    /// In bytes, of its output.
    pub output_limit: Option<u64>,
    pub secrets: Secrets,
}

impl FunctionAttempt {
    /// Deserializes the input of the function: the item, or the value of `with` in a workflow.
    ///
    /// # Errors
    ///
    /// Returns a permanent failure if the input is not of this type, since a retry would get the same input.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, FunctionFailure> {
        let read = serde_json::from_str(&self.call.input);
        read.map_err(|error| FunctionFailure::permanent(format!("cannot deserialize the input: {error}")))
    }

    /// The input as JSON text.
    pub fn input_text(&self) -> &str {
        &self.call.input
    }

    /// The name of the item.
    pub fn item(&self) -> &str {
        &self.call.item
    }

    /// The number of this attempt, counted from 1. A crash does not reset it.
    pub const fn number(&self) -> u32 {
        self.call.attempt
    }

    /// A token that is the same for all attempts of this command for this item. Pass it to services as an
    /// idempotency key, so that they can recognise work that is repeated after a crash.
    pub fn receipt_token(&self) -> &str {
        &self.call.receipt_token
    }
}

impl FunctionFailure {
    /// A failure that may not happen the next time. It is retried.
    pub fn transient(error: impl Into<String>) -> Self {
        Self { class: FailureClass::Transient, error: error.into(), retry_after: None }
    }

    /// A failure that would happen every time. It is not retried.
    pub fn permanent(error: impl Into<String>) -> Self {
        Self { class: FailureClass::Permanent, ..Self::transient(error) }
    }

    /// A failure because a service asks for fewer calls. It is retried, after `retry_after` at the earliest.
    pub fn throttled(error: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self { class: FailureClass::Throttled, retry_after, ..Self::transient(error) }
    }
}

impl<E: std::error::Error> From<E> for FunctionFailure {
    fn from(error: E) -> Self {
        Self::transient(crate::with_causes(&error))
    }
}

impl Functions {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a function. The value it returns is the output of its command: a string as it is, `null` as
    /// an empty output, any other value as JSON text.
    #[must_use]
    pub fn with<F, R>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(FunctionAttempt) -> R + Send + Sync + 'static,
        R: Future<Output = FunctionResult> + Send + 'static,
    {
        let function: Function = Arc::new(move |attempt| Box::pin(function(attempt)));
        self.known.insert(name.into(), function);
        self
    }

    /// Whether a function of this name is registered.
    pub fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }
    pub(crate) fn call(&self, runtime: &Handle, order: FunctionOrder, notifier: Notifier) -> CancelCall {
        let function = self.known.get(&order.call.name).cloned();
        let mut reporter = EndReporter { start: order.start, notifier: Some(notifier) };
        let task = runtime.spawn(async move {
            let end = attempt(function, order).await;
            reporter.report(end);
        });
        let task = task.abort_handle();
        Box::new(move || task.abort())
    }
}

/// Reports the end of an attempt even if its call is dropped, because its runtime was shut down or a
/// destructor panicked.
struct EndReporter {
    start: StartId,
    notifier: Option<Notifier>,
}

impl EndReporter {
    fn report(&mut self, end: AttemptEnd) {
        if let Some(notifier) = self.notifier.take() {
            notifier.send(ExecutorMessage::Ended(Box::new(end)));
        }
    }
}

impl Drop for EndReporter {
    fn drop(&mut self) {
        let error = "the call was dropped before it finished";
        self.report(failed(self.start, FailureCause::Interrupted, error));
    }
}

impl std::fmt::Debug for Functions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

async fn attempt(function: Option<Function>, order: FunctionOrder) -> AttemptEnd {
    let (began, start, limit) = (Instant::now(), order.start, order.output_limit);
    let secrets = order.secrets;
    let called = call(function, order.call);
    let outcome = match order.timeout {
        // A timer is large and rare, so it is not part of every future.
        Some(timeout) => Box::pin(tokio::time::timeout(timeout, called)).await,
        None => Ok(called.await),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome.map_err(|failed| (FailureCause::Other(failed.class), failed)),
        Err(late) => Err((FailureCause::Timeout, late.into())),
    };
    let mut end = AttemptEnd { start, took: began.elapsed(), ..AttemptEnd::default() };
    let given = outcome.and_then(|value| text_of(value, limit));
    match given {
        Ok(text) => end.output = Some(secrets.redact(text)),
        Err((cause, failed)) => {
            end.failure = Some(cause);
            // For rules, the error of a function is what a program writes to its error output.
            end.stderr_end = secrets.redact(failed.error);
            prefix(&end.stderr_end, SHOWN).clone_into(&mut end.error);
            end.retry_after = failed.retry_after;
        }
    }
    end
}

async fn call(function: Option<Function>, call: Box<FunctionCall>) -> FunctionResult {
    let Some(function) = function else {
        let why = format!("function `{}` is not registered", call.name);
        return Err(FunctionFailure::permanent(why));
    };
    // It may panic before it returns a future.
    let called = AssertUnwindSafe(|| function(FunctionAttempt { call }));
    match std::panic::catch_unwind(called) {
        Ok(called) => CatchPanic(called).await,
        Err(panic) => Err(panicked(&*panic)),
    }
}

fn text_of(value: Value, limit: Option<u64>) -> Result<String, (FailureCause, FunctionFailure)> {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text,
        value => value.to_string(),
    };
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let most = limit.unwrap_or(MOST);
    if length <= most {
        return Ok(text);
    }
    let failed = FunctionFailure::permanent(format!("the function returned more than {most} bytes"));
    Err((FailureCause::Other(FailureClass::Permanent), failed))
}

/// A call whose panic becomes a failure.
struct CatchPanic(FunctionFuture);

impl Future for CatchPanic {
    type Output = FunctionResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FunctionResult> {
        let polled = AssertUnwindSafe(|| self.0.as_mut().poll(context));
        match std::panic::catch_unwind(polled) {
            Ok(polled) => polled,
            Err(panic) => Poll::Ready(Err(panicked(&*panic))),
        }
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> FunctionFailure {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    FunctionFailure::transient(format!("the function panicked: {}", message.unwrap_or("no message")))
}
