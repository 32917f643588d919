//! What is said about the input of a map.

use serde_json::json;

use crate::home::CliHome;

fn workflow(path: &str, more: &str) -> String {
    format!(
        "mode: mapreduce\nmap:\n  input: a.json\n  json_path: '{path}'\n{more}  \
         agent_template: [{{id: get, shell: 'true'}}]\n"
    )
}

#[test]
fn a_json_path_that_matches_nothing_is_a_warning() {
    let home = CliHome::new();
    home.write("a.json", r#"{"items": [{"id": "a", "on": false}]}"#);
    for options in [&["run", "w.yaml"][..], &["run", "w.yaml", "--json"]] {
        home.write("w.yaml", &workflow("$.itms[*]", ""));
        let printed = home.run(options).exits(0);
        let warning = "warning: `json_path: $.itms[*]` matches nothing in the input `";
        assert!(printed.err.contains(warning), "{}", printed.err);
        let events = home.json(&["events", "@last", "--json"]);
        let read = events.iter().find(|it| it["type"] == "items_read").expect("read");
        let warned = read["warning"].as_str().expect("a warning");
        assert!(warned.ends_with("/a.json`"), "{warned}");
        assert_eq!((&read["items"], &read["last"]), (&json!(0), &json!(true)));
    }
    // A filter may well leave nothing.
    home.write("w.yaml", &workflow("$.items[*]", "  filter: item.on == true\n"));
    let printed = home.run(&["run", "w.yaml"]).exits(0);
    assert!(!printed.err.contains("warning"), "{}", printed.err);
    let events = home.json(&["events", "@last", "--json"]);
    let read = events.iter().find(|it| it["type"] == "items_read").expect("read");
    assert_eq!((read.get("warning"), &read["items"]), (None, &json!(0)));
}
