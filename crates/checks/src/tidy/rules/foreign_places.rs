//! Places that exist on one machine only.
//!
//! A path of somebody's own computer, or the address of the package registry that happened to
//! serve it, is false everywhere else. Lock files are exempt: their tools write the registry
//! into them. A page that links to a package on a website is not meant, only hosts that tools
//! download from.

use crate::tidy::text_file::TextFile;
use crate::tidy::{Tree, Violation};

// All in two parts, so that this file does not carry them itself.
const FOLDERS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/tmp/ba", "sh_jobs")];
const HOSTS: [&str; 6] = [
    concat!("index.cra", "tes.io"),
    concat!("static.cra", "tes.io"),
    concat!("registry.npm", "js.org"),
    concat!("files.python", "hosted.org"),
    concat!("py", "pi.org"),
    concat!("deb.deb", "ian.org"),
];
const EXEMPT: [&str; 2] = ["Cargo.lock", "package-lock.json"];

pub(crate) fn violations(tree: &Tree) -> Vec<Violation> {
    let files = tree.texts().iter().filter(|file| !EXEMPT.contains(&file.name()));
    files.flat_map(in_file).collect()
}

fn in_file(file: &TextFile) -> impl Iterator<Item = Violation> {
    file.text().lines().zip(1..).flat_map(move |(line, number)| {
        let folders = FOLDERS.iter().filter(move |folder| begins_a_path(line, folder));
        let folders =
            folders.map(|folder| format!("`{folder}` is a folder of one machine: use a relative path"));
        let hosts = HOSTS.iter().filter(move |host| line.contains(**host));
        let hosts =
            hosts.map(|host| format!("`{host}` is a registry: the tool's own settings say where it is"));
        folders.chain(hosts).map(move |what| file.violation(number, what))
    })
}

/// Whether the folder stands at the beginning of a path, and not in the middle of one.
fn begins_a_path(line: &str, folder: &str) -> bool {
    let middle = |c: char| c.is_alphanumeric() || "._-*}])".contains(c);
    line.match_indices(folder).any(|(at, _)| !line.split_at(at).0.ends_with(middle))
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::spoken;

    #[test]
    fn a_folder_of_one_machine_is_found_in_any_text() {
        let text = concat!("\nrun \"/ho", "me/ann/undaunted\"\n");
        assert_eq!(
            spoken(violations, [("notes.txt", text)]),
            [concat!("notes.txt:2: `/ho", "me/` is a folder of one machine: use a relative path")]
        );
        for text in
            [concat!("cd /wo", "rk/x"), concat!("file:///ro", "ot/x"), concat!("(/tmp/ba", "sh_jobs.0)")]
        {
            assert_eq!(spoken(violations, [("a.md", text)]).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_registry_is_found() {
        let text = concat!("curl https://static.cra", "tes.io/x");
        assert_eq!(
            spoken(violations, [("get.sh", text)]),
            [concat!(
                "get.sh:1: `static.cra",
                "tes.io` is a registry: the tool's own settings say where it is"
            )]
        );
    }

    #[test]
    fn the_middle_of_a_path_is_not_a_place() {
        let text =
            concat!("https://example.org/ho", "me/x {folder}/wo", "rk/item $DIR/ro", "ot/a ../wo", "rk/b");
        assert_eq!(spoken(violations, [("a.md", text)]), [""; 0]);
    }

    #[test]
    fn lock_files_and_websites_are_left_alone() {
        let host = concat!("https://registry.npm", "js.org/x");
        let page = "https://crates.io/crates/undaunted-policy https://docs.rs/undaunted-policy";
        assert_eq!(
            spoken(violations, [("Cargo.lock", host), ("ui/package-lock.json", host), ("README.md", page)]),
            [""; 0]
        );
    }
}
