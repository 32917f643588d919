//! A process that runs flows, to be killed by tests of this crate. Not part of any product.
//!
//! `test-host FOLDER` opens the store in the folder. Every line of its input is a request and is answered by
//! a line: `{"start": {"id", "goals", "init"}}`, `{"deliver": {"flow", "step", "token", "result"}}` or
//! `"recover"`. It runs until its input ends, or until it is
//! killed.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use undaunted_engine::workflow::Operator;
use undaunted_runner::catalog::CatalogHandle;
use undaunted_runner::drive::{NoJobObserver, Services};
use undaunted_runner::endpoints::Endpoints;
use undaunted_runner::flows::{FlowHost, FlowSubmission, HostSettings};
use undaunted_runner::folder::LocalFolder;
use undaunted_runner::machine::LocalMachine;
use undaunted_runner::request::ArrivedResult;
use undaunted_store::{SqliteStore, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("no folder")?;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder)?);
    let catalog = CatalogHandle::open(Arc::clone(&store))?;
    let services = Services {
        store,
        local: LocalFolder::new(folder),
        machine: Arc::new(LocalMachine::default()),
        grace: Duration::from_secs(1),
        check_interval: Duration::from_secs(5),
        catalog: None,
        endpoints: Endpoints::default(),
        env: Vec::new(),
    };
    let settings = HostSettings {
        operator: Operator::default(),
        webhooks: "http://nowhere".to_owned(),
        release: "test".to_owned(),
        directory: "/".to_owned(),
        watch: Box::new(|_| Box::new(NoJobObserver)),
        left: Box::new(|_, _| {}),
    };
    let host = FlowHost::begin(services, catalog, settings);
    for line in std::io::stdin().lock().lines() {
        let answer = answer(&host, &serde_json::from_str(&line?)?);
        writeln!(std::io::stdout(), "{answer}")?;
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn answer(host: &FlowHost, asked: &Value) -> Value {
    match asked.as_str() {
        Some("recover") => match host.recover() {
            Ok(found) => json!({"resumed": found.resumed, "owned": found.owned}),
            Err(error) => json!({"error": error.to_string()}),
        },
        _ if asked.get("deliver").is_some() => {
            let text = |key: &str| {
                let found = asked.get("deliver").and_then(|asked| asked.get(key)?.as_str());
                found.unwrap_or_default().to_owned()
            };
            let arrived =
                ArrivedResult { step: text("step"), token: text("token"), result: Ok(text("result")) };
            match host.deliver(&text("flow"), &arrived) {
                Some(outcome) => json!({"delivered": format!("{outcome:?}")}),
                None => json!({"error": "not delivered"}),
            }
        }
        _ => match host.start(&wanted(&asked["start"])) {
            Ok(begun) => json!({"begun": format!("{begun:?}")}),
            Err(error) => json!({"error": error.to_string()}),
        },
    }
}

fn wanted(asked: &Value) -> FlowSubmission {
    let goals = asked["goals"].as_array().into_iter().flatten();
    FlowSubmission {
        id: asked["id"].as_str().unwrap_or_default().to_owned(),
        goals: goals.filter_map(|goal| Some(goal.as_str()?.to_owned())).collect(),
        init: asked["init"].as_object().cloned().unwrap_or_default(),
        ..FlowSubmission::default()
    }
}
