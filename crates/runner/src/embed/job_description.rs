//! The work of a job: a workflow, put together or written.

use serde_json::{Map, Value, json};

/// What a job is to do.
#[derive(Clone, Debug)]
pub struct JobDescription {
    pub(super) description: Description,
}

#[derive(Clone, Debug)]
pub(super) enum Description {
    /// A function for each item.
    Each { command: Map<String, Value>, map: Map<String, Value>, job: Map<String, Value>, items: Value },
    /// The text of a workflow.
    Text(String),
}

impl JobDescription {
    /// Calls a function once for each item. Items that are texts are called by what they say; the others
    /// by their `id`, or by what they hold.
    #[must_use]
    pub fn each<I>(function: &str, items: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<Value>,
    {
        let command = [("function".to_owned(), Value::from(function))];
        Self {
            description: Description::Each {
                command: command.into_iter().collect(),
                map: Map::new(),
                job: Map::new(),
                items: items.into_iter().map(Into::into).collect(),
            },
        }
    }

    /// A workflow in the language of workflow files, whose commands may be `function: NAME`, or
    /// `function: {name: NAME, with: …}`.
    #[must_use]
    pub fn workflow(text: impl Into<String>) -> Self {
        Self { description: Description::Text(text.into()) }
    }

    /// How many items are worked on at a time (10 if nobody says).
    #[must_use]
    pub fn at_once(self, many: u32) -> Self {
        self.of_map("max_parallel", many)
    }

    /// How attempts that fail are retried: a `retry_config`.
    #[must_use]
    pub fn retry(self, config: impl Into<Value>) -> Self {
        self.of_command("retry_config", config)
    }

    /// Any other key of the command. A written workflow has its own.
    #[must_use]
    pub fn of_command(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Description::Each { command, .. } = &mut self.description {
            command.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Any other key of the map. A written workflow has its own.
    #[must_use]
    pub fn of_map(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Description::Each { map, .. } = &mut self.description {
            map.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Any other key of the workflow, such as `retry_budget`. A written workflow has its own.
    #[must_use]
    pub fn of_job(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Description::Each { job, .. } = &mut self.description {
            job.insert(key.to_owned(), value.into());
        }
        self
    }

    /// The text of the workflow, whose items are in this file if it does not say itself.
    pub(super) fn text(&self, items: &str) -> String {
        let (command, map, job) = match &self.description {
            Description::Text(text) => return text.clone(),
            Description::Each { command, map, job, .. } => (command, map, job),
        };
        let mut map = map.clone();
        // In a path, this would be the beginning of a template.
        let items = items.replace("${", "$${");
        map.insert("input".to_owned(), json!({"file": items, "format": "json"}));
        map.insert("agent_template".to_owned(), json!([command]));
        let mut job = job.clone();
        job.insert("mode".to_owned(), "mapreduce".into());
        job.insert("map".to_owned(), map.into());
        Value::Object(job).to_string()
    }

    /// Whether this is the work that was stored, wherever its items were kept then.
    pub(super) fn is(&self, stored: &str) -> bool {
        if let Description::Text(text) = &self.description {
            return text == stored;
        }
        let plain = |text: &str| {
            let mut work: Value = serde_json::from_str(text).unwrap_or_default();
            if let Some(file) = work.pointer_mut("/map/input/file") {
                *file = Value::Null;
            }
            work
        };
        plain(&self.text("")) == plain(stored)
    }

    /// The items, as they are kept.
    pub(super) fn items(&self) -> Option<String> {
        match &self.description {
            Description::Each { items, .. } => Some(items.to_string()),
            Description::Text(_) => None,
        }
    }
}
