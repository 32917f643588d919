//! Asks before jobs or dead letters are removed.
//!
//! Without a terminal no user can be asked, and a script whose variable is empty must not remove more than its
//! author meant, so there `--yes` has to be typed.

use std::io::{self, IsTerminal, Write};

use clap::Args;

use crate::{CommandError, Result};

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Confirmation {
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
}

impl Confirmation {
    /// Refuses if a confirmation is needed and no user can be asked. Called before anything is looked up, so
    /// that a script fails on its first run and not only once there is something to remove.
    pub(crate) fn require(self, command: &str) -> Result<()> {
        if self.yes || can_ask() {
            return Ok(());
        }
        Err(CommandError::Usage(format!(
            "`{command}` asks for confirmation, and there is no terminal to ask on; nothing was removed; \
             confirm with `--yes`"
        )))
    }

    /// Asks on a terminal. Elsewhere the answer is yes: [`Confirmation::require`] has refused where that would
    /// be dangerous.
    pub(crate) fn ask(self, action: &str) -> Result<()> {
        if self.yes || !can_ask() || confirmed(action)? {
            return Ok(());
        }
        Err(CommandError::Usage(format!("not confirmed; did not {action}")))
    }
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn confirmed(action: &str) -> io::Result<bool> {
    let mut ask = io::stderr().lock();
    write!(ask, "{action}? [y/N] ")?;
    ask.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
