//! One `${…}`: what it names, and its default.
//!
//! Plain data: `names.rs` has checked that the name exists where it stands; the caller supplies the
//! value (`value.rs`).

use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Root {
    Item,
    /// `item_file`: the path of a file holding the item as JSON.
    ItemFile,
    /// `map`: the result of a map; the path begins with one of its fields.
    Map,
    /// `step.NAME`: the result of an earlier step; the path begins with `output` or `status`.
    Step(String),
    /// `env`: the path is the name of one environment variable.
    Env,
    /// `workflow`: the path is `name` or `job`.
    Workflow,
    /// A name given by `capture_output`.
    Captured(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Segment {
    Field(String),
    Index(usize),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub(super) text: String,
    pub(super) root: Root,
    pub(super) path: Vec<Segment>,
    pub(super) default: Option<String>,
    pub(super) raw: bool,
}

impl Reference {
    pub fn root(&self) -> &Root {
        &self.root
    }

    pub fn path(&self) -> &[Segment] {
        &self.path
    }

    /// The text after `:-`, used if the value is missing, null or an empty string.
    pub fn default(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Whether it is `${raw:…}`: in a shell text the value is inserted as it is.
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// The name as written, without `raw:` and without the default: `item.a.b[0]`.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn follow<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        let mut path = self.path.iter();
        path.try_fold(root, |value, segment| match segment {
            Segment::Field(name) => value.as_object()?.get(name),
            Segment::Index(index) => value.as_array()?.get(*index),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn item(path: Vec<Segment>) -> Reference {
        Reference { text: "item".into(), root: Root::Item, path, default: None, raw: false }
    }

    #[test]
    fn a_path_leads_into_objects_and_arrays_or_nowhere() {
        let field = |name: &str| Segment::Field(name.into());
        let value = json!({"a": [{"b": 7}], "0": "zero"});
        let follow = |path| item(path).follow(&value).cloned();
        assert_eq!(follow(vec![]), Some(value.clone()));
        assert_eq!(follow(vec![field("a"), Segment::Index(0), field("b")]), Some(json!(7)));
        assert_eq!(follow(vec![field("0")]), Some(json!("zero")));
        assert_eq!(follow(vec![field("a"), Segment::Index(1)]), None);
        assert_eq!(follow(vec![field("a"), field("b")]), None);
        assert_eq!(follow(vec![Segment::Index(0)]), None);
    }
}
