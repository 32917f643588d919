//! The names that exist where a template stands.
//!
//! Only names are checked: whether an item has a field is known only at run time. An unknown name
//! is refused with the nearest known one.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::reference::Root;
use crate::workflow::diagnostic::nearest;
use crate::workflow::filter::Segment;

const MAP: [&str; 5] = ["total", "successful", "failed", "results", "results_file"];
const STEP: [&str; 2] = ["output", "status"];
const WORKFLOW: [&str; 2] = ["name", "job"];
/// Fields that hold JSON, and so may have fields of their own.
const DEEP: [&str; 2] = ["results", "output"];

/// Up to so many known names, an unknown one is compared with all; with more, only with its neighbours.
const MOST_COMPARED: usize = 500;
/// How many names are listed if none is near.
const MOST_LISTED: usize = 12;

#[derive(Debug, Clone, Copy)]
pub struct KnownNames<'a> {
    /// Allows `item` and `item_file`.
    pub item: bool,
    /// Allows `map`.
    pub map: bool,
    pub captured: &'a BTreeSet<String>,
    /// Allows `step.NAME`.
    pub steps: &'a BTreeSet<String>,
}

/// The reader adds the place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownName {
    pub(super) message: String,
    pub(super) help: String,
}

type Resolved = Result<(Root, Vec<Segment>), UnknownName>;

impl KnownNames<'_> {
    /// Whether the name is ours even without a dot, rather than a shell variable.
    pub(super) fn claims(&self, name: &str) -> bool {
        matches!(name, "item" | "item_file") || self.captured.contains(name)
    }

    /// `text` is the name and its path as written.
    pub(super) fn resolve(&self, text: &str, name: &str, path: Vec<Segment>) -> Resolved {
        match name {
            "item" | "item_file" if !self.item => Err(UnknownName {
                message: format!("`{name}` is not available here"),
                help: "only the commands of a map have an item".to_owned(),
            }),
            "item" => Ok((Root::Item, path)),
            "item_file" => shallow(name, &path).map(|()| (Root::ItemFile, path)),
            "map" if !path.is_empty() && !self.map => Err(UnknownName {
                message: "`map` is not available here".to_owned(),
                help: "only commands after a map can use its results".to_owned(),
            }),
            "map" if !path.is_empty() => one_of(name, &path, &MAP).map(|()| (Root::Map, path)),
            "step" if !path.is_empty() => self.step(&path),
            "env" if !path.is_empty() => {
                let [Segment::Field(_)] = path.as_slice() else {
                    let help = "write `env.NAME` for an environment variable".to_owned();
                    return Err(unknown(text, help));
                };
                Ok((Root::Env, path))
            }
            "workflow" if !path.is_empty() => one_of(name, &path, &WORKFLOW).map(|()| (Root::Workflow, path)),
            _ if self.captured.contains(name) => Ok((Root::Captured(name.to_owned()), path)),
            _ => Err(unknown(text, self.offer(name))),
        }
    }

    fn step(&self, path: &[Segment]) -> Resolved {
        let known = match path.first() {
            Some(Segment::Field(name)) if self.steps.contains(name) => name,
            Some(Segment::Field(name)) => {
                let known = around(self.steps, name);
                return Err(unknown_field("step", path.first(), &known));
            }
            other => return Err(unknown_field("step", other, &around(self.steps, ""))),
        };
        let rest = path.get(1..).unwrap_or_default();
        one_of(&format!("step.{known}"), rest, &STEP)?;
        Ok((Root::Step(known.clone()), rest.to_vec()))
    }

    fn offer(&self, name: &str) -> String {
        let item = ["item", "item_file"].into_iter().filter(|_| self.item);
        let map = ["map"].into_iter().filter(|_| self.map);
        let step = ["step"].into_iter().filter(|_| !self.steps.is_empty());
        let captured = around(self.captured, name);
        let names = item.chain(map).chain(step);
        let names: Vec<&str> = names.chain(["env", "workflow"]).chain(captured).collect();
        offer("", name, &names)
    }
}

fn one_of(root: &str, path: &[Segment], known: &[&str]) -> Result<(), UnknownName> {
    match path.first() {
        Some(Segment::Field(field)) if known.contains(&field.as_str()) => {
            let rest = path.get(1..).unwrap_or_default();
            if DEEP.contains(&field.as_str()) {
                return Ok(());
            }
            shallow(&format!("{root}.{field}"), rest)
        }
        first => Err(unknown_field(root, first, known)),
    }
}

fn shallow(name: &str, path: &[Segment]) -> Result<(), UnknownName> {
    if path.is_empty() {
        return Ok(());
    }
    Err(UnknownName { message: format!("`{name}` has no fields"), help: format!("write `${{{name}}}`") })
}

fn unknown_field(root: &str, found: Option<&Segment>, known: &[&str]) -> UnknownName {
    match found {
        Some(Segment::Field(field)) => {
            unknown(&format!("{root}.{field}"), offer(&format!("{root}."), field, known))
        }
        Some(Segment::Index(_)) | None => UnknownName {
            message: format!("`{root}` must be followed by a name"),
            help: offer(&format!("{root}."), "", known),
        },
    }
}

fn unknown(text: &str, help: String) -> UnknownName {
    UnknownName { message: format!("unknown name `{text}`"), help }
}

/// The names to compare with a word: all, or, since comparing very many for as many errors would take
/// too long, its neighbours in the alphabet.
fn around<'n>(names: &'n BTreeSet<String>, word: &str) -> Vec<&'n str> {
    if names.len() <= MOST_COMPARED {
        return names.iter().map(String::as_str).collect();
    }
    // One more than is listed, so that the list says that there are others.
    let side = MOST_LISTED.saturating_add(1);
    let before = names.range::<str, _>((Bound::Unbounded, Bound::Excluded(word)));
    let after = names.range::<str, _>((Bound::Included(word), Bound::Unbounded));
    let mut around: Vec<&str> = before.rev().take(side).map(String::as_str).collect();
    around.reverse();
    around.extend(after.take(side).map(String::as_str));
    around
}

/// The nearest known name, or all of them if none is near and they are few.
fn offer(prefix: &str, written: &str, known: &[&str]) -> String {
    if let Some(near) = nearest(written, known.iter().copied()) {
        return format!("the nearest known name is `{prefix}{near}`");
    }
    let shown = |name: &&str| format!("`{prefix}{name}`");
    let (first, last) = match known {
        [] => return format!("no known name begins with `{prefix}`"),
        [only] => return format!("the only known name is {}", shown(only)),
        [first @ .., last] if known.len() <= MOST_LISTED => (first, shown(last)),
        _ => (known.get(..MOST_LISTED).unwrap_or_default(), "others".to_owned()),
    };
    let first: Vec<String> = first.iter().map(shown).collect();
    format!("known names are {} and {last}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> Segment {
        Segment::Field(name.into())
    }

    fn path(text: &str) -> (&str, Vec<Segment>) {
        let mut parts = text.split('.');
        let name = parts.next().unwrap();
        let path = parts.map(|part| match part.parse() {
            Ok(index) => Segment::Index(index),
            Err(_) => field(part),
        });
        (name, path.collect())
    }

    fn resolve(item: bool, map: bool, text: &str) -> Resolved {
        let captured = BTreeSet::from(["version".to_owned()]);
        let steps = BTreeSet::from(["build".to_owned(), "lint".to_owned()]);
        let names = KnownNames { item, map, captured: &captured, steps: &steps };
        let (name, path) = path(text);
        names.resolve(text, name, path)
    }

    #[test]
    fn a_known_name_resolves_to_its_root_and_path() {
        for (text, root, rest) in [
            ("item", Root::Item, vec![]),
            ("item.a.0", Root::Item, vec![field("a"), Segment::Index(0)]),
            ("item_file", Root::ItemFile, vec![]),
            ("map.total", Root::Map, vec![field("total")]),
            ("map.results.0.item", Root::Map, vec![field("results"), Segment::Index(0), field("item")]),
            ("step.build.output", Root::Step("build".into()), vec![field("output")]),
            ("step.lint.status", Root::Step("lint".into()), vec![field("status")]),
            ("env.HOME", Root::Env, vec![field("HOME")]),
            ("workflow.job", Root::Workflow, vec![field("job")]),
            ("version", Root::Captured("version".into()), vec![]),
            ("version.a", Root::Captured("version".into()), vec![field("a")]),
        ] {
            assert_eq!(resolve(true, true, text), Ok((root, rest)), "{text}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        let unknown = |text: &str| format!("unknown name `{text}`");
        let near = |name: &str| format!("the nearest known name is `{name}`");
        let known = |names: &str| format!("known names are {names}");
        let maps = "`map.total`, `map.successful`, `map.failed`, `map.results` and `map.results_file`";
        for (text, message, help) in [
            ("itm.x", unknown("itm.x"), near("item")),
            ("verson", unknown("verson"), near("version")),
            (
                "zebra.x",
                unknown("zebra.x"),
                known("`item`, `item_file`, `map`, `step`, `env`, `workflow` and `version`"),
            ),
            ("map.totl", unknown("map.totl"), near("map.total")),
            ("map.0", "`map` must be followed by a name".into(), known(maps)),
            ("map.total.x", "`map.total` has no fields".into(), "write `${map.total}`".into()),
            ("step.biuld.output", unknown("step.biuld"), near("step.build")),
            (
                "step.build",
                "`step.build` must be followed by a name".into(),
                known("`step.build.output` and `step.build.status`"),
            ),
            ("step.build.outptu", unknown("step.build.outptu"), near("step.build.output")),
            ("env.A.b", unknown("env.A.b"), "write `env.NAME` for an environment variable".into()),
            ("workflow.nam", unknown("workflow.nam"), near("workflow.name")),
            ("item_file.x", "`item_file` has no fields".into(), "write `${item_file}`".into()),
        ] {
            let unknown = resolve(true, true, text).unwrap_err();
            assert_eq!((unknown.message, unknown.help), (message, help), "{text}");
        }
    }

    #[test]
    fn an_item_or_a_map_is_known_only_where_there_is_one() {
        for text in ["item", "item.x", "item_file"] {
            let unknown = resolve(false, true, text).unwrap_err();
            assert!(unknown.message.ends_with("is not available here"), "{text}");
        }
        let unknown = resolve(true, false, "map.total").unwrap_err();
        assert_eq!(unknown.message, "`map` is not available here");
    }

    #[test]
    fn of_very_many_names_only_a_few_are_compared_and_listed() {
        let steps: BTreeSet<String> = (0..100_000).map(|n| format!("step-{n:06}")).collect();
        let names = KnownNames { item: false, map: false, captured: &BTreeSet::new(), steps: &steps };
        let help = |name: &str| {
            let path = vec![field(name), field("output")];
            names.resolve("", "step", path).unwrap_err().help
        };
        assert_eq!(help("step-04200"), "the nearest known name is `step.step-042000`");
        let listed = help("x");
        assert!(listed.ends_with(" and others"), "{listed}");
        assert_eq!(listed.matches("`step.").count(), MOST_LISTED);
    }
}
