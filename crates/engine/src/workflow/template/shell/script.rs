//! The shell's input: a text, and the environment variables it reads.
//!
//! The text is the author's, with variables where the references were. The values are in the
//! environment, where the shell never reads them as code.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub text: String,
    pub env: Vec<(String, String)>,
}
