//! Secret values, which must not appear in any record, log or message, and their redaction.
//!
//! They are read when a job is begun or resumed, and passed to its commands. The keeper redacts them from what a
//! command writes before it reaches a file; the engine redacts them from the answers of services and functions
//! before they reach the journal. A secret may arrive in two pieces, so the possible beginning of one is kept until
//! the next piece is there.

use std::env;
use std::path::{Path, PathBuf};

use undaunted_engine::job::Job;
use undaunted_engine::workflow::{SecretSource, Workflow};

#[derive(Clone, Default)]
pub struct Secrets {
    values: Vec<(String, String)>,
}

/// In characters. A shorter value occurs in outputs by chance, and redacting it would garble them.
const SHORTEST: usize = 4;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The variable is not set, or not valid UTF-8.
    #[error("secret `{name}`: the environment variable `{variable}` is not set")]
    Variable { name: String, variable: String },
    #[error("secret `{name}`: cannot read `{}`", path.display())]
    File { name: String, path: PathBuf, source: std::io::Error },
    #[error(
        "secret `{name}`: the value is shorter than {SHORTEST} characters, too short to be redacted from outputs"
    )]
    TooShort { name: String },
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
            if pattern(&value).chars().nth(SHORTEST.saturating_sub(1)).is_none() {
                return Err(SecretError::TooShort { name: name.clone() });
            }
            values.push((name.clone(), value));
        }
        Ok(Self { values })
    }

    /// Reads the secrets of a job, with paths relative to its working directory.
    pub(crate) fn of_job(job: &Job) -> Result<Self, SecretError> {
        Self::read(job.workflow(), Path::new(&job.submitted().working_dir))
    }

    /// Whether an environment variable holds a secret, by its own name or by that of its source.
    pub fn is_named(workflow: &Workflow, variable: &str) -> bool {
        workflow.secrets.iter().any(|(name, secret)| {
            name == variable || matches!(secret, SecretSource::Env(source) if source == variable)
        })
    }

    pub(crate) fn values(&self) -> &[(String, String)] {
        &self.values
    }

    pub(crate) fn redact(&self, text: String) -> String {
        if text.is_empty() || self.values.is_empty() {
            return text;
        }
        let mut redaction = Redaction::of(self.values.iter().map(|(_, value)| value.as_str()));
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

/// What is searched for. Shells and files drop a line break at the end of a value.
fn pattern(value: &str) -> &str {
    value.trim_end_matches(['\n', '\r'])
}

const STARS: &[u8] = b"***";

/// Replaces the values of secrets in a stream of bytes.
#[derive(Debug)]
pub(crate) struct Redaction {
    /// The longest first, so that a secret that contains another is replaced as a whole.
    patterns: Vec<Vec<u8>>,
    /// Which bytes a pattern begins with; all others are passed on without a comparison.
    first: [bool; 256],
    pending: Vec<u8>,
}

impl Redaction {
    /// A value of several lines is also found with CRLF for LF, as a terminal writes it.
    pub(crate) fn of<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let values = values.map(pattern).filter(|value| !value.is_empty());
        let mut patterns: Vec<Vec<u8>> = values
            .flat_map(|value| [value.to_owned(), value.replace('\n', "\r\n")])
            .map(String::into_bytes)
            .collect();
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.len()));
        patterns.dedup();
        let mut first = [false; 256];
        for begin in patterns.iter().filter_map(|pattern| pattern.first()) {
            if let Some(is_first) = first.get_mut(usize::from(*begin)) {
                *is_first = true;
            }
        }
        Self { patterns, first, pending: Vec::new() }
    }

    /// Adds a piece, and returns the bytes that cannot belong to a value that is still to be completed.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(piece);
        let text = std::mem::take(&mut self.pending);
        let mut passed = Vec::with_capacity(text.len());
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            let plain = rest.iter().position(|byte| self.first.get(usize::from(*byte)) == Some(&true));
            let (before, candidate) = rest.split_at(plain.unwrap_or(rest.len()));
            passed.extend_from_slice(before);
            if self.patterns.iter().any(|it| it.len() > candidate.len() && it.starts_with(candidate)) {
                self.pending = candidate.to_vec();
                break;
            }
            rest = self.pass_one(candidate, &mut passed);
        }
        passed
    }

    /// The bytes kept back: no value was completed.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let text = std::mem::take(&mut self.pending);
        let mut passed = Vec::with_capacity(text.len());
        let mut rest = text.as_slice();
        while !rest.is_empty() {
            rest = self.pass_one(rest, &mut passed);
        }
        passed
    }

    /// Passes on one value, redacted, or one byte. Returns the rest.
    fn pass_one<'a>(&self, text: &'a [u8], passed: &mut Vec<u8>) -> &'a [u8] {
        let found = self.patterns.iter().find_map(|pattern| text.strip_prefix(pattern.as_slice()));
        if let Some(rest) = found {
            passed.extend_from_slice(STARS);
            return rest;
        }
        passed.extend(text.first());
        text.get(1..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(values: &[&str]) -> Redaction {
        Redaction::of(values.iter().copied())
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
    fn a_value_of_several_lines_is_redacted_however_its_lines_end() {
        let text = shown(redaction(&["one\ntwo\n"]), &["a one\r", "\ntwo b", " one\ntwo\n one\r"]);
        assert_eq!(text, "a *** b ***\n one\r");
    }

    proptest::proptest! {
        #[test]
        fn no_cut_of_a_text_lets_a_value_through(text in "[abc]{0,40}", cuts in proptest::collection::vec(0_usize..40, 0..6)) {
            let values = ["aab", "aba", "bcab"];
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| (*cut).min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            let redacted = shown(redaction(&values), &pieces);
            proptest::prop_assert_eq!(&redacted, &shown(redaction(&values), &[&text]));
            proptest::prop_assert!(!values.iter().any(|value| redacted.contains(value)), "{}", redacted);
        }
    }
}
