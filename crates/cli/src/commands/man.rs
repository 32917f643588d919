//! `undaunted man`: the manual page.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_mangen::Man;

pub(crate) fn run() -> Result<()> {
    let mut page = Vec::new();
    let mut command = crate::args::Args::command();
    command.build();
    Man::new(command.clone()).render(&mut page)?;
    // A page for each command follows, so that every flag is in one place.
    for command in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        Man::new(command.clone()).render(&mut page)?;
    }
    io::stdout().lock().write_all(&page)?;
    Ok(())
}
