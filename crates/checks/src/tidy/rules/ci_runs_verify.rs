//! One command decides, for people and machines alike: `./verify`.
//!
//! The build server must run it and the README must name it, or the two drift apart.

use crate::tidy::{Tree, Violation};

const COMMAND: &str = "./verify";
const SCRIPT: &str = ".ci/run";
const README: &str = "README.md";

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let lines = |path| tree.text_at(path).into_iter().flat_map(|file| file.text().lines());
    let runs = lines(SCRIPT).any(|line| !line.trim_start().starts_with('#') && line.contains(COMMAND));
    let names = lines(README).any(|line| line.contains(COMMAND));
    let violation =
        |path: &str, what: &str| Violation { path: path.to_owned(), line: 1, what: what.to_owned() };
    let script = (!runs).then(|| violation(SCRIPT, "the build server does not run `./verify`"));
    let readme = (!names).then(|| violation(README, "the README does not name `./verify`"));
    script.into_iter().chain(readme).collect()
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    const RUNS: (&str, &str) = (".ci/run", "#!/usr/bin/env bash\n./verify\n");
    const NAMES: (&str, &str) = ("README.md", "Run `./verify`.\n");

    #[test]
    fn the_build_server_and_the_readme_agree_on_the_command() {
        assert_eq!(spoken(violations, [RUNS, NAMES]), [""; 0]);
    }

    #[test]
    fn a_comment_does_not_run_anything() {
        assert_eq!(
            spoken(violations, [(".ci/run", "# ./verify\n"), NAMES]),
            [".ci/run:1: the build server does not run `./verify`"]
        );
    }

    #[test]
    fn missing_files_are_found_too() {
        assert_eq!(spoken(violations, []).len(), 2);
        assert_eq!(spoken(violations, [RUNS]), ["README.md:1: the README does not name `./verify`"]);
    }
}
