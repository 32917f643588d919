//! Values that no record, log or message may hold.
//!
//! Read when somebody goes on with a job, given to its commands, and taken out of every text on its
//! way to the journal.

use std::env;
use std::path::{Path, PathBuf};

use undaunted_engine::workflow::{Secret, Workflow};

/// The secrets of a job.
#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<(String, String)>,
}

/// Why a secret cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// Its variable is not set, or is not text.
    #[error("the secret {name} is the environment variable {variable}, which is not set")]
    Variable {
        /// The secret.
        name: String,
        /// The variable.
        variable: String,
    },
    /// Its file cannot be read.
    #[error("the secret {name} is in the file `{}`, which cannot be read", path.display())]
    File {
        /// The secret.
        name: String,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

impl Secrets {
    /// Reads the secrets of a workflow; the paths of files begin in `directory`.
    ///
    /// # Errors
    ///
    /// [`SecretError`]
    pub fn read(workflow: &Workflow, directory: &Path) -> Result<Self, SecretError> {
        let mut values = Vec::new();
        for (name, secret) in &workflow.secrets {
            let value = match secret {
                Secret::Env(variable) => env::var(variable).map_err(|_| SecretError::Variable {
                    name: name.clone(),
                    variable: variable.clone(),
                })?,
                Secret::File(path) => {
                    let path = directory.join(path);
                    let text = std::fs::read_to_string(&path);
                    let text = text.map_err(|source| SecretError::File {
                        name: name.clone(),
                        path,
                        source,
                    })?;
                    text.trim_end_matches(['\n', '\r']).to_owned()
                }
            };
            values.push((name.clone(), value));
        }
        // Longer ones first: a secret may begin with another.
        values.sort_by_key(|(_, value): &(String, String)| std::cmp::Reverse(value.len()));
        Ok(Self { values })
    }

    /// Whether an environment variable holds one, by its own name or by that of its source.
    #[must_use]
    pub fn is_named(workflow: &Workflow, variable: &str) -> bool {
        workflow.secrets.iter().any(|(name, secret)| {
            name == variable || matches!(secret, Secret::Env(source) if source == variable)
        })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    #[cfg(test)]
    pub(crate) fn from_values(values: Vec<(String, String)>) -> Self {
        Self { values }
    }

    /// Names and values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, String)> {
        self.values.iter()
    }

    /// A text without them.
    pub(crate) fn redact(&self, text: String) -> String {
        let mut text = text;
        for (_, value) in &self.values {
            if !value.is_empty() && text.contains(value.as_str()) {
                text = text.replace(value.as_str(), "***");
            }
        }
        text
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.values.iter().map(|(name, _)| name);
        f.debug_set().entries(names).finish()
    }
}
