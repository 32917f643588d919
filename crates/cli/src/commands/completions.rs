//! `undaunted completions`: what a shell needs to complete what is typed.

use std::io::{self, Write};

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// The shell.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  undaunted completions bash > ~/.local/share/bash-completion/completions/undaunted
  undaunted completions zsh > ~/.zfunc/_undaunted
  undaunted completions fish > ~/.config/fish/completions/undaunted.fish")]
pub(crate) struct CompletionsArgs {
    /// bash, zsh, fish, elvish or powershell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> Result<()> {
    // Written to memory first: the generator panics on a broken pipe.
    let mut script = Vec::new();
    let mut command = crate::args::Args::command();
    clap_complete::generate(args.shell, &mut command, "undaunted", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(())
}
