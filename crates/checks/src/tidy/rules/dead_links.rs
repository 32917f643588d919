//! A link inside the repository leads to a file, and its anchor to a heading.
//!
//! Links to the web are not followed: such a check fails for reasons that are not ours. Anchors are looked up
//! in Markdown only; `#L10` of a source file belongs to the website.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::markdown::{self, Link};
use crate::tidy::text_file::{FileLanguage, TextFile};
use crate::tidy::{SourceTree, TidyViolation};

pub(crate) fn violations(tree: &SourceTree) -> Vec<TidyViolation> {
    let pages = || tree.texts().iter().filter(|file| file.language() == FileLanguage::Markdown);
    let anchors = pages().map(|page| (page.path(), markdown::anchors(page.text()))).collect();
    let site = Site { tree, anchors };
    pages()
        .flat_map(|page| {
            let links = markdown::links(page.text()).into_iter();
            links.filter_map(|link| Some(page.violation(link.line, site.dead(page, &link)?)))
        })
        .collect()
}

struct Site<'a> {
    tree: &'a SourceTree,
    anchors: BTreeMap<&'a str, BTreeSet<String>>,
}

impl Site<'_> {
    fn dead(&self, page: &TextFile, link: &Link) -> Option<String> {
        let target = link.target.as_str();
        if is_outside(target) {
            return None;
        }
        let (path, anchor) =
            target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
        let Some(path) = resolved(page.path(), path) else {
            return Some(format!("`{target}` leads out of the repository"));
        };
        if !self.tree.holds(&path) {
            return Some(format!("`{target}` leads to no file"));
        }
        let (anchor, known) = (anchor?, self.anchors.get(path.as_str())?);
        (!known.contains(anchor)).then(|| format!("`{target}` leads to no heading of {path}"))
    }
}

/// Whether the link has a scheme (`https:`, `mailto:`) or names a host.
fn is_outside(target: &str) -> bool {
    let scheme = target
        .split_once(':')
        .is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)));
    scheme || target.starts_with("//")
}

/// The path from the root that `link` means on `page`, or nothing if it climbs above the root.
fn resolved(page: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    // A leading `/` means the root of the repository, as it does on GitHub.
    let base = if link.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = vec![];
    for part in base.split('/').chain(link.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::tidy::rules::check;

    const GUIDE: (&str, &str) = ("docs/guide/start.md", "# Start\n\n## When to stop?\n");

    #[test]
    fn living_links_are_left_alone() {
        let text = "# Top\n[a](docs/guide/start.md) [b](docs/guide) [c](./docs/guide/start.md#when-to-stop)\n\
                    [d](#top) [e](https://example.org/x#y) [f](mailto:a@example.org) [g](/docs/guide/) [h](b.rs#L10)\n";
        assert_eq!(check(violations, [("README.md", text), GUIDE, ("b.rs", "")]), [""; 0]);
    }

    #[test]
    fn a_link_to_no_file_is_found() {
        assert_eq!(
            check(violations, [("docs/a.md", "\n[a](guide/stop.md)\n"), GUIDE]),
            ["docs/a.md:2: `guide/stop.md` leads to no file"]
        );
    }

    #[test]
    fn a_link_is_read_from_its_own_folder() {
        let text = "[up](../guide/start.md) [wrong](guide/start.md)";
        assert_eq!(
            check(violations, [("docs/errors/a.md", text), GUIDE]),
            ["docs/errors/a.md:1: `guide/start.md` leads to no file"]
        );
    }

    #[test]
    fn an_anchor_without_heading_is_found_here_and_there() {
        let text = "[a](#nowhere) [b](docs/guide/start.md#when-to-stop?)";
        assert_eq!(
            check(violations, [("README.md", text), GUIDE]),
            [
                "README.md:1: `#nowhere` leads to no heading of README.md",
                "README.md:1: `docs/guide/start.md#when-to-stop?` leads to no heading of docs/guide/start.md"
            ]
        );
    }

    #[test]
    fn a_link_above_the_root_is_found() {
        assert_eq!(
            check(violations, [("README.md", "[a](../other/x.md)")]),
            ["README.md:1: `../other/x.md` leads out of the repository"]
        );
    }
}
