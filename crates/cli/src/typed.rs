//! Builds and submits the workflows of `exec` and `map`.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use undaunted_engine::event::OutputPassing;
use undaunted_engine::plan::Plan;
use undaunted_engine::submission::submission;
use undaunted_engine::workflow::{Operator, Severity, Source, check};
use undaunted_policy::PoolCeilings;
use undaunted_runner::clock::Clock;
use undaunted_runner::folder::JobFolder;
use undaunted_runner::journal::{self, ClaimedJob};
use undaunted_runner::keeper::WaitingKeeper;

use crate::commands::run::submission_context;
use crate::jobs::{PreparedJob, name_and_seed};
use crate::{CommandError, Jobs, Result, RetryFlags, StorePlace};

/// The placeholder for the prompt in the arguments of an agent.
const PROMPT: &str = "{prompt}";

pub(crate) struct TypedCommand {
    pub(crate) workflow: Value,
    id: String,
    seed: u64,
    folder: JobFolder,
    prepared: PreparedJob,
    stdin: Option<String>,
}

/// The arguments of an agent, one of which is the prompt placeholder, and the prompt itself. With a `place`
/// (`{}`) the prompt is the item, which replaces `place` or is appended; without one it is one of the words.
fn argv(words: &[String], place: Option<&str>) -> Result<(Vec<String>, String)> {
    if let Some(word) = words.iter().find(|word| word.contains(PROMPT)) {
        return Err(CommandError::Usage(format!(
            "the argument `{word}` must not contain {PROMPT}, which is reserved"
        )));
    }
    let mut argv = words.to_vec();
    let Some(place) = place else {
        // Unlike the other words, a prompt is a template, in which a dollar is special.
        let Some(plain) = argv.iter_mut().find(|word| !word.contains('$')) else {
            return Err(CommandError::Usage(
                "every word of the command contains a `$`; run it with `sh -c`".to_owned(),
            ));
        };
        let prompt = std::mem::replace(plain, PROMPT.to_owned());
        return Ok((argv, prompt));
    };
    if argv.iter().any(|word| word.contains(place)) {
        for word in &mut argv {
            *word = word.replace(place, PROMPT);
        }
    } else {
        argv.push(PROMPT.to_owned());
    }
    Ok((argv, "${item}".to_owned()))
}

/// The arguments of the agent `program`, and the command that calls it.
pub(crate) fn command(
    words: &[String],
    place: Option<&str>,
    retry: &RetryFlags,
    ceilings: &PoolCeilings,
) -> Result<(Vec<String>, Value)> {
    let (argv, prompt) = argv(words, place)?;
    let mut command = Map::new();
    command.insert("program".to_owned(), prompt.into());
    command.insert("id".to_owned(), name_of(words).into());
    retry.put(&mut command, ceilings);
    Ok((argv, command.into()))
}

/// The name of a program in messages, without its folder.
fn name_of(words: &[String]) -> String {
    let program = words.first().map_or("", String::as_str);
    let name = program.rsplit('/').next().unwrap_or(program);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('-');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name.to_owned() } else { "command".to_owned() }
}

impl TypedCommand {
    pub(crate) fn new(place: &StorePlace, workflow: Value, waiting: Option<WaitingKeeper>) -> Result<Self> {
        let (id, seed) = name_and_seed()?;
        Ok(Self {
            workflow,
            folder: place.local.job(&id),
            prepared: place.prepare(&id, true, waiting),
            seed,
            id,
            stdin: None,
        })
    }

    /// Copies standard input to a file that every attempt reads. Empty input is the same as none.
    pub(crate) fn stdin(&mut self, mut input: impl Read) -> Result<()> {
        let mut first = [0; 1];
        let unread = |error| CommandError::Usage(format!("cannot read standard input: {error}"));
        if input.read(&mut first).map_err(unread)? == 0 {
            return Ok(());
        }
        let path = self.write("stdin", &first)?;
        let file = OpenOptions::new().append(true).open(&path);
        let copied = file.and_then(|mut file| {
            io::copy(&mut input, &mut file)?;
            file.sync_all()
        });
        copied.map_err(|error| CommandError::Store {
            message: format!("cannot store standard input in `{path}`: {error}"),
            help: None,
        })?;
        self.stdin = Some(path);
        Ok(())
    }

    pub(crate) fn items(&mut self, items: &[Value]) -> Result<()> {
        let path = self.write("items.json", json!(items).to_string().as_bytes())?;
        if let Some(file) = self.workflow.pointer_mut("/map/input/file") {
            *file = path.replace("${", "$${").into();
        }
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<String> {
        let path: PathBuf = self.folder.path().join(name);
        self.folder.write(name, bytes).map_err(|error| CommandError::Store {
            message: format!("cannot write `{}`: {error}", path.display()),
            help: None,
        })?;
        Ok(path.display().to_string())
    }

    pub(crate) fn submit(
        self,
        jobs: &Jobs,
        operator: &Operator,
        passing: OutputPassing,
    ) -> Result<(ClaimedJob, JobFolder)> {
        let source = Source::new("command line", self.workflow.to_string());
        let checked = check(&source, operator);
        let Some(workflow) = checked.workflow else {
            let mut found = checked.diagnostics.iter();
            let found = found.find(|it| it.code.severity() == Severity::Error);
            let message = found.map_or_else(String::new, |found| {
                let help = found.help.as_ref().map(|help| format!(" ({help})"));
                format!("{}{}", found.message, help.unwrap_or_default())
            });
            return Err(CommandError::Usage(message));
        };
        let file = format!("-{}", workflow.name.as_deref().unwrap_or_default());
        let variable = |name: &str| env::var(name).ok();
        let context = submission_context(self.id, file, self.seed, operator, &variable)?;
        let submitted = submission(Plan::new(workflow), source.text(), context);
        let mut submitted = submitted.map_err(|unfit| CommandError::Usage(unfit.to_string()))?;
        submitted.stdin = self.stdin;
        submitted.passing = Some(passing);
        self.prepared.submitted();
        let held = journal::submit_ahead(&*jobs.store, submitted, &jobs.plans, Clock::set().now())?;
        Ok((held, self.folder))
    }
}
