//! From text to tree.
//!
//! The parser reads; this file bounds what it may build: no tree deeper than a hundred levels, no
//! aliases that multiply, no tags, no duplicate keys. It never recurses over the depth of the text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use granit_parser::{ErrorKind, Event as Parsed, Parser, ScalarStyle, ScanError, options};

use super::tree::{YamlEntry, YamlNode, YamlValue};
use crate::workflow::diagnostic::{Diagnostic, DiagnosticCode, Problems};
use crate::workflow::source::{Source, Span};

const DEEPEST: usize = 100;
const MOST_ALIASED: usize = 100_000;

/// `None` if the text is not YAML. Problems that do not prevent reading are reported too.
pub(crate) fn parse<'s>(source: &'s Source, problems: &mut Problems) -> Option<YamlNode<'s>> {
    if source.text().len() > Source::MOST_BYTES {
        let message = format!("the file is too large: {} bytes", source.text().len());
        let help = format!("a file can have at most {} bytes", Source::MOST_BYTES);
        problems.push(Diagnostic::new(DiagnosticCode::TooLarge, Span::default(), message).help(help));
        return None;
    }
    let mut tree = TreeBuilder::new(source, problems);
    let limits = options! { flow_nesting_limit: 1000, block_nesting_limit: 1000 };
    for event in Parser::new_from_str_with_options(source.text(), limits) {
        let taken = match event {
            Ok((event, span)) => {
                // A tag stands before its value, and the problem points at it.
                let place = span.tag_span().unwrap_or(span);
                tree.take(event, Span::new(place.byte_range().unwrap_or_default()))
            }
            Err(error) => Err(tree.unreadable(&error)),
        };
        if let Err(problem) = taken {
            problems.push(problem);
            return None;
        }
    }
    let root = tree.root;
    if root.is_none() {
        let message = "the file contains no workflow";
        let help = "write a list of commands, such as `- shell: echo hello`";
        problems.push(Diagnostic::new(DiagnosticCode::Empty, Span::default(), message).help(help));
    }
    root
}

struct TreeBuilder<'s, 'p> {
    source: &'s Source,
    problems: &'p mut Problems,
    open: Vec<OpenNode<'s>>,
    anchors: BTreeMap<usize, (YamlNode<'s>, usize)>,
    aliased: usize,
    documents: usize,
    root: Option<YamlNode<'s>>,
}

struct OpenNode<'s> {
    start: Span,
    anchor: usize,
    /// Values in it, itself included.
    size: usize,
    content: OpenContent<'s>,
}

enum OpenContent<'s> {
    List(Vec<YamlNode<'s>>),
    Map {
        entries: Vec<YamlEntry<'s>>,
        /// An index of the keys, once they are too many to search.
        seen: BTreeMap<Cow<'s, str>, Span>,
        key: Option<(Cow<'s, str>, Span)>,
    },
}

impl<'s, 'p> TreeBuilder<'s, 'p> {
    fn new(source: &'s Source, problems: &'p mut Problems) -> Self {
        Self {
            source,
            problems,
            open: Vec::new(),
            anchors: BTreeMap::new(),
            aliased: 0,
            documents: 0,
            root: None,
        }
    }

    fn take(&mut self, event: Parsed<'s>, span: Span) -> Result<(), Diagnostic> {
        if let Some(tag) = event.tag() {
            let message = format!("the tag `{}` is not supported", tag.original());
            let help = "remove the tag";
            return Err(Diagnostic::new(DiagnosticCode::Syntax, span, message).help(help));
        }
        match event {
            Parsed::Scalar(text, style, anchor, _) => {
                // A long text counts for more than one, because aliases copy it.
                let size = (text.len() / 64).saturating_add(1);
                let value = match style {
                    ScalarStyle::Plain => YamlValue::of_plain(text),
                    _ => YamlValue::Text(text),
                };
                self.put(YamlNode { span, value }, size, anchor)
            }
            Parsed::SequenceStart(_, anchor, _) => self.begin(span, anchor, OpenContent::List(Vec::new())),
            Parsed::MappingStart(_, anchor, _) => {
                let content = OpenContent::Map { entries: Vec::new(), seen: BTreeMap::new(), key: None };
                self.begin(span, anchor, content)
            }
            Parsed::SequenceEnd | Parsed::MappingEnd => self.end(span),
            Parsed::Alias(anchor) => self.alias(anchor, span),
            Parsed::DocumentStart(..) => {
                self.documents = self.documents.saturating_add(1);
                if self.documents > 1 {
                    let message = "the file contains a second document";
                    let help = "put each workflow into a file of its own";
                    return Err(Diagnostic::new(DiagnosticCode::Syntax, span, message).help(help));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, start: Span, anchor: usize, content: OpenContent<'s>) -> Result<(), Diagnostic> {
        if self.open.len() >= DEEPEST {
            return Err(too_deep(start));
        }
        self.open.push(OpenNode { start, anchor, size: 1, content });
        Ok(())
    }

    fn end(&mut self, span: Span) -> Result<(), Diagnostic> {
        let Some(closed) = self.open.pop() else {
            return Ok(());
        };
        let value = match closed.content {
            // There may be a million of these, so spare capacity is released.
            OpenContent::List(mut nodes) => {
                nodes.shrink_to_fit();
                YamlValue::List(nodes)
            }
            OpenContent::Map { mut entries, .. } => {
                entries.shrink_to_fit();
                YamlValue::Map(entries)
            }
        };
        let span = Span { start: closed.start.start, end: span.end.max(closed.start.end) };
        self.put(YamlNode { span, value }, closed.size, closed.anchor)
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Diagnostic> {
        // Inside its own anchor an alias is not known yet.
        let Some((node, size)) = self.anchors.get(&anchor) else {
            let message = "the alias is inside the value it refers to";
            return Err(Diagnostic::new(DiagnosticCode::Syntax, span, message));
        };
        let (mut node, size) = (node.clone(), *size);
        node.span = span;
        self.add_aliased(size, span)?;
        self.put(node, size, 0)
    }

    fn add_aliased(&mut self, size: usize, span: Span) -> Result<(), Diagnostic> {
        self.aliased = self.aliased.saturating_add(size);
        if self.aliased <= MOST_ALIASED {
            return Ok(());
        }
        let message = format!("anchors and aliases add more than {MOST_ALIASED} values to this file");
        Err(Diagnostic::new(DiagnosticCode::TooLarge, span, message))
    }

    /// Puts a finished value where it belongs: as the root, into a list, as a key or its value.
    fn put(&mut self, node: YamlNode<'s>, size: usize, anchor: usize) -> Result<(), Diagnostic> {
        if anchor > 0 {
            // Keeping a copy costs what the anchor holds, so it counts like an alias.
            self.add_aliased(size, node.span)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = (node.value != YamlValue::Null).then_some(node);
            return Ok(());
        };
        open.size = open.size.saturating_add(size);
        match &mut open.content {
            OpenContent::List(nodes) => nodes.push(node),
            OpenContent::Map { entries, seen, key } => match key.take() {
                None => *key = Some(key_of(self.source, node)?),
                Some((key, key_span)) => {
                    if let Some(first) = earlier(entries, seen, &key) {
                        let message = format!("the key `{key}` is repeated");
                        let problem = Diagnostic::new(DiagnosticCode::DuplicateKey, key_span, message);
                        let problem = problem.related(first, "first used here");
                        self.problems.push(problem);
                    } else {
                        if !seen.is_empty() {
                            seen.insert(key.clone(), key_span);
                        }
                        entries.push(YamlEntry { key, key_span, node });
                    }
                }
            },
        }
        Ok(())
    }

    fn unreadable(&self, error: &ScanError) -> Diagnostic {
        let text = self.source.text();
        let at = error.marker().byte_offset().unwrap_or(text.len()).min(text.len());
        let span = Span::new(at..at);
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return too_deep(span);
        }
        let problem = Diagnostic::new(DiagnosticCode::Syntax, span, error.info());
        let (_, line) = self.source.lines(span, span);
        if text.get(line).unwrap_or_default().contains("${") {
            return problem.help("inside braces and brackets, put `${…}` in quotes");
        }
        problem
    }
}

fn too_deep(span: Span) -> Diagnostic {
    let message = format!("the file is nested more than {DEEPEST} levels deep");
    Diagnostic::new(DiagnosticCode::TooLarge, span, message)
}

/// Where the key was first used. A small mapping is searched; a large one has an index.
fn earlier<'s>(
    entries: &[YamlEntry<'s>],
    seen: &mut BTreeMap<Cow<'s, str>, Span>,
    key: &str,
) -> Option<Span> {
    const SMALL: usize = 16;
    if seen.is_empty() && entries.len() < SMALL {
        let twin = entries.iter().find(|entry| entry.key == key);
        return twin.map(|entry| entry.key_span);
    }
    if seen.is_empty() {
        let entries = entries.iter();
        seen.extend(entries.map(|entry| (entry.key.clone(), entry.key_span)));
    }
    seen.get(key).copied()
}

/// A key is taken as written, even if it looks like a number: `200: ok` has the key `200`.
fn key_of<'s>(source: &'s Source, node: YamlNode<'s>) -> Result<(Cow<'s, str>, Span), Diagnostic> {
    let span = node.span;
    match node.value {
        YamlValue::Text(text) => Ok((text, span)),
        YamlValue::List(_) | YamlValue::Map(_) => {
            let message = format!("{} cannot be a key", node.kind());
            Err(Diagnostic::new(DiagnosticCode::Syntax, span, message))
        }
        _ => {
            let written = source.text().get(span.range()).unwrap_or_default();
            Ok((written.into(), span))
        }
    }
}
