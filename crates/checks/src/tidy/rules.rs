//! The rules, one a file.
//!
//! A rule takes the tree and returns what breaks it; it neither prints nor repairs. The list
//! here is the only place that knows them all.

use super::{Tree, Violation};

mod bare_ids;
mod catch_alls;
mod ci_runs_verify;
mod dead_links;
mod file_length;
mod foreign_places;
mod function_length;
mod mod_files;
mod module_header;
mod names;
mod promises;
mod type_names;
mod unfinished_marks;

/// Every rule of the house.
pub(crate) const ALL: [fn(&Tree) -> Vec<Violation>; 13] = [
    bare_ids::violations,
    catch_alls::violations,
    ci_runs_verify::violations,
    dead_links::violations,
    file_length::violations,
    foreign_places::violations,
    function_length::violations,
    mod_files::violations,
    module_header::violations,
    names::violations,
    promises::violations,
    type_names::violations,
    unfinished_marks::violations,
];

/// What a rule says about a tree of these files: `path:line` and the sentence, for its tests.
#[cfg(test)]
fn spoken<const N: usize>(rule: fn(&Tree) -> Vec<Violation>, files: [(&str, &str); N]) -> Vec<String> {
    use super::TextFile;
    let texts = files.into_iter().map(|(path, text)| TextFile::of(path, text)).collect();
    rule(&Tree::of(texts)).iter().map(Violation::to_string).collect()
}
