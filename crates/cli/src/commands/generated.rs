//! `undaunted schema`, `completions` and `man`: documents generated from the code.
//!
//! Each is written to memory first: the generators panic on a broken pipe.

use std::io::{self, Write};

use clap::Args;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{Cli, Result};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted completions bash > ~/.local/share/bash-completion/completions/undaunted
  undaunted completions zsh > ~/.zfunc/_undaunted
  undaunted completions fish > ~/.config/fish/completions/undaunted.fish")]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    shell: Shell,
}

pub(crate) fn schema() -> Result<()> {
    let mut text = serde_json::to_vec_pretty(&undaunted_engine::workflow::schema())?;
    text.push(b'\n');
    Ok(io::stdout().lock().write_all(&text)?)
}

pub(crate) fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::grouped(), "undaunted", &mut script);
    Ok(io::stdout().lock().write_all(&script)?)
}

pub(crate) fn man() -> Result<()> {
    let mut page = Vec::new();
    let mut command = Cli::grouped();
    command.build();
    Man::new(command.clone()).render(&mut page)?;
    // A page for each command follows, so that every flag is in one place.
    for command in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        Man::new(command.clone()).render(&mut page)?;
    }
    Ok(io::stdout().lock().write_all(&page)?)
}
