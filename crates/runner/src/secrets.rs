//! Secret values, which must not appear in any record, log or message.
//!
//! They are read when a job is begun or resumed, passed to its commands, and redacted from every text before
//! it reaches the journal.

use std::env;
use std::path::{Path, PathBuf};

use crate::redact::Redaction;
use undaunted_engine::job::Job;
use undaunted_engine::workflow::{SecretSource, Workflow};

#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<(String, String)>,
    /// The job has secrets whose values are not known here.
    withheld: bool,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The variable is not set, or not valid UTF-8.
    #[error("secret `{name}`: the environment variable `{variable}` is not set")]
    Variable { name: String, variable: String },
    #[error("secret `{name}`: cannot read `{}`", path.display())]
    File { name: String, path: PathBuf, source: std::io::Error },
}

impl Secrets {
    /// Reads the secrets of a workflow; paths are relative to `directory`.
    pub fn read(workflow: &Workflow, directory: &Path) -> Result<Self, SecretError> {
        let mut values = Vec::new();
        for (name, secret) in &workflow.secrets {
            let value = match secret {
                SecretSource::Env(variable) => env::var(variable)
                    .map_err(|_| SecretError::Variable { name: name.clone(), variable: variable.clone() })?,
                SecretSource::File(path) => {
                    let path = directory.join(path);
                    let text = std::fs::read_to_string(&path);
                    let text =
                        text.map_err(|source| SecretError::File { name: name.clone(), path, source })?;
                    text.trim_end_matches(['\n', '\r']).to_owned()
                }
            };
            values.push((name.clone(), value));
        }
        Ok(Self { values, withheld: false })
    }

    /// Reads the secrets of a job, with paths relative to its working directory.
    pub(crate) fn of_job(job: &Job) -> Result<Self, SecretError> {
        Self::read(job.workflow(), Path::new(&job.submitted().working_dir))
    }

    /// The values are not known here, so no text of the job may be shown.
    pub const fn withheld() -> Self {
        Self { values: Vec::new(), withheld: true }
    }

    /// Whether an environment variable holds a secret, by its own name or by that of its source.
    pub fn is_named(workflow: &Workflow, variable: &str) -> bool {
        workflow.secrets.iter().any(|(name, secret)| {
            name == variable || matches!(secret, SecretSource::Env(source) if source == variable)
        })
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn from_values(values: Vec<(String, String)>) -> Self {
        Self { values, withheld: false }
    }

    pub(crate) fn values(&self) -> &[(String, String)] {
        &self.values
    }

    /// Redacts a text. `is_rest` if text before it was cut off, perhaps within a secret.
    pub(crate) fn redact(&self, text: String, is_rest: bool) -> String {
        if text.is_empty() || (self.values.is_empty() && !self.withheld) {
            return text;
        }
        if self.withheld {
            return "(hidden, because a secret of the job could not be read)".to_owned();
        }
        let mut redaction = Redaction::of(self);
        if is_rest {
            drop(redaction.gap());
        }
        let mut bytes = redaction.push(text.as_bytes());
        bytes.extend(redaction.finish());
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.values.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}
