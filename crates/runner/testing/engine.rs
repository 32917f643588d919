//! An engine and a keeper for the tests of this crate. Not part of any product.
//!
//! `test-engine keeper [FOLDER]` runs a keeper. `test-engine engine FOLDER SCRIPT...` starts one command for
//! each script, numbered from 1, prints the events of its keeper, and runs until it is killed.

use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

use undaunted_runner::keeper::{self, CommandSpec, KeeperClient, KeeperEvent};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [word] if word == "keeper" => keep(&keeper::folder_from_engine().ok_or("stdin is no engine")?),
        [word, folder] if word == "keeper" => keep(Path::new(folder)),
        [word, folder, scripts @ ..] if word == "engine" => play(Path::new(folder), scripts),
        _ => Err("unknown arguments".into()),
    }
}

fn keep(folder: &Path) -> Result<(), Box<dyn Error>> {
    match keeper::main(folder) {
        Ok(never) => match never {},
        Err(error) => Err(error.into()),
    }
}

fn play(folder: &Path, scripts: &[OsString]) -> Result<(), Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let (keeper, _) = KeeperClient::start(&own, &[OsString::from("keeper")], folder)?;
    keeper.trust();
    for (id, script) in (1..).zip(scripts) {
        let argv = [OsString::from("/bin/sh"), "-c".into(), script.clone()];
        keeper.run(CommandSpec {
            env: std::env::vars_os().collect(),
            working_dir: PathBuf::from("/"),
            ..CommandSpec::new(id, argv)
        })?;
    }
    loop {
        let line = match keeper.events().recv()? {
            KeeperEvent::Began(running) => format!("began {}", running.id),
            KeeperEvent::Exited(exited) => format!("exited {} {:?}", exited.id, exited.end),
            other => format!("{other:?}"),
        };
        println!("{line}");
        std::io::stdout().flush()?;
    }
}
