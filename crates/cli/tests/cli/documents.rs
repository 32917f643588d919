//! What the documents show is what happens: every example is run, every output compared.
//!
//! `UNDAUNTED_BLESS=1 cargo test -p undaunted` writes the outputs of today into the pages, to be
//! read before they are committed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use undaunted_engine::workflow::{DiagnosticCode, Severity};

use crate::binary::{repository, text, undaunted, undaunted_in};

/// A fenced block of a page, and where its content stands.
pub(crate) struct CodeBlock {
    pub(crate) language: String,
    pub(crate) start: usize,
    pub(crate) content: String,
}

pub(crate) fn blocks(page: &str) -> Vec<CodeBlock> {
    let mut blocks = Vec::new();
    let mut open: Option<CodeBlock> = None;
    let mut offset = 0;
    for line in page.split_inclusive('\n') {
        let next = offset + line.len();
        match (open.take(), line.strip_prefix("```")) {
            (Some(block), Some(_)) => blocks.push(block),
            (Some(mut block), None) => {
                block.content.push_str(line);
                open = Some(block);
            }
            (None, Some(language)) => {
                open = Some(CodeBlock {
                    language: language.trim().to_owned(),
                    start: next,
                    content: String::new(),
                });
            }
            (None, None) => {}
        }
        offset = next;
    }
    blocks
}

fn pages(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(folder)).expect("the folder exists");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    paths
}

/// Compares what a page shows with what was printed; or, when asked to, mends the page.
fn compare(path: &Path, block: &CodeBlock, printed: &str) {
    if block.content == printed {
        return;
    }
    if std::env::var_os("UNDAUNTED_BLESS").is_some() {
        let page = fs::read_to_string(path).expect("a page");
        let mended = page.replacen(&block.content, printed, 1);
        fs::write(path, mended).expect("written");
        return;
    }
    let name = path.file_name().unwrap_or_default().display();
    assert_eq!(block.content, printed, "{name}, byte {}", block.start);
}

/// Output and errors of `check workflow.yaml` in a folder of its own, and the exit code.
pub(crate) fn check(yaml: &str) -> (String, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("workflow.yaml"), yaml).expect("written");
    let output = undaunted_in(folder.path(), &["check", "workflow.yaml"]);
    let printed = text(&output.stderr) + &text(&output.stdout);
    (printed, output.status.code())
}

#[test]
fn every_code_has_a_page_whose_examples_are_true() {
    let mut seen = BTreeSet::new();
    for path in pages("docs/errors") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if name == "README" {
            continue;
        }
        let code = DiagnosticCode::ALL.iter().find(|code| code.word() == name);
        let code = code.unwrap_or_else(|| panic!("{name} is a page about no code"));
        let page = fs::read_to_string(&path).expect("a page");
        let blocks = blocks(&page);
        let yaml: Vec<_> = blocks.iter().filter(|block| block.language == "yaml").collect();
        let shown = blocks.iter().find(|block| block.language == "text").expect("an output");
        let (failing, valid) = (yaml.first().expect("one"), yaml.last().expect("another"));

        let (printed, status) = check(&failing.content);
        let expected = if code.severity() == Severity::Error { 3 } else { 0 };
        assert_eq!(status, Some(expected), "{name}: {printed}");
        assert!(printed.contains(&format!("[{name}]")), "{name}: {printed}");
        compare(&path, shown, &printed);
        let (printed, status) = check(&valid.content);
        assert_eq!(status, Some(0), "{name}: {printed}");
        assert!(!printed.contains('['), "{name}: {printed}");
        seen.insert(name);
    }
    let codes: BTreeSet<_> = DiagnosticCode::ALL.iter().map(|code| code.word().to_owned()).collect();
    assert_eq!(seen, codes);
}

#[test]
fn every_command_of_the_guides_prints_what_they_show() {
    let mut commands = 0;
    for path in pages("docs/guide") {
        let page = fs::read_to_string(&path).expect("a page");
        for block in blocks(&page) {
            if block.language == "console" {
                let printed = replay(&block.content);
                commands += printed.matches("$ undaunted").count();
                compare(&path, &block, &printed);
            } else if block.language == "yaml" {
                let whole = if block.content.starts_with("retry_config:") {
                    format!("{}commands: [{{shell: 'true'}}]\n", block.content)
                } else {
                    block.content.clone()
                };
                let (printed, status) = check(&whole);
                assert_eq!(status, Some(0), "{}: {printed}", path.display());
            }
        }
    }
    assert!(commands >= 10, "only {commands} commands were found");
}

/// Runs the commands of a block and puts their output under them.
fn replay(block: &str) -> String {
    let mut printed = Vec::new();
    for line in block.lines().filter(|line| line.starts_with("$ ")) {
        let words = shell_words(line.trim_start_matches("$ "));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        assert_eq!(words.first(), Some(&"undaunted"), "{line}");
        let output = undaunted(words.get(1..).unwrap_or_default());
        printed.push(format!("{line}\n{}{}", text(&output.stderr), text(&output.stdout)));
    }
    printed.concat()
}

/// Words as a shell splits them, with single quotes, which is all that the guides use.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match (c, quoted) {
            ('\'', _) => quoted = !quoted,
            (' ', false) => words.push(String::new()),
            (c, _) => words.last_mut().expect("a word").push(c),
        }
    }
    words
}
