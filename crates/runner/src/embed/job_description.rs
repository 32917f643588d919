//! What a job does: one function for each item, or a workflow as text.

use serde_json::{Map, Value, json};

/// What a job does: one function for each item ([`each`](Self::each)), or a whole workflow
/// ([`workflow`](Self::workflow)).
///
/// The other methods set keys of a job made with `each`, with the same names and values as in a workflow
/// file. They have no effect on a workflow given as text. [`Runner::begin`](super::Runner::begin) checks the
/// description and refuses unknown keys.
#[derive(Clone, Debug)]
pub struct JobDescription {
    pub(super) description: Description,
}

#[derive(Clone, Debug)]
pub(super) enum Description {
    /// A function for each item, with settings of its command, of the map and of the workflow.
    Each { command: Map<String, Value>, map: Map<String, Value>, job: Map<String, Value>, items: Value },
    /// The text of a workflow.
    Text(String),
}

impl JobDescription {
    /// Calls a registered function once for each item.
    ///
    /// A short string names its item; any other item is named by its `id`, or by a fingerprint of its
    /// content.
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

    /// Runs a workflow, given as the text of a workflow file. A command may call a function with
    /// `function: NAME`, or with `function: {name: NAME, with: …}` to give it an input of its own.
    #[must_use]
    pub fn workflow(text: impl Into<String>) -> Self {
        Self { description: Description::Text(text.into()) }
    }

    /// Sets how many items run at the same time, as `max_parallel` does in a file. The default is 10.
    #[must_use]
    pub fn max_parallel(self, many: u32) -> Self {
        self.of_map("max_parallel", many)
    }

    /// Sets the retry policy: a `retry_config` as in a workflow file.
    #[must_use]
    pub fn retry(self, config: impl Into<Value>) -> Self {
        self.of_command("retry_config", config)
    }

    /// Sets a key of the command, such as `timeout` or `breaker`.
    #[must_use]
    pub fn of_command(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Description::Each { command, .. } = &mut self.description {
            command.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Sets a key of the map, such as `sort_by`.
    #[must_use]
    pub fn of_map(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Description::Each { map, .. } = &mut self.description {
            map.insert(key.to_owned(), value.into());
        }
        self
    }

    /// Sets a key of the workflow, such as `retry_budget`.
    #[must_use]
    pub fn of_job(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Description::Each { job, .. } = &mut self.description {
            job.insert(key.to_owned(), value.into());
        }
        self
    }

    /// The text of the workflow. `items` is the file of the items of an `each` job.
    pub(super) fn text(&self, items: &str) -> String {
        let (command, map, job) = match &self.description {
            Description::Text(text) => return text.clone(),
            Description::Each { command, map, job, .. } => (command, map, job),
        };
        let mut map = map.clone();
        // In a path, `${` would begin a template.
        let items = items.replace("${", "$${");
        map.insert("input".to_owned(), json!({"file": items, "format": "json"}));
        map.insert("agent_template".to_owned(), json!([command]));
        let mut job = job.clone();
        job.insert("mode".to_owned(), "mapreduce".into());
        job.insert("map".to_owned(), map.into());
        Value::Object(job).to_string()
    }

    /// Whether the stored workflow was made from this description, whatever the path of its item file.
    pub(super) fn is(&self, stored: &str) -> bool {
        if let Description::Text(text) = &self.description {
            return text == stored;
        }
        let without_path = |text: &str| {
            let mut workflow: Value = serde_json::from_str(text).unwrap_or_default();
            if let Some(file) = workflow.pointer_mut("/map/input/file") {
                *file = Value::Null;
            }
            workflow
        };
        without_path(&self.text("")) == without_path(stored)
    }

    /// The content of the item file of an `each` job.
    pub(super) fn items(&self) -> Option<String> {
        match &self.description {
            Description::Each { items, .. } => Some(items.to_string()),
            Description::Text(_) => None,
        }
    }
}
