//! The links, anchors and tables of a Markdown page.
//!
//! Markdown is read by a real parser, so a link in a code block is no link. Anchors follow GitHub's rules,
//! because that is where the pages are read.

use std::collections::{BTreeMap, BTreeSet};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::text_file::line_of;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
}

/// Links and images, in Markdown or in HTML.
pub(crate) fn links(text: &str) -> Vec<Link> {
    let mut found = vec![];
    for (event, range) in parser(text).into_offset_iter() {
        let line = line_of(text, range.start);
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                found.push(Link { line, target: dest_url.into_string() });
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                let targets = attributes(&html, &["href", "src"]);
                found.extend(targets.map(|target| Link { line, target: target.to_owned() }));
            }
            _ => {}
        }
    }
    found
}

/// Headings, and names given in HTML.
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
                found.insert(if *times == 0 { slug } else { format!("{slug}-{times}") });
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableRow {
    pub(crate) line: usize,
    pub(crate) cells: Vec<TableCell>,
}

/// A cell as the reader sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableCell {
    pub(crate) text: String,
    /// The pieces of the text that are code.
    pub(crate) code: Vec<String>,
}

/// The rows of all tables, without their headers.
pub(crate) fn rows(text: &str) -> Vec<TableRow> {
    let mut found: Vec<TableRow> = vec![];
    let mut row: Option<TableRow> = None;
    for (event, range) in parser(text).into_offset_iter() {
        if matches!(event, Event::Start(Tag::TableRow)) {
            let line = line_of(text, range.start);
            row = Some(TableRow { line, cells: vec![] });
            continue;
        }
        let Some(TableRow { cells, .. }) = &mut row else {
            continue;
        };
        match (event, cells.last_mut()) {
            (Event::End(TagEnd::TableRow), _) => found.extend(row.take()),
            (Event::Start(Tag::TableCell), _) => cells.push(TableCell::default()),
            (Event::Text(text), Some(cell)) => cell.text.push_str(&text),
            (Event::Code(code), Some(cell)) => {
                cell.text.push_str(&code);
                cell.code.push(code.into_string());
            }
            _ => {}
        }
    }
    found
}

fn parser(text: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_FOOTNOTES;
    Parser::new_ext(text, options)
}

/// GitHub's name for a heading: lower case, no punctuation, hyphens for spaces.
fn slug(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn attributes<'a>(html: &'a str, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let mut parts = html.split('"');
    std::iter::from_fn(move || Some((parts.next()?, parts.next()?))).filter_map(move |(before, value)| {
        let name = before.trim_end().strip_suffix('=')?.trim_end();
        let name = name.rsplit(char::is_whitespace).next()?;
        names.contains(&name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::{TableCell, TableRow, anchors, links, rows};

    fn targets(text: &str) -> Vec<(usize, String)> {
        links(text).into_iter().map(|link| (link.line, link.target)).collect()
    }

    #[test]
    fn links_are_found_in_every_spelling() {
        let text = "[a](one.md)\n![b](two.png)\n[c][d]\n<img alt=\"x\" src=\"four.png\">\n\n[d]: three.md\n";
        let expected = [(1, "one.md"), (2, "two.png"), (3, "three.md"), (4, "four.png")];
        assert_eq!(targets(text), expected.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn a_link_in_code_is_no_link() {
        assert_eq!(targets("`[a](one.md)`\n\n```text\n[b](two.md)\n```\n\n    [c](three.md)\n"), []);
    }

    #[test]
    fn rows_are_read_cell_by_cell_without_the_names_of_the_columns() {
        let text = "| a | b |\n|---|---|\n| one *two* | `x` and `y` |\n| | |\n\n```text\n| c |\n```\n";
        let cell = |text: &str, code: &[&str]| TableCell {
            text: text.to_owned(),
            code: code.iter().map(|&code| code.to_owned()).collect(),
        };
        let expected = [
            TableRow { line: 3, cells: vec![cell("one two", &[]), cell("x and y", &["x", "y"])] },
            TableRow { line: 4, cells: vec![TableCell::default(), TableCell::default()] },
        ];
        assert_eq!(rows(text), expected);
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        let text = "# Try again, or `stop`?\n\n## A_b - c\n\nSame\n====\n\n## Same\n\n## Żółć *1.5*\n";
        let expected = ["try-again-or-stop", "a_b---c", "same", "same-1", "żółć-15"];
        assert_eq!(anchors(text), expected.map(str::to_owned).into());
    }

    #[test]
    fn a_name_in_html_is_an_anchor_and_a_heading_in_code_is_not() {
        let text = "<a id=\"here\"></a>\n\n```sh\n# not a heading\n```\n";
        assert_eq!(anchors(text), ["here".to_owned()].into());
    }
}
