//! The rules: functions from the files of the repository to violations. They neither print nor repair.

use super::{SourceTree, TidyViolation};

mod code;
mod dead_links;
mod files;
mod names;
mod promises;
mod words;

pub(crate) const ALL: [fn(&SourceTree) -> Vec<TidyViolation>; 14] = [
    code::bare_ids,
    code::catch_alls,
    code::long_functions,
    dead_links::violations,
    files::long_files,
    files::missing_headers,
    files::code_in_mod_files,
    files::verify_is_the_one_command,
    names::empty_words,
    names::repeated_type_names,
    promises::violations,
    words::foreign_places,
    words::missing_agents,
    words::unfinished_marks,
];

/// What a rule says about these files, as `path:line: what`.
#[cfg(test)]
fn check<const N: usize>(
    rule: fn(&SourceTree) -> Vec<TidyViolation>,
    files: [(&str, &str); N],
) -> Vec<String> {
    use super::TextFile;
    let texts = files.into_iter().map(|(path, text)| TextFile::of(path, text)).collect();
    rule(&SourceTree::of(texts)).iter().map(TidyViolation::to_string).collect()
}
