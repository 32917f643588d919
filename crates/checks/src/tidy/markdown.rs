//! The links of a page and the places on it that a link can point at.
//!
//! Markdown is read by a real parser, so a link in a code block is no link. Anchors follow
//! GitHub's rules, because that is where the pages are read. Whether a link leads anywhere is
//! asked elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::text_file::line_of;

/// A link as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
}

/// Every link and image of the page, whether in Markdown or in HTML.
pub(crate) fn links(text: &str) -> Vec<Link> {
    let mut found = vec![];
    for (event, range) in parser(text).into_offset_iter() {
        let line = line_of(text, range.start);
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                found.push(Link {
                    line,
                    target: dest_url.into_string(),
                });
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let targets = attributes(&html, &["href", "src"]);
                found.extend(targets.map(|target| Link {
                    line,
                    target: target.to_owned(),
                }));
            }
            _ => {}
        }
    }
    found
}

/// Every anchor of the page: its headings, and names given in HTML.
pub(crate) fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::End(TagEnd::Heading(_)), Some(title)) => {
                let slug = slug(title);
                let times = seen.entry(slug.clone()).or_default();
                found.insert(if *times == 0 {
                    slug
                } else {
                    format!("{slug}-{times}")
                });
                *times += 1;
                heading = None;
            }
            (Event::Text(text) | Event::Code(text), Some(title)) => title.push_str(&text),
            (Event::Html(html) | Event::InlineHtml(html), _) => {
                found.extend(attributes(&html, &["id", "name"]).map(str::to_owned));
            }
            _ => {}
        }
    }
    found
}

fn parser(text: &str) -> Parser<'_> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    Parser::new_ext(text, options)
}

/// GitHub's name for a heading: lower case, no punctuation, hyphens for spaces.
fn slug(title: &str) -> String {
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The quoted values of these attributes in a piece of HTML.
fn attributes<'a>(html: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let mut parts = html.split('"');
    std::iter::from_fn(move || Some((parts.next()?, parts.next()?))).filter_map(
        move |(before, value)| {
            let name = before.trim_end().strip_suffix('=')?.trim_end();
            let name = name.rsplit(char::is_whitespace).next()?;
            names.contains(&name).then_some(value)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::{anchors, links};

    fn targets(text: &str) -> Vec<(usize, String)> {
        links(text)
            .into_iter()
            .map(|link| (link.line, link.target))
            .collect()
    }

    #[test]
    fn links_are_found_in_every_spelling() {
        let text = "[a](one.md)\n![b](two.png)\n[c][d]\n<img alt=\"x\" src=\"four.png\">\n\n[d]: three.md\n";
        let expected = [
            (1, "one.md"),
            (2, "two.png"),
            (3, "three.md"),
            (4, "four.png"),
        ];
        assert_eq!(
            targets(text),
            expected.map(|(line, target)| (line, target.to_owned()))
        );
    }

    #[test]
    fn a_link_in_code_is_no_link() {
        assert_eq!(
            targets("`[a](one.md)`\n\n```text\n[b](two.md)\n```\n\n    [c](three.md)\n"),
            []
        );
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        let text =
            "# Try again, or `stop`?\n\n## A_b - c\n\nSame\n====\n\n## Same\n\n## Żółć *1.5*\n";
        let expected = ["try-again-or-stop", "a_b---c", "same", "same-1", "żółć-15"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }

    #[test]
    fn a_name_in_html_is_an_anchor_and_a_heading_in_code_is_not() {
        let text = "<a id=\"here\"></a>\n\n```sh\n# not a heading\n```\n";
        assert_eq!(anchors(text), ["here".to_owned()].into());
    }
}
