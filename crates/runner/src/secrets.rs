//! Secret values, which must not appear in any record, log or message, and their redaction.
//!
//! They are read when a job is begun or resumed, passed to its commands, and redacted from every text before
//! it reaches the journal. A secret may span two pieces of an output, or be cut by a gap where output was dropped. So
//! the possible beginning of a secret is kept until the next piece arrives, and the parts of a secret around a gap are
//! redacted too.

use std::env;
use std::path::{Path, PathBuf};

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

const STARS: &[u8] = b"***";

#[derive(Clone, Debug)]
pub struct Redaction {
    /// The longest first, so that a secret that contains another is replaced as a whole.
    secrets: Vec<Vec<u8>>,
    pending: Vec<u8>,
    /// The next byte follows a gap.
    after_gap: bool,
}

impl Redaction {
    pub fn of(secrets: &Secrets) -> Self {
        let values = secrets.values().iter().map(|(_, value)| value.as_bytes().to_vec());
        let mut secrets: Vec<_> = values.filter(|value| !value.is_empty()).collect();
        secrets.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { secrets, pending: Vec::new(), after_gap: false }
    }

    /// Adds a piece, and returns the text that may be shown now.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(piece);
        self.emit(RedactionBoundary::More)
    }

    pub fn finish(&mut self) -> Vec<u8> {
        self.emit(RedactionBoundary::End)
    }

    /// Output was dropped here: returns the text before the gap, without the beginning of a secret.
    pub fn gap(&mut self) -> Vec<u8> {
        let shown = self.emit(RedactionBoundary::Gap);
        self.after_gap = true;
        shown
    }

    fn emit(&mut self, boundary: RedactionBoundary) -> Vec<u8> {
        let text = std::mem::take(&mut self.pending);
        let mut shown = Vec::with_capacity(text.len());
        let mut rest = text.as_slice();
        if self.after_gap && !rest.is_empty() {
            self.after_gap = false;
            let cut = self.secrets.iter().map(|secret| overlap(secret, rest)).max().unwrap_or_default();
            if cut > 0 {
                shown.extend_from_slice(STARS);
                rest = rest.get(cut..).unwrap_or_default();
            }
        }
        while let Some((first, behind)) = rest.split_first() {
            let begins = |secret: &&Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if boundary == RedactionBoundary::More && self.secrets.iter().any(|secret| begins(&secret)) {
                self.pending = rest.to_vec();
                return shown;
            }
            if let Some(secret) = self.secrets.iter().find(|it| rest.starts_with(it)) {
                shown.extend_from_slice(STARS);
                rest = rest.get(secret.len()..).unwrap_or_default();
            } else if boundary == RedactionBoundary::Gap && self.secrets.iter().any(|secret| begins(&secret))
            {
                shown.extend_from_slice(STARS);
                return shown;
            } else {
                shown.push(*first);
                rest = behind;
            }
        }
        shown
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RedactionBoundary {
    More,
    Gap,
    End,
}

/// The length of the longest end of `text` that `other` begins with, without being all of `other`.
fn overlap(text: &[u8], other: &[u8]) -> usize {
    let most = text.len().min(other.len().saturating_sub(1));
    let fits = |length: &usize| {
        let end = text.get(text.len().saturating_sub(*length)..);
        end.is_some_and(|end| other.starts_with(end))
    };
    (1..=most).rev().find(fits).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(values: &[&str]) -> Redaction {
        let values = values.iter().map(|value| ("S".to_owned(), (*value).to_owned()));
        Redaction::of(&Secrets::from_values(values.collect()))
    }

    fn shown(mut redaction: Redaction, pieces: &[&str]) -> String {
        let mut all = Vec::new();
        for piece in pieces {
            all.extend(redaction.push(piece.as_bytes()));
        }
        all.extend(redaction.finish());
        String::from_utf8(all).unwrap_or_default()
    }

    #[test]
    fn a_secret_across_pieces_is_redacted_and_a_mere_beginning_is_not() {
        let text = shown(redaction(&["hunter2"]), &["a hun", "ter", "2 b hunt", " c hu"]);
        assert_eq!(text, "a *** b hunt c hu");
    }

    #[test]
    fn text_that_cannot_begin_a_secret_is_shown_at_once() {
        let mut redaction = redaction(&["hunter2"]);
        assert_eq!(redaction.push(b"line\n"), b"line\n");
        assert_eq!(redaction.push(b"line hun"), b"line ");
    }

    #[test]
    fn secrets_that_contain_or_overlap_each_other_are_redacted_whole() {
        let text = shown(redaction(&["abc", "xabcx"]), &["xa", "bcx abc"]);
        assert_eq!(text, "*** ***");
        let text = shown(redaction(&["abc", "cde"]), &["ab", "c", "d abc"]);
        assert_eq!(text, "***d ***");
        let text = shown(redaction(&["abc", "abcd"]), &["abc", "d abc"]);
        assert_eq!(text, "*** ***");
    }

    #[test]
    fn a_secret_cut_by_a_gap_is_redacted_on_both_sides() {
        let mut redaction = redaction(&["hunter2"]);
        let mut all = redaction.push(b"pass hunt");
        all.extend(redaction.gap());
        all.extend(redaction.push(b"er2 end"));
        all.extend(redaction.finish());
        assert_eq!(String::from_utf8_lossy(&all), "pass ****** end");
    }
}
