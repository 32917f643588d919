//! The guides by task are true: what they tell to type is typed, and prints what they show.
//!
//! The commands of a page stand in blocks ```` ```console session ````. They are run in order in one
//! folder, with a store of their own. A block whose first line names a file too, such as
//! ```` ```yaml nightly.yaml ````, is that file, written when its turn comes. A line that is only `…`
//! stands for any number of lines. `127.0.0.1:18080` is the failing server of `flaky.rs`.
//!
//! A command that ends with `&` is left running, and `kill -9 %1  # when …` waits for what it names
//! and then kills it: `when it says TEXT`, or `when FILE is there`.
//!
//! `UNDAUNTED_BLESS=1 cargo test -p undaunted guides` writes the outputs of today into the pages, to be
//! read before they are committed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::binary::{repository, text};
use crate::documents::{CodeBlock, blocks};
use crate::flaky::FlakyServer;
use crate::unlike::{alike, alike_in_any_order};

/// The address of the server on the pages, as wide as the one it really has.
const SERVER: &str = "127.0.0.1:18080";
/// What stands on the pages for the folder they are run in.
const FOLDER: &str = "/srv/jobs";
/// How long to wait for what a page says will happen.
const PATIENCE: Duration = Duration::from_mins(1);

const PAGES: [&str; 11] = [
    "retry-one-command",
    "a-list-of-urls",
    "a-nightly-job",
    "look-into-a-failure",
    "redrive",
    "resume-after-a-crash",
    "a-thousand-downloads",
    "outages",
    "shared-limits",
    "http",
    "flows",
];

#[test]
fn retry_one_command_is_true() {
    is_true("retry-one-command");
}

#[test]
fn a_list_of_urls_is_true() {
    is_true("a-list-of-urls");
}

#[test]
fn a_nightly_job_is_true() {
    is_true("a-nightly-job");
}

#[test]
fn flows_is_true() {
    is_true("flows");
}

#[test]
fn http_is_true() {
    is_true("http");
}

#[test]
fn look_into_a_failure_is_true() {
    is_true("look-into-a-failure");
}

#[test]
fn redrive_is_true() {
    is_true("redrive");
}

#[test]
fn resume_after_a_crash_is_true() {
    is_true("resume-after-a-crash");
}

#[test]
fn a_thousand_downloads_is_true() {
    is_true("a-thousand-downloads");
}

#[test]
fn outages_is_true() {
    is_true("outages");
}

#[test]
fn shared_limits_is_true() {
    is_true("shared-limits");
}

#[test]
fn every_page_with_a_session_is_run_and_linked() {
    let index = fs::read_to_string(page("README")).expect("a page");
    let entries = fs::read_dir(repository().join("docs/guide")).expect("the folder exists");
    let mut found: Vec<String> = Vec::new();
    for entry in entries {
        let path = entry.expect("an entry").path();
        let written = fs::read_to_string(&path).expect("a page");
        if blocks(&written).iter().any(is_session) {
            let name = path.file_stem().expect("a name").to_string_lossy();
            assert!(index.contains(&format!("({name}.md)")), "{name}");
            found.push(name.into_owned());
        }
    }
    found.sort_unstable();
    let mut pages = PAGES.map(str::to_owned);
    pages.sort_unstable();
    assert_eq!(found, pages);
}

fn page(name: &str) -> PathBuf {
    repository().join(format!("docs/guide/{name}.md"))
}

fn is_session(block: &CodeBlock) -> bool {
    block.language == "console session"
}

/// Runs a page, and compares every command with what the page says it prints.
fn is_true(name: &str) {
    let path = page(name);
    let written = fs::read_to_string(&path).expect("a page");
    let blocks = blocks(&written);
    let needs_curl = |block: &CodeBlock| is_session(block) && block.content.contains("curl ");
    if blocks.iter().any(needs_curl) && !is_there("curl") {
        eprintln!("skipped: {name} needs curl, which this machine lacks");
        return;
    }
    let mut session = GuideSession::new();
    let mut pages = [String::new(), String::new()];
    let mut done = 0;
    let mut commands = 0;
    for block in &blocks {
        if is_session(block) {
            let replayed = session.replay(&block.content);
            for (page, printed) in pages.iter_mut().zip(replayed) {
                page.push_str(written.get(done..block.start).expect("in order"));
                page.push_str(&printed);
            }
            commands += block.content.matches("undaunted ").count();
            done = block.start + block.content.len();
        } else if let Some((_, file)) = block.language.split_once(' ') {
            session.write(file, &block.content);
        }
    }
    let [mended, anew] = pages.map(|page| page + written.get(done..).expect("the rest"));
    assert!(commands > 0, "{name} has no commands");
    if mended == written {
        return;
    }
    if std::env::var_os("UNDAUNTED_BLESS").is_some() {
        // The whole page, so that it tells of one job.
        fs::write(&path, anew).expect("written");
        return;
    }
    snapbox::assert_data_eq!(mended, snapbox::Data::text(written).raw());
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// One command and what is printed under it.
struct PrintedCommand {
    line: String,
    shown: String,
}

/// The commands of a block.
fn typed(block: &str) -> Vec<PrintedCommand> {
    let mut typed: Vec<PrintedCommand> = Vec::new();
    for line in block.split_inclusive('\n') {
        match (line.strip_prefix("$ "), typed.last_mut()) {
            (Some(command), _) => {
                typed.push(PrintedCommand { line: command.trim_end().to_owned(), shown: String::new() });
            }
            (None, last) => {
                let last = last.expect("a session begins with a command");
                last.shown.push_str(line);
            }
        }
    }
    typed
}

/// A folder, a store and a shell that remembers how the last command ended.
struct GuideSession {
    folder: tempfile::TempDir,
    store: tempfile::TempDir,
    server: FlakyServer,
    status: i32,
}

/// What was left running, and the file with what it says. No pipe: what it had written when it was
/// killed is all there, at once.
struct BackgroundCommand {
    child: Child,
    says: PathBuf,
}

impl Drop for BackgroundCommand {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl GuideSession {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            store: tempfile::tempdir().expect("a folder"),
            server: FlakyServer::start(),
            status: 0,
        }
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, self.really(content)).expect("written");
        let mode = if content.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("changed");
    }

    /// A text of a page, as it is to be run.
    fn really(&self, text: &str) -> String {
        text.replace(SERVER, &self.server.address())
            .replace(FOLDER, &self.folder.path().display().to_string())
    }

    /// What was printed, as a page shows it.
    fn shown(&self, text: &str) -> String {
        text.replace(&self.server.address(), SERVER)
            .replace(&self.folder.path().display().to_string(), FOLDER)
    }

    /// Runs the commands of a block, and puts what they print under them: in the first text unless
    /// that is what is there but for what differs from run to run, in the second unless something
    /// is left out there.
    fn replay(&mut self, block: &str) -> [String; 2] {
        let commands = typed(block);
        let mut replayed = [String::new(), String::new()];
        for (number, command) in commands.iter().enumerate() {
            let printed = match command.line.strip_suffix(" &") {
                Some(line) => {
                    let running = self.leave_running(line);
                    let kill = commands.get(number + 1).map(|next| next.line.as_str());
                    let condition = kill.and_then(|it| it.strip_prefix("kill -9 %1"));
                    let condition = condition.and_then(|it| it.trim().strip_prefix("# when "));
                    self.kill_when(condition.expect("the next line kills it"), running)
                }
                None if command.line.starts_with("kill -9 %1") => String::new(),
                None => self.run(&command.line),
            };
            let printed = self.shown(&printed);
            let same = if any_order(&command.line) {
                alike_in_any_order(&command.shown, &printed)
            } else {
                alike(&command.shown, &printed)
            };
            let kept = [same, same && command.shown.contains("…\n")];
            for (replayed, kept) in replayed.iter_mut().zip(kept) {
                let under = if kept { &command.shown } else { &printed };
                replayed.extend(["$ ", &command.line, "\n", under]);
            }
        }
        replayed
    }

    fn shell(&self, script: &str) -> Command {
        let binary = Path::new(env!("CARGO_BIN_EXE_undaunted"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path);
        let ours = binary.parent().map(Path::to_owned).into_iter();
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .current_dir(self.folder.path())
            .env("PATH", std::env::join_paths(ours.chain(folders)).expect("a path"))
            .env("UNDAUNTED_HOME", self.store.path())
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        for name in ["DEFAULT", "MAX", "PER_WORKFLOW_DEFAULT", "PER_WORKFLOW_MAX"] {
            command.env_remove(format!("RETRY_BUDGET_{name}"));
        }
        command
    }

    /// Runs a line to its end, and returns what it printed.
    fn run(&mut self, line: &str) -> String {
        let status = self.status;
        let script = format!("exec 2>&1\n(exit {status})\n{}\n", self.really(line));
        let output = self.shell(&script).output().expect("it runs");
        self.status = output.status.code().unwrap_or(-1);
        text(&output.stdout)
    }

    fn leave_running(&self, line: &str) -> BackgroundCommand {
        let says = self.store.path().join("said");
        let file = fs::File::create(&says).expect("a file");
        let script = format!("exec 2>&1\nexec {}\n", self.really(line));
        let child = self.shell(&script).stdout(file).spawn();
        BackgroundCommand { child: child.expect("it runs"), says }
    }

    /// Waits for what is named, kills what was left running, and returns what it had printed by then.
    fn kill_when(&self, condition: &str, mut running: BackgroundCommand) -> String {
        let file = condition.strip_suffix(" is there");
        let file = file.map(|name| self.folder.path().join(name));
        let said = condition.strip_prefix("it says ");
        assert!(file.is_some() || said.is_some(), "when {condition}?");
        let began = Instant::now();
        loop {
            let printed = fs::read_to_string(&running.says).expect("text");
            let met = file.as_ref().is_some_and(|file| file.exists())
                || said.is_some_and(|said| printed.contains(said));
            if met {
                break;
            }
            let ended = running.child.try_wait().expect("known");
            assert!(ended.is_none(), "it ended before {condition}: {printed}");
            assert!(began.elapsed() < PATIENCE, "never {condition}: {printed}");
            std::thread::sleep(Duration::from_millis(2));
        }
        let says = running.says.clone();
        drop(running);
        let printed = fs::read_to_string(says).expect("text");
        // What it said after that is a matter of chance.
        let place = said.and_then(|said| printed.find(said)).unwrap_or(printed.len());
        let rest = printed.get(place..).unwrap_or_default();
        let end = rest.find('\n').map_or(printed.len(), |end| place + end + 1);
        printed.get(..end).unwrap_or_default().to_owned()
    }
}

/// Whether several items at a time say what they have to say, in an order that is a matter of chance.
fn any_order(line: &str) -> bool {
    line.contains("undaunted map") && !line.contains("-j 1 ")
}
