//! `undaunted serve`: serves the flow API over HTTP and runs its flows.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use undaunted_engine::view::log::{LogBody, LogLevel, LogRecord};
use undaunted_engine::workflow::Operator;
use undaunted_runner::clock::Clock;
use undaunted_runner::drive::{DriveError, JobResult};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::flows::{FlowHost, HostSettings, RecoveredFlows};
use undaunted_runner::with_causes;
use undaunted_server::{
    Access, AllowedOrigins, HttpServer, LogWriter, Served, ServerSettings, StoreWatch, Watch,
};
use undaunted_store::StoreError;

use super::run::current_directory;
use crate::webhooks::{DEFAULT_ADDRESS, base_url};
use crate::{CommandError, Exit, Jobs, Result, environment};

/// How often the server looks for flows whose owner has died.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted serve
  undaunted serve --listen 127.0.0.1:7070 --allow-endpoint 'http://127.0.0.1:*'
  UNDAUNTED_TOKEN=… undaunted serve --listen 0.0.0.0:7070 --public-url https://flows.example.com

Interrupted flows resume when the server starts. Ctrl-C lets running calls finish and suspends the
flows; a second Ctrl-C stops them now. Logs are JSON on standard error.")]
pub(crate) struct ServeArgs {
    /// Listen on this address; one that other machines can reach requires a token
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS)]
    listen: String,

    /// Base URL of this server for clients and webhooks [default: `$WEBHOOK_BASE_URL`, or the listen address]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// Read the access token from this file [default: the value of `$UNDAUNTED_TOKEN`]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Allow steps to call only URLs that match this pattern, with `*` for any text; repeatable [default: all]
    #[arg(long, value_name = "PATTERN")]
    allow_endpoint: Vec<String>,

    /// Allow pages of this origin, such as `http://localhost:3000`, to use the API; repeatable [default: none]
    #[arg(long, value_name = "URL")]
    allow_origin: Vec<String>,

    /// Give every HTTP step without a `breaker` setting one for its origin
    #[arg(long)]
    breaker_per_origin: bool,

    /// Log level: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: LogLevel,
}

fn level(word: &str) -> Result<LogLevel, String> {
    LogLevel::of(word).ok_or_else(|| "must be error, warn, info or debug".to_owned())
}

/// The time between two attempts to resume flows during an outage of the store.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
enum ServeStop {
    Signal,
    /// The store must be opened again; the text is its error.
    StoreLost(String),
}

pub(crate) fn run(store: Option<&Path>, args: &ServeArgs) -> Result<Exit> {
    let operator = Operator { breaker_per_origin: args.breaker_per_origin, ..environment::operator()? };
    let endpoints = Endpoints::of(args.allow_endpoint.iter().map(String::as_str));
    let endpoints = endpoints.map_err(|wrong| CommandError::Usage(wrong.to_string()))?;
    let public = base_url(args.public_url.as_deref())?;
    let (address, access) = listen_address(args, public.as_deref())?;
    let directory = current_directory()?;
    let jobs = Jobs::open(store)?;
    let listener = TcpListener::bind(address).map_err(|error| CommandError::Store {
        message: format!("cannot listen on {address}: {error}"),
        help: Some("choose another address with --listen".to_owned()),
    })?;
    let address = listener.local_addr()?;
    let watch = Watch::of(Arc::clone(&jobs.store), LogWriter::of(args.log_level));
    let (stop, stops) = channel();
    let watching = watch.clone();
    let settings = HostSettings {
        operator,
        webhooks: public.unwrap_or_else(|| format!("http://{address}")),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        directory,
        watch: Box::new(move |_| Box::new(watching.clone())),
        left: left(watch.clone(), stop.clone()),
    };
    let mut services = jobs.services()?;
    services.endpoints = endpoints;
    let host = Arc::new(FlowHost::begin(services, jobs.catalog()?, settings));
    let signals = listen_for_signals(stop.clone())?;
    let others = StoreWatch::start(watch.clone(), jobs.local.clone())?;
    let shared = Served {
        host: Arc::clone(&host),
        metrics: Arc::clone(&watch.metrics),
        changes: watch.changes.clone(),
        others: Some(Arc::new(others)),
    };
    let settings = ServerSettings { access, ..ServerSettings::default() };
    let server = HttpServer::start(listener, settings, shared)?;
    announce(address)?;
    recover(&host, &watch.log, &stop);
    let exit = wait(&host, &watch.log, &stops);
    signals.close();
    drop(server);
    watch.log.finish();
    exit
}

/// Prints the address for a caller that does not know the port.
fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on http://{address}")?;
    out.flush()
}

fn listen_address(args: &ServeArgs, public: Option<&str>) -> Result<(SocketAddr, Access)> {
    let address: SocketAddr = args.listen.parse().map_err(|_| {
        CommandError::Usage(format!(
            "--listen must be an address such as {DEFAULT_ADDRESS}, not `{}`",
            args.listen
        ))
    })?;
    let access = access(args, public)?;
    match access.may_listen(address.ip()) {
        Ok(()) => Ok((address, access)),
        Err(why) => Err(CommandError::Usage(format!(
            "{why}\n  help: set UNDAUNTED_TOKEN, pass --token-file, or listen on 127.0.0.1"
        ))),
    }
}

fn access(args: &ServeArgs, public: Option<&str>) -> Result<Access> {
    let token = match &args.token_file {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                CommandError::Usage(format!("cannot read the token from `{}`: {error}", path.display()))
            })?;
            Some(text.trim().to_owned())
        }
        None => environment::secret("UNDAUNTED_TOKEN")?,
    };
    let origins = AllowedOrigins::of(args.allow_origin.iter().map(String::as_str));
    let origins = origins.map_err(|wrong| CommandError::Usage(format!("--allow-origin {wrong}")))?;
    let access = match token {
        Some(token) => Access::by_token(token),
        None => Access::local(public),
    };
    Ok(access.with_origins(origins))
}

/// Called for each flow that the event loop leaves.
fn left(watch: Watch, stop: Sender<ServeStop>) -> undaunted_runner::flows::OnFlowLeft {
    Box::new(move |flow: &str, how: &JobResult| {
        watch.left(flow);
        let Err(error) = how else { return };
        let why = with_causes(error);
        let fields = vec![("job", json!(flow)), ("error", json!(&why))];
        write_log(&watch.log, LogLevel::Error, "flow cannot be resumed", fields);
        if is_lost(error) {
            // Without a receiver the process is about to end.
            drop(stop.send(ServeStop::StoreLost(why)));
        }
    })
}

/// Whether nothing can be written until the store is opened again.
const fn is_lost(error: &DriveError) -> bool {
    matches!(error.of_store(), Some(StoreError::MustReopen { .. }))
}

/// Resumes flows in the background, while requests are already answered.
fn recover(host: &Arc<FlowHost>, log: &LogWriter, stop: &Sender<ServeStop>) {
    let (host, log, stop) = (Arc::clone(host), log.clone(), stop.clone());
    std::thread::spawn(move || {
        loop {
            match host.recover() {
                Ok(recovered) => log_recovered(&log, "resumed flows", &recovered),
                Err(error) if error.outage().is_some() => {
                    std::thread::sleep(RETRY_INTERVAL);
                    continue;
                }
                // Without a receiver the process is about to end.
                Err(error) => drop(stop.send(ServeStop::StoreLost(with_causes(&error)))),
            }
            return;
        }
    });
}

fn listen_for_signals(stop: Sender<ServeStop>) -> Result<signal_hook::iterator::Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    std::thread::spawn(move || {
        for (received, _) in (1_u32..).zip(signals.forever()) {
            if received > 2 || stop.send(ServeStop::Signal).is_err() {
                // The third signal works like `kill -9`: nothing recorded is lost.
                std::process::exit(130);
            }
        }
    });
    Ok(handle)
}

/// Waits for a signal or the loss of the store, and then for every flow to be suspended.
fn wait(host: &Arc<FlowHost>, log: &LogWriter, stops: &Receiver<ServeStop>) -> Result<Exit> {
    let mut after = String::new();
    let lost = loop {
        match stops.recv_timeout(RECOVERY_INTERVAL) {
            Err(RecvTimeoutError::Timeout) => match host.resume_orphans(&mut after) {
                Ok(taken) => log_recovered(log, "resumed flows of dead owners", &taken),
                Err(error) => {
                    let why = vec![("error", json!(with_causes(&error)))];
                    write_log(log, LogLevel::Error, "cannot look for flows of dead owners", why);
                }
            },
            Ok(ServeStop::StoreLost(why)) => break Some(why),
            Ok(ServeStop::Signal) | Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    write_log(log, LogLevel::Info, "suspending flows", Vec::new());
    host.interrupt();
    let (done, ended) = channel::<()>();
    let waiting = Arc::clone(host);
    std::thread::spawn(move || {
        waiting.wait();
        drop(done);
    });
    let mut insisted = false;
    // Nothing is ever sent: this waits until the thread drops the sender.
    while ended.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
        if let Ok(ServeStop::Signal) = stops.try_recv() {
            insisted = true;
            host.interrupt();
        }
    }
    match lost {
        Some(message) => Err(CommandError::Store {
            message,
            help: Some("nothing recorded is lost; start the server again".to_owned()),
        }),
        None if insisted => Ok(Exit::Interrupted),
        None => Ok(Exit::Done),
    }
}

fn log_recovered(log: &LogWriter, message: &str, recovered: &RecoveredFlows) {
    for (flow, why) in &recovered.broken {
        let fields = vec![("job", json!(flow)), ("error", json!(why))];
        write_log(log, LogLevel::Error, "flow cannot be resumed", fields);
    }
    for flow in &recovered.repaired {
        let fields = vec![("job", json!(flow))];
        write_log(log, LogLevel::Warn, "flow was missing from the catalog", fields);
    }
    if *recovered != RecoveredFlows::default() {
        let fields = vec![
            ("resumed", json!(recovered.resumed.len())),
            ("repaired", json!(recovered.repaired.len())),
            ("owned_by_others", json!(recovered.owned.len())),
            ("broken", json!(recovered.broken.len())),
        ];
        write_log(log, LogLevel::Info, message, fields);
    }
}

fn write_log(log: &LogWriter, level: LogLevel, message: &str, fields: Vec<(&'static str, Value)>) {
    let what = LogBody::Message(message.to_owned());
    log.write(&[LogRecord { at: Clock::set().now(), level, what, fields }]);
}
