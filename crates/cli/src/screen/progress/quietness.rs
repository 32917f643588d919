//! How much is said about a job while it runs.

use clap::Args;

/// How much is said, and to whom.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Quietness {
    /// Say nothing until the end
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Also say every start and every success
    #[arg(long, short, conflicts_with_all = ["quiet", "json"])]
    pub(crate) verbose: bool,

    /// Print one JSON object at the end, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

impl Quietness {
    /// The usual amount, or one JSON object at the end.
    pub(crate) const fn of(json: bool) -> Self {
        Self { quiet: false, verbose: false, json }
    }

    pub(crate) const fn is_quiet(self) -> bool {
        self.quiet || self.json
    }
}
