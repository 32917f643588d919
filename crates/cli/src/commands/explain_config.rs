//! `undaunted explain-config`: the retry policy and breaker of every command, with the origin of each setting.

use std::io::{self, BufWriter, Write};

use clap::Args;

use crate::Result;
use crate::commands::check::{check_file, refusal};
use crate::screen::{diagnostics, policies};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted explain-config nightly.yaml
  undaunted explain-config nightly.yaml --json

The closest block wins, field by field: the command's own retry_config, then
map.timeout_config, map.error_policy, error_policy of the workflow, retry_config of the
workflow, and the default.")]
pub(crate) struct ExplainConfigArgs {
    /// Workflow file; `-` is standard input
    file: String,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainConfigArgs) -> Result<()> {
    let (source, checked) = check_file(&args.file)?;
    diagnostics::show(&source, &checked.diagnostics);
    let Some(workflow) = &checked.workflow else {
        return Err(refusal(&source, &checked.diagnostics));
    };
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        policies::json(&mut out, &source, workflow)?;
    } else {
        policies::tables(&mut out, &source, workflow)?;
    }
    out.flush()?;
    Ok(())
}
