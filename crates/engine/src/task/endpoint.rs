//! The address of a flow step, in which `{name}` stands for an input of the step.
//!
//! Only the path and the query may contain inputs, so that a value never chooses the host. A value is
//! percent-encoded and stays one segment of the path.

use serde_json::Value;

use crate::workflow::template::{ValueError, push_encoded};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EndpointPart<'a> {
    Text(&'a str),
    /// The name that the step has for the input.
    Input(&'a str),
}

/// The names in braces behind the host, in the order of the address.
pub fn endpoint_inputs(endpoint: &str) -> impl Iterator<Item = &str> {
    let (_, path) = split(endpoint);
    parts(path).into_iter().filter_map(|part| match part {
        EndpointPart::Input(name) => Some(name),
        EndpointPart::Text(_) => None,
    })
}

/// The first name in braces in scheme or host, where no input is allowed.
pub(crate) fn input_in_host(endpoint: &str) -> Option<&str> {
    let (host, _) = split(endpoint);
    parts(host).into_iter().find_map(|part| match part {
        EndpointPart::Input(name) => Some(name),
        EndpointPart::Text(_) => None,
    })
}

/// Fails on the first value that is missing, null or empty: without it the address would be another one.
pub(super) fn filled_endpoint(endpoint: &str, inputs: &Value) -> Result<String, ValueError> {
    let (host, path) = split(endpoint);
    let mut url = host.to_owned();
    for part in parts(path) {
        match part {
            EndpointPart::Text(text) => url.push_str(text),
            EndpointPart::Input(name) => {
                let value = match inputs.get(name) {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                if value.is_empty() {
                    return Err(ValueError::Missing { name: name.to_owned() });
                }
                push_encoded(&mut url, &value);
            }
        }
    }
    Ok(url)
}

/// Scheme and host, and the rest.
fn split(endpoint: &str) -> (&str, &str) {
    let host = endpoint.find("://").map_or(0, |at| at.saturating_add(3));
    let behind = endpoint.get(host..).unwrap_or_default();
    let length = behind.find(['/', '?', '#']).unwrap_or(behind.len());
    endpoint.split_at_checked(host.saturating_add(length)).unwrap_or((endpoint, ""))
}

/// Braces that enclose no name are text.
fn parts(text: &str) -> Vec<EndpointPart<'_>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let name = behind.split_once('}').filter(|(name, _)| !name.is_empty() && !name.contains('{'));
        if let Some((name, behind)) = name {
            parts.extend([EndpointPart::Text(before), EndpointPart::Input(name)]);
            rest = behind;
        } else {
            let (text, behind) = rest.split_at_checked(before.len().saturating_add(1)).unwrap_or((rest, ""));
            parts.push(EndpointPart::Text(text));
            rest = behind;
        }
    }
    parts.push(EndpointPart::Text(rest));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(endpoint: &str) -> Result<String, ValueError> {
        let inputs = json!({
            "id": 7, "name": "a b/c?d=é", "up": "..", "yes": true, "list": [1, "x"], "none": null, "empty": "",
        });
        filled_endpoint(endpoint, &inputs)
    }

    #[test]
    fn inputs_in_path_and_query_are_percent_encoded() {
        for (endpoint, expected) in [
            ("http://h/t", "http://h/t"),
            ("http://h/t/{id}", "http://h/t/7"),
            ("http://h/{yes}/t/{id}-{id}", "http://h/true/t/7-7"),
            ("http://h/{name}?q={name}", "http://h/a%20b%2Fc%3Fd%3D%C3%A9?q=a%20b%2Fc%3Fd%3D%C3%A9"),
            ("http://h?list={list}", "http://h?list=%5B1%2C%22x%22%5D"),
            ("http://h/{up}", "http://h/.."),
            ("http://{id}/{id}", "http://{id}/7"),
            ("http://h/{}/{/{id}/}", "http://h/{}/{/7/}"),
            ("http://h/{id", "http://h/{id"),
        ] {
            assert_eq!(filled(endpoint).as_deref(), Ok(expected), "{endpoint}");
        }
    }

    #[test]
    fn a_value_that_is_missing_null_or_empty_is_refused() {
        for name in ["none", "empty", "other"] {
            let missing = ValueError::Missing { name: name.to_owned() };
            assert_eq!(filled(&format!("http://h/t/{{{name}}}")), Err(missing));
        }
    }

    #[test]
    fn the_names_in_an_endpoint_are_found_and_those_in_its_host_apart() {
        let names: Vec<&str> = endpoint_inputs("http://{h}:1/{a}/{b}?c={c}").collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(input_in_host("http://{h}:1/{a}"), Some("h"));
        assert_eq!(input_in_host("http://h:1/{a}"), None);
    }
}
