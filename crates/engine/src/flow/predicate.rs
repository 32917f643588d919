//! Conditions of flow steps, in CEL.
//!
//! Parsing and evaluation recurse for every nesting level, and a text may nest as deep as it is long. So they
//! run on a thread of their own, whose stack is large enough for the longest text that is accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use cel::{Context, Program};
use serde_json::Value;

const MAX_BYTES: usize = 4096;
const STACK_BYTES: usize = 256 << 20;

/// A condition, compiled when its workflow is checked.
#[derive(Clone, Debug)]
pub struct Predicate {
    script: Arc<str>,
    program: Arc<Program>,
}

impl PartialEq for Predicate {
    fn eq(&self, other: &Self) -> bool {
        self.script == other.script
    }
}

impl Predicate {
    pub(crate) fn compile(script: &str) -> Result<Self, String> {
        if script.len() > MAX_BYTES {
            return Err(format!("the predicate is longer than {MAX_BYTES} bytes"));
        }
        let compiled = |error| format!("the predicate is not valid CEL: {error}");
        let program = on_large_stack(|| Program::compile(script).map_err(compiled))?;
        Ok(Self { script: script.into(), program: Arc::new(program) })
    }

    pub fn script(&self) -> &str {
        &self.script
    }

    pub(crate) fn holds(&self, arguments: &BTreeMap<String, Value>) -> Result<bool, String> {
        if may_take_too_long(&self.script, arguments) {
            return Err("the predicate could take too long to evaluate".to_owned());
        }
        on_large_stack(|| {
            let mut context = Context::default();
            for (name, value) in arguments {
                let added = context.add_variable(name.as_str(), value);
                added.map_err(|error| format!("cannot pass `{name}` to the predicate: {error}"))?;
            }
            match self.program.execute(&context) {
                Ok(cel::Value::Bool(holds)) => Ok(holds),
                Ok(_) => Err("the predicate is neither true nor false".to_owned()),
                Err(error) => Err(format!("the predicate cannot be evaluated: {error}")),
            }
        })
    }
}

/// Whether nested macros could loop over the elements of lists too often.
fn may_take_too_long(script: &str, arguments: &BTreeMap<String, Value>) -> bool {
    const MAX_VALUES: u64 = 10_000_000;
    let loops = ["all", "exists", "exists_one", "map", "filter"];
    let names = script.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
    let loops = names.filter(|name| loops.contains(name)).count();
    let loops = u32::try_from(loops).unwrap_or(u32::MAX);
    // The condition itself may contain lists.
    let all = arguments.values().map(size).fold(script.len(), usize::saturating_add);
    let all = u64::try_from(all).unwrap_or(u64::MAX);
    loops > 1 && all.saturating_pow(loops) > MAX_VALUES
}

/// The number of values in a value, itself included.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(size).fold(1, usize::saturating_add),
        Value::Object(entries) => entries.values().map(size).fold(1, usize::saturating_add),
        _ => 1,
    }
}

fn on_large_stack<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    let failed = || "the predicate cannot be evaluated".to_owned();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        let thread = thread.map_err(|_| failed())?;
        thread.join().unwrap_or_else(|_| Err(failed()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(script: &str, arguments: &BTreeMap<String, Value>) -> Result<bool, String> {
        Predicate::compile(script)?.holds(arguments)
    }

    fn check(script: &str) -> Result<(), String> {
        Predicate::compile(script).map(drop)
    }

    #[test]
    fn a_condition_is_true_or_false_or_an_error() {
        let arguments =
            BTreeMap::from([("amount".to_owned(), json!(120)), ("region".to_owned(), json!("eu"))]);
        let holds = |script| holds(script, &arguments);
        assert_eq!(holds("amount > 100 && region == 'eu'"), Ok(true));
        assert_eq!(holds("amount > 100 && region == 'us'"), Ok(false));
        assert!(holds("amount").unwrap_err().contains("neither"));
        assert!(holds("price > 1").unwrap_err().contains("evaluated"));
        assert!(check("amount >").unwrap_err().contains("not valid CEL"));
    }

    #[test]
    fn a_condition_that_could_take_too_long_is_refused_and_others_are_not() {
        let list: Vec<u32> = (0..60).collect();
        let arguments = BTreeMap::from([("l".to_owned(), json!(list))]);
        let holds = |script: &str| holds(script, &arguments);
        let mut script = "true".to_owned();
        for name in ["a", "b", "c", "d", "e", "f"] {
            script = format!("l.all({name}, {script})");
        }
        assert!(holds(&script).unwrap_err().contains("too long"));
        assert_eq!(holds("l.all(a, l.exists(b, a == b))"), Ok(true));
        assert_eq!(holds("l.filter(a, a > 50).all(a, a > 50)"), Ok(true));
    }

    #[test]
    fn deeply_nested_conditions_do_not_overflow_the_stack() {
        let deep = "(".repeat(2000) + "true" + &")".repeat(2000);
        drop(holds(&deep, &BTreeMap::new()));
        let long = "1".to_owned() + &"+1".repeat(2000) + " > 0";
        assert_eq!(holds(&long, &BTreeMap::new()), Ok(true));
        assert!(check(&"(".repeat(4096)).is_err());
        assert!(check(&"x".repeat(5000)).unwrap_err().contains("bytes"));
    }
}
