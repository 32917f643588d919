//! `undaunted schema`: what an editor needs to help with a workflow.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use undaunted_engine::workflow::schema;

pub(crate) fn run() -> Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, &schema()).map_err(io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}
