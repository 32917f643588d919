//! What the shell is given: a text, and the variables it reads.
//!
//! Plain data. The text is the author's, with variables where the references were; the values are
//! in the variables, where the shell never reads them as code.

/// A text for the shell, and the environment variables it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The text to run.
    pub text: String,
    /// Names and values, to be added to the environment of the shell.
    pub env: Vec<(String, String)>,
}
