//! Conditions in CEL.
//!
//! The parser calls itself for every nesting, and a text may nest as deep as it is long; so it runs on
//! a thread with a stack that is large enough for the longest text that is taken.

use std::collections::BTreeMap;

use cel::{Context, Program};
use serde_json::Value;

/// The longest text of a condition.
const LONGEST: usize = 4096;
/// What the parser may use.
const STACK: usize = 256 << 20;

/// Whether a text is a condition at all.
pub(crate) fn check(script: &str) -> Result<(), String> {
    apart(script, |script| compiled(script).map(|_| ()))
}

/// Whether a condition holds for these arguments.
pub(crate) fn holds(script: &str, arguments: &BTreeMap<String, Value>) -> Result<bool, String> {
    apart(script, |script| {
        let program = compiled(script)?;
        let mut context = Context::default();
        for (name, value) in arguments {
            context
                .add_variable(name.as_str(), value)
                .map_err(|error| format!("`{name}` cannot be given to the condition: {error}"))?;
        }
        match program.execute(&context) {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err("the condition gives neither true nor false".to_owned()),
            Err(error) => Err(format!("the condition cannot be worked out: {error}")),
        }
    })
}

fn compiled(script: &str) -> Result<Program, String> {
    Program::compile(script).map_err(|error| format!("the predicate is not CEL: {error}"))
}

fn apart<T: Send>(
    script: &str,
    work: impl FnOnce(&str) -> Result<T, String> + Send,
) -> Result<T, String> {
    if script.len() > LONGEST {
        return Err(format!("the condition has more than {LONGEST} bytes"));
    }
    let failed = || "the condition cannot be worked out".to_owned();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn_scoped(scope, || work(script));
        let thread = thread.map_err(|_| failed())?;
        thread.join().unwrap_or_else(|_| Err(failed()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_is_true_or_false_or_says_what_is_wrong() {
        let arguments = BTreeMap::from([
            ("amount".to_owned(), json!(120)),
            ("region".to_owned(), json!("eu")),
        ]);
        let holds = |script| holds(script, &arguments);
        assert_eq!(holds("amount > 100 && region == 'eu'"), Ok(true));
        assert_eq!(holds("amount > 100 && region == 'us'"), Ok(false));
        assert!(holds("amount").unwrap_err().contains("neither"));
        assert!(holds("price > 1").unwrap_err().contains("worked out"));
        assert!(check("amount >").unwrap_err().contains("not CEL"));
    }

    #[test]
    fn a_condition_that_nests_without_end_is_no_danger() {
        let deep = "(".repeat(2000) + "true" + &")".repeat(2000);
        drop(holds(&deep, &BTreeMap::new()));
        assert!(check(&"(".repeat(4096)).is_err());
        assert!(check(&"x".repeat(5000)).unwrap_err().contains("bytes"));
    }
}
