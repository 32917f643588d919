//! `undaunted man`: the manual page.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_mangen::Man;

pub(crate) fn run() -> Result<()> {
    let mut page = Vec::new();
    Man::new(crate::args::Args::command()).render(&mut page)?;
    io::stdout().lock().write_all(&page)?;
    Ok(())
}
