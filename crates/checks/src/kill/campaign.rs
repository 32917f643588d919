//! The rounds of the kill campaign, and the summary of what they found.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use super::findings::{KillFindings, ViolationKind};
use super::sandbox::RoundSandbox;
use super::{job_round, schedule, serve_round};
use crate::campaign::{for_each_seed, repeat_command};
use crate::repository;

#[derive(Debug, clap::Args)]
pub struct KillArgs {
    /// Number of rounds
    #[arg(long, value_name = "N", default_value_t = 100)]
    rounds: u64,

    /// Seed of the first round; each further round uses the next seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    first_seed: u64,

    /// Program to kill, built with the feature `failpoints` [default: build it]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,

    /// Folder for the files of the rounds; those of rounds with violations are kept
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

pub fn run(args: &KillArgs) -> ExitCode {
    match campaign(args) {
        Ok(findings) if findings.violations.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            // If standard error is closed, the exit code still tells.
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn campaign(args: &KillArgs) -> io::Result<KillFindings> {
    let folder = args.keep.clone().unwrap_or_else(std::env::temp_dir);
    fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    // A copy: rebuilding the checks during a campaign replaces the original.
    let actor = folder.join(format!("undaunted-kill-{}-actor", std::process::id()));
    fs::copy("/proc/self/exe", &actor)?;
    let findings = rounds(args, &folder, &actor);
    fs::remove_file(&actor)?;
    let findings = findings?;
    summarize(args, &findings)?;
    Ok(findings)
}

fn rounds(args: &KillArgs, folder: &Path, actor: &Path) -> io::Result<KillFindings> {
    let program = match &args.program {
        Some(program) => program.canonicalize()?,
        None => build_program()?,
    };
    let began = Instant::now();
    let (mut findings, mut done) = (KillFindings::default(), 0_u32);
    let round = |seed| round(seed, folder, &program, actor);
    for_each_seed(args.first_seed, args.rounds, round, |seed, found| {
        let mut found = found?;
        found.latest = format!("seed {seed}, {}", found.latest);
        findings.absorb(found);
        done += 1;
        if done.is_multiple_of(10) {
            let each = began.elapsed().as_secs_f64() / f64::from(done);
            writeln!(io::stderr(), "{done} rounds, {each:.2} s each, {} kills", findings.kills)?;
        }
        Ok(())
    })?;
    Ok(findings)
}

fn round(seed: u64, folder: &Path, program: &Path, actor: &Path) -> io::Result<KillFindings> {
    let folder = folder.join(format!("undaunted-kill-{}-{seed}", std::process::id()));
    let sandbox = RoundSandbox::make(folder.clone(), program)?;
    // Every fifth round runs servers.
    let findings = if seed.is_multiple_of(5) {
        serve_round::round(&sandbox, seed)
    } else {
        job_round::round(&sandbox, seed, actor)
    };
    sandbox.kill_all();
    let findings = findings?;
    if findings.violations.is_empty() {
        fs::remove_dir_all(&folder)?;
    } else {
        report(seed, &folder, &findings)?;
    }
    Ok(findings)
}

fn report(seed: u64, folder: &Path, findings: &KillFindings) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for violation in &findings.violations {
        writeln!(out, "seed {seed}: {violation}")?;
    }
    writeln!(out, "  again: {}", repeat_command(&format!("kill --rounds 1 --first-seed {seed}")))?;
    writeln!(out, "  kept:  {}", folder.display())
}

fn summarize(args: &KillArgs, findings: &KillFindings) -> io::Result<()> {
    let mut failpoints: BTreeMap<&str, u64> =
        schedule::failpoints().map(|failpoint| (failpoint, 0)).collect();
    for failpoint in &findings.failpoints {
        *failpoints.entry(failpoint).or_default() += 1;
    }
    let failpoints: Vec<String> =
        failpoints.iter().map(|(failpoint, times)| format!("{failpoint} {times}")).collect();
    writeln!(io::stderr(), "deaths by place: {}", failpoints.join(", "))?;
    writeln!(io::stderr(), "{} waits measured; the latest: {}", findings.waits, findings.latest)?;
    let mut out = io::stdout().lock();
    let unlawful = findings.count(ViolationKind::Unlawful);
    if unlawful > 0 {
        writeln!(out, "{unlawful} other violations")?;
    }
    let (lost, duplicated) = (findings.count(ViolationKind::Lost), findings.count(ViolationKind::Duplicated));
    let (rounds, kills) = (args.rounds, findings.kills);
    writeln!(out, "{rounds} rounds, {kills} kills, {lost} lost, {duplicated} duplicated")?;
    writeln!(out, "largest lateness of a wait: {} ms", findings.lateness.div_ceil(1000))
}

/// Builds the program with its failpoints, in the profile of these checks and in a target folder of its own,
/// so that the two builds do not invalidate each other.
fn build_program() -> io::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let own = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = own.unwrap_or_else(|| repository().join("target"));
    let target = target.join("failpoints");
    eprintln!("building the program with failpoints; this may take minutes");
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--package", "undaunted"])
        .args(["--features", "failpoints", "--target-dir"])
        .arg(&target)
        .current_dir(repository())
        .stdin(Stdio::null());
    let is_release = !cfg!(debug_assertions);
    if is_release {
        command.arg("--release");
    }
    if !command.status()?.success() {
        return Err(io::Error::other("the program cannot be built"));
    }
    let profile = if is_release { "release" } else { "debug" };
    Ok(target.join(profile).join("undaunted"))
}
