//! Texts with references, filled with hostile values.
//!
//! Any text is parsed as a shell template, as a plain template and as strings in JSON, against many names and
//! against none. Accepted templates are rendered with marks that occur nowhere else, so that they can be
//! found: a value is where its reference was, and in a shell template nowhere but in the environment.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use undaunted_engine::workflow::template::{
    JsonTemplate, KnownNames, Reference, Script, ShellTemplate, SyntaxError, TemplateValues, TextTemplate,
    ValueError,
};

use super::law::{Law, first_broken, uphold};

/// Larger than what a command can be given.
const TOO_LARGE: usize = 100 * 1024 + 1;

/// Parses and renders the text, and returns how it was accepted and what it holds.
pub fn workflow_template(data: &[u8]) -> BTreeSet<&'static str> {
    let text = String::from_utf8_lossy(data);
    let captured = ["version", "a-b", "list"].map(str::to_owned).into();
    let steps = ["build", "a"].map(str::to_owned).into();
    let nothing = BTreeSet::new();
    let all = KnownNames { item: true, map: true, captured: &captured, steps: &steps };
    let none = KnownNames { item: false, map: false, captured: &nothing, steps: &nothing };
    let mut outcomes = BTreeSet::new();
    for names in [all, none] {
        outcomes.extend(shell(&text, &names));
        outcomes.extend(plain(&text, &names));
        json(&text, &names);
    }
    outcomes
}

fn shell(text: &str, names: &KnownNames<'_>) -> BTreeSet<&'static str> {
    let parsed = ShellTemplate::parse(text, names);
    let same = parsed == ShellTemplate::parse(text, names);
    uphold("the same text is read the same", same, &text);
    let template = match parsed {
        Ok(template) => template,
        Err(errors) => {
            refused(text, &errors);
            return BTreeSet::from(["shell refused"]);
        }
    };
    shell_laws(&template);
    if template.references().next().is_none() && !may_hold_literal(text) {
        let script = template.render(&FixedValues::NOTHING);
        let kept = script.as_ref().is_ok_and(|script| script.text == text);
        uphold("without references a text stays as it is", kept, &(text, script));
    }
    words("shell", template.references())
}

fn plain(text: &str, names: &KnownNames<'_>) -> BTreeSet<&'static str> {
    let parsed = TextTemplate::parse(text, names);
    let same = parsed == TextTemplate::parse(text, names);
    uphold("the same text is read the same", same, &text);
    let template = match parsed {
        Ok(template) => template,
        Err(errors) => {
            refused(text, &errors);
            return BTreeSet::from(["text refused"]);
        }
    };
    text_laws(&template);
    if template.references().next().is_none() && !text.contains("$${") {
        let filled = template.render(&FixedValues::NOTHING);
        let kept = filled.as_ref().is_ok_and(|filled| filled == text);
        uphold("without references a text stays as it is", kept, &(text, filled));
    }
    words("text", template.references())
}

fn json(text: &str, names: &KnownNames<'_>) {
    let inside = json!({"text": text, "list": [7, text], text: [null]});
    let read = serde_json::from_str(text).ok();
    for value in [Value::from(text), inside].into_iter().chain(read) {
        match JsonTemplate::parse(&value, names) {
            Ok(template) => {
                json_laws(&template);
                let alone = template.references().next().is_none();
                let filled = template.render(&FixedValues::NOTHING);
                let kept = filled.as_ref() == Ok(&value);
                let literal = value.to_string().contains("$${");
                let law = "without references JSON stays as it is";
                uphold(law, kept || literal || !alone, &(&value, filled));
            }
            Err(errors) => {
                uphold("JSON is refused for a reason", !errors.is_empty(), &value);
                for found in errors {
                    let string = value.pointer(&found.pointer).and_then(Value::as_str);
                    refused(string.unwrap_or_default(), &[found.error]);
                }
            }
        }
    }
}

/// The marked range of an error lies in the text.
fn refused(text: &str, errors: &[SyntaxError]) {
    uphold("a text is refused for a reason", !errors.is_empty(), &text);
    let laws = errors.iter().flat_map(|error| {
        let helps = error.help.as_ref().is_none_or(|help| !help.is_empty());
        let marked = text.get(error.range.clone());
        [
            ("a refusal has words", helps && !error.message.is_empty()),
            ("a refusal marks a part of the text", marked.is_some_and(|marked| !marked.is_empty())),
        ]
    });
    let sorted = errors.is_sorted_by_key(|error| error.range.start);
    let order = ("refusals come in the order of the text", sorted);
    if let Some(law) = first_broken(laws.chain([order])) {
        uphold(law, false, &(text, errors));
    }
}

/// Whether there may be a `$${`, hidden by backslashes or not.
fn may_hold_literal(text: &str) -> bool {
    text.replace(['\\', '\n'], "").contains("$${")
}

fn words<'r>(kind: &'static str, references: impl Iterator<Item = &'r Reference>) -> BTreeSet<&'static str> {
    let mut outcomes = BTreeSet::from([kind]);
    for reference in references {
        outcomes.insert("reference");
        outcomes.extend(reference.is_raw().then_some("raw"));
        outcomes.extend(reference.default().map(|_| "default"));
    }
    outcomes
}

/// One value for all `raw:` references, and one for all others.
pub(super) struct FixedValues {
    pub(super) raw: Option<Value>,
    pub(super) other: Option<Value>,
}

impl FixedValues {
    pub(super) const NOTHING: Self = Self { raw: None, other: None };

    fn all(value: &Value) -> Self {
        Self { raw: Some(value.clone()), other: Some(value.clone()) }
    }
}

impl TemplateValues for FixedValues {
    fn value(&self, reference: &Reference) -> Option<Cow<'_, Value>> {
        let given = if reference.is_raw() { &self.raw } else { &self.other };
        given.as_ref().map(Cow::Borrowed)
    }
}

/// A word that does not occur in the text.
pub(super) fn mark(stem: &str, text: &str) -> String {
    let mut marks = (0_u64..).map(|number| format!("{stem}{number}x"));
    marks.find(|mark| !text.contains(mark)).unwrap_or_default()
}

/// Hostile values that are never refused, each with the mark in it.
pub(super) fn hostile(mark: &str) -> [Value; 8] {
    [
        Value::from(mark),
        json!(format!("'; echo {mark} #\"$(echo {mark})`{mark}`\\")),
        json!(format!("${{item}} ${{raw:item}} $${{ {mark} $'\\n{mark}'")),
        json!(format!("-n\n{mark}\r\n\t*?[a] {mark}\u{1b}[31m")),
        json!([mark, 1, {"a": mark}]),
        json!({"b": {mark: null}}),
        json!(format!("é接\u{feff}{mark}\u{202e}")),
        json!(format!("EOF\n{mark}\nEOF\n")),
    ]
}

/// No value changes what the shell runs.
pub(super) fn shell_laws(template: &ShellTemplate) {
    let filled = |raw: &str, other: &Value| {
        let given = FixedValues { raw: Some(raw.into()), other: Some(other.clone()) };
        template.render(&given)
    };
    let first = filled("0", &json!(0));
    uphold("small values fill a text", first.is_ok(), &template);
    let Ok(first) = first else { return };
    let (raw, other) = (mark("raw", &first.text), mark("other", &first.text));
    let marked = filled(&raw, &json!(other));
    let marked = marked.unwrap_or_else(|_| first.clone());
    for value in hostile(&other) {
        let hostile = filled(&raw, &value);
        let facts = (template, &value, &hostile);
        uphold("no hostile value keeps a text from being filled", hostile.is_ok(), &facts);
        let law = hostile.as_ref().ok().and_then(|hostile| {
            broken_by_script(template.references(), hostile, &marked.text, &value, &other)
        });
        if let Some(law) = law {
            uphold(law, false, &facts);
        }
    }
    let again = filled("1", &json!(1)).map(|script| script.text);
    let moved = marked.text.replace(&raw, "1");
    uphold("a raw value stands where its reference was", again.as_ref() == Ok(&moved), &(template, again));
    unusable(template.references(), true, &|given| template.render(given).err());
}

/// A value is where its reference was, and nowhere else.
pub(super) fn text_laws(template: &TextTemplate) {
    let filled = |value: &str| template.render(&FixedValues::all(&value.into()));
    let first = filled("0").unwrap_or_default();
    let mark = mark("value", &first);
    let marked = filled(&mark).unwrap_or_default();
    let number = template.references().count();
    let mut laws: Vec<Law> = vec![
        ("every reference becomes its value", marked.matches(&mark).count() == number),
        ("nothing but the values differs", marked.replace(&mark, "0") == first),
    ];
    for value in hostile(&mark) {
        let inserted = template.render(&FixedValues::all(&value));
        let expected = marked.replace(&mark, &text_of(&value));
        laws.push(("a value is inserted as it is", inserted == Ok(expected)));
    }
    if let Some(law) = first_broken(laws) {
        uphold(law, false, &(template, marked));
    }
    unusable(template.references(), true, &|given| template.render(given).err());
}

/// A value is where its reference was, and no key is a template.
pub(super) fn json_laws(template: &JsonTemplate) {
    let filled = |value: &Value| template.render(&FixedValues::all(value)).unwrap_or_default();
    let first = filled(&"0".into());
    // Compared as text, without quotation marks: a string and a value that holds it are equal.
    let shown = first.to_string();
    let mark = mark("value", &shown);
    let marked = filled(&json!(mark)).to_string();
    let number = template.references().count();
    let laws = [
        ("every reference becomes its value", marked.matches(&mark).count() == number),
        ("nothing but the values differs", marked.replace(&mark, "0") == shown),
        ("a key is no template", keys(&filled(&json!([mark, {}]))) == keys(&first)),
    ];
    for value in hostile(&mark) {
        let refused = template.render(&FixedValues::all(&value)).err();
        uphold("no value keeps JSON from being filled", refused.is_none(), &refused);
    }
    if let Some(law) = first_broken(laws) {
        uphold(law, false, &(template, marked));
    }
    unusable(template.references(), false, &|given| template.render(given).err());
}

fn keys(value: &Value) -> Vec<String> {
    let mut found = vec![];
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(values) => waiting.extend(values),
            Value::Object(fields) => {
                found.extend(fields.keys().cloned());
                waiting.extend(fields.values());
            }
            _ => {}
        }
    }
    // A value may bring keys of its own, but no key disappears.
    found.sort();
    found
}

/// Values that cannot be rendered are refused with the right reason, unless there is no reference.
fn unusable<'r>(
    references: impl Iterator<Item = &'r Reference>,
    given_to_commands: bool,
    refusal: &dyn Fn(&FixedValues) -> Option<ValueError>,
) {
    let references: Vec<&Reference> = references.collect();
    let some = !references.is_empty();
    let bare = references.iter().any(|reference| reference.default().is_none());
    let missing = refusal(&FixedValues::NOTHING);
    let null = refusal(&FixedValues::all(&Value::Null));
    let nul = refusal(&FixedValues::all(&"a\0b".into()));
    let size = if given_to_commands { TOO_LARGE } else { 1 };
    let large = refusal(&FixedValues::all(&"x".repeat(size).into()));
    let limits = some && given_to_commands;
    let laws = [
        ("a missing value is refused, or has a default", missing.is_some() >= bare),
        ("null is as good as missing", null == missing),
        ("no command is given a NUL character", matches!(nul, Some(ValueError::HoldsNul { .. })) == limits),
        (
            "no command is given more than it can take",
            matches!(large, Some(ValueError::TooLarge { .. })) == limits,
        ),
    ];
    if let Some(law) = first_broken(laws) {
        uphold(law, false, &(references, missing, nul, large));
    }
}

/// The first law that the script breaks. All references but the `raw:` ones were given `value`, which
/// contains the mark; `expected` is the text of the script for another value.
fn broken_by_script<'r>(
    references: impl Iterator<Item = &'r Reference>,
    script: &Script,
    expected: &str,
    value: &Value,
    mark: &str,
) -> Option<&'static str> {
    let references: Vec<&Reference> = references.collect();
    let once: BTreeSet<&Reference> = references.iter().copied().collect();
    let handed = references.iter().filter(|reference| !reference.is_raw());
    let names: BTreeSet<&str> = script.env.iter().map(|(name, _)| name.as_str()).collect();
    let read = |name: &&str| script.text.contains(&format!("${{{name}}}"));
    let ours = |name: &&str| name.starts_with("__undaunted_");
    first_broken([
        ("no value becomes code", !script.text.contains(mark)),
        ("what is run does not depend on the values", script.text == expected),
        ("a reference is named once", once.len() == references.len()),
        (
            "every reference has a variable of its own",
            script.env.len() == handed.count() && names.len() == script.env.len(),
        ),
        (
            "a variable holds the value and nothing else",
            script.env.iter().all(|(_, held)| *held == text_of(value)),
        ),
        ("every variable is read", names.iter().all(read)),
        ("a variable is ours by its name", names.iter().all(ours)),
    ])
}

/// A value as a command gets it: a string as it is, anything else as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
