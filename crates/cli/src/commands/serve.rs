//! `undaunted serve`: runs flows for clients over HTTP.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Result;
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
use undaunted_runner::{breakers, with_causes};
use undaunted_server::{Access, ChangeSignal, HttpServer, LogWriter, Metrics, Served, ServerSettings, Watch};
use undaunted_store::StoreError;

use crate::environment;
use crate::exit::{CommandError, Exit};
use crate::jobs::Jobs;
use crate::webhooks::{USUAL, base_url};

use super::run::current_directory;

/// How often the server looks for flows whose owner has died.
const TAKE_OVER: Duration = Duration::from_secs(5);

/// Where to listen, and for whom.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted serve
  undaunted serve --listen 127.0.0.1:7070 --allow-endpoint 'http://127.0.0.1:*'
  UNDAUNTED_TOKEN=… undaunted serve --listen 0.0.0.0:7070 --public-url https://flows.example.com

Flows that were under way are gone on with. Ctrl-C lets calls that are under way finish and
suspends the flows; a second one ends them at once. Logs are JSON, on standard error.")]
pub(crate) struct ServeArgs {
    /// The address to listen at; one that others reach needs a token
    #[arg(long, value_name = "ADDRESS", default_value = USUAL)]
    listen: String,

    /// The address others know this server by; the webhook addresses it hands out begin with it
    /// [default: `$WEBHOOK_BASE_URL`, or where it listens]
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// The file that holds the token others have to show [default: the value of `$UNDAUNTED_TOKEN`]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Addresses steps may have, with `*` for any text; all of them, if none is given
    #[arg(long, value_name = "PATTERN")]
    allow_endpoint: Vec<String>,

    /// Give HTTP steps that do not say `breaker` one for the origin they call
    #[arg(long)]
    breaker_per_origin: bool,

    /// What is logged: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: LogLevel,
}

fn level(word: &str) -> Result<LogLevel, String> {
    LogLevel::of(word).ok_or_else(|| format!("`{word}` is not error, warn, info or debug"))
}

/// The time between two tries to resume flows during an outage of the store.
const AGAIN: Duration = Duration::from_secs(1);

enum Told {
    Signal,
    /// Why the store cannot be used any more.
    StoreLost(String),
}

pub(crate) fn run(store: Option<&Path>, args: &ServeArgs) -> Result<Exit> {
    let operator = Operator { breaker_per_origin: args.breaker_per_origin, ..environment::operator()? };
    let endpoints = Endpoints::of(args.allow_endpoint.iter().map(String::as_str));
    let endpoints = endpoints.map_err(|wrong| CommandError::Usage(wrong.to_string()))?;
    let public = base_url(args.public_url.as_deref())?;
    let (address, access) = place(args, public.as_deref())?;
    let directory = current_directory()?;
    let jobs = Jobs::open(store)?;
    let listener = TcpListener::bind(address).map_err(|error| CommandError::Store {
        message: format!("nobody can listen at {address}: {error}"),
        help: Some("--listen names another address".to_owned()),
    })?;
    let address = listener.local_addr()?;
    let watch = Watch {
        store: Arc::clone(&jobs.store),
        metrics: Arc::new(Metrics::default()),
        log: LogWriter::of(args.log_level),
        news: ChangeSignal::default(),
    };
    let (tell, told) = channel();
    let watching = watch.clone();
    let settings = HostSettings {
        operator,
        webhooks: public.unwrap_or_else(|| format!("http://{address}")),
        release: env!("CARGO_PKG_VERSION").to_owned(),
        directory,
        watch: Box::new(move |_| Box::new(watching.clone())),
        left: left(watch.clone(), tell.clone()),
    };
    let mut world = jobs.world()?;
    world.endpoints = endpoints;
    let host = Arc::new(FlowHost::begin(world, jobs.book()?, settings));
    let signals = listen_for_signals(tell.clone())?;
    restore_breakers(&jobs, &watch.metrics)?;
    let what =
        Served { host: Arc::clone(&host), metrics: Arc::clone(&watch.metrics), news: watch.news.clone() };
    let manner = ServerSettings { access, ..ServerSettings::default() };
    let server = HttpServer::start(listener, manner, what)?;
    announce(address)?;
    recover(&host, &watch.log, &tell);
    let exit = attend(&host, &watch.log, &told);
    signals.close();
    drop(server);
    watch.log.finish();
    exit
}

/// For the caller, which may not know the port.
fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening at http://{address}")?;
    out.flush()
}

fn place(args: &ServeArgs, public: Option<&str>) -> Result<(SocketAddr, Access), CommandError> {
    let address: SocketAddr = args
        .listen
        .parse()
        .map_err(|_| CommandError::Usage(format!("`{}` is not an address such as {USUAL}", args.listen)))?;
    let access = access(args, public)?;
    match access.may_listen(address.ip()) {
        Ok(()) => Ok((address, access)),
        Err(why) => Err(CommandError::Usage(format!(
            "{why}\n  help: set UNDAUNTED_TOKEN or give --token-file, or listen at 127.0.0.1"
        ))),
    }
}

fn access(args: &ServeArgs, public: Option<&str>) -> Result<Access, CommandError> {
    let token = match &args.token_file {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                CommandError::Usage(format!("the token cannot be read from `{}`: {error}", path.display()))
            })?;
            Some(text.trim().to_owned())
        }
        None => environment::secret("UNDAUNTED_TOKEN")?,
    };
    Ok(match token {
        Some(token) => Access::by_token(token),
        None => Access::local(public),
    })
}

/// Called for each flow that the event loop leaves.
fn left(watch: Watch, tell: Sender<Told>) -> undaunted_runner::flows::HearLeft {
    Box::new(move |flow: &str, how: &JobResult| {
        watch.metrics.leave(flow);
        watch.news.notify();
        let Err(error) = how else { return };
        let why = with_causes(error);
        let fields = vec![("job", json!(flow)), ("error", json!(&why))];
        say(&watch.log, LogLevel::Error, "a flow cannot be gone on with", fields);
        if is_lost(error) {
            // If the receiver is gone, the process is about to end.
            drop(tell.send(Told::StoreLost(why)));
        }
    })
}

/// Whether nothing can be written until the store is opened again.
const fn is_lost(error: &DriveError) -> bool {
    matches!(error.of_store(), Some(StoreError::MustReopen { .. }))
}

/// Resumes flows in the background, while requests are already answered.
fn recover(host: &Arc<FlowHost>, log: &LogWriter, tell: &Sender<Told>) {
    let (host, log, tell) = (Arc::clone(host), log.clone(), tell.clone());
    std::thread::spawn(move || {
        loop {
            match host.recover() {
                Ok(recovered) => tell_recovered(&log, "flows are gone on with", &recovered),
                Err(error) if error.outage().is_some() => {
                    std::thread::sleep(AGAIN);
                    continue;
                }
                // If the receiver is gone, the process is about to end.
                Err(error) => drop(tell.send(Told::StoreLost(with_causes(&error)))),
            }
            return;
        }
    });
}

/// The metrics of breakers start with their stored states.
fn restore_breakers(jobs: &Jobs, metrics: &Metrics) -> Result<(), CommandError> {
    let listed = breakers::list(&*jobs.store)?;
    for (name, journal) in listed {
        metrics.found_breaker(&name, journal.state.breaker.circuit());
    }
    Ok(())
}

fn listen_for_signals(tell: Sender<Told>) -> Result<signal_hook::iterator::Handle> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    std::thread::spawn(move || {
        for (heard, _) in (1_u32..).zip(signals.forever()) {
            if heard > 2 || tell.send(Told::Signal).is_err() {
                // The third signal works like `kill -9`: nothing recorded is lost.
                std::process::exit(130);
            }
        }
    });
    Ok(handle)
}

/// Runs until a signal arrives, or the store is lost, and every flow was left.
fn attend(host: &Arc<FlowHost>, log: &LogWriter, told: &Receiver<Told>) -> Result<Exit> {
    let mut after = String::new();
    let lost = loop {
        match told.recv_timeout(TAKE_OVER) {
            Err(RecvTimeoutError::Timeout) => match host.take_over(&mut after) {
                Ok(taken) => tell_recovered(log, "flows were taken over", &taken),
                Err(error) => {
                    let why = vec![("error", json!(with_causes(&error)))];
                    say(log, LogLevel::Error, "flows cannot be looked for", why);
                }
            },
            Ok(Told::StoreLost(why)) => break Some(why),
            Ok(Told::Signal) | Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    say(log, LogLevel::Info, "flows are being suspended", Vec::new());
    host.interrupt();
    let (done, ended) = channel::<()>();
    let waiting = Arc::clone(host);
    std::thread::spawn(move || {
        waiting.wait();
        drop(done);
    });
    let mut insisted = false;
    // Nothing is ever sent: it waits until the sender is dropped.
    while ended.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
        if let Ok(Told::Signal) = told.try_recv() {
            insisted = true;
            host.interrupt();
        }
    }
    match lost {
        Some(message) => Err(CommandError::Store {
            message,
            help: Some("nothing that was recorded is lost; start it again".to_owned()),
        }
        .into()),
        None if insisted => Ok(Exit::Interrupted),
        None => Ok(Exit::Done),
    }
}

fn tell_recovered(log: &LogWriter, what: &str, recovered: &RecoveredFlows) {
    for (flow, why) in &recovered.broken {
        let fields = vec![("job", json!(flow)), ("error", json!(why))];
        say(log, LogLevel::Error, "a flow cannot be gone on with", fields);
    }
    for flow in &recovered.repaired {
        let fields = vec![("job", json!(flow))];
        say(log, LogLevel::Warn, "a flow was missing from the catalog", fields);
    }
    if *recovered != RecoveredFlows::default() {
        let fields = vec![
            ("resumed", json!(recovered.resumed.len())),
            ("repaired", json!(recovered.repaired.len())),
            ("owned_by_others", json!(recovered.owned.len())),
            ("broken", json!(recovered.broken.len())),
        ];
        say(log, LogLevel::Info, what, fields);
    }
}

fn say(log: &LogWriter, level: LogLevel, what: &str, fields: Vec<(&'static str, Value)>) {
    log.write(&[LogRecord {
        at: Clock::set().now(),
        level,
        what: LogBody::Message(what.to_owned()),
        fields,
    }]);
}
