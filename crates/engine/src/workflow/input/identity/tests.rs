//! Which names items get, and that order never matters.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn named(items: &[Value]) -> Vec<String> {
    identities(items)
}

fn print_of(value: &Value) -> String {
    format!("{:016x}", fingerprint(value))
}

#[test]
fn the_text_of_a_value_never_changes() {
    let mut text = String::new();
    let value = json!({
        "b": [true, false, null, [], {}],
        "a": "é\"\\\n\u{7f}/",
        "": [0, -1, u64::MAX, 1.0, -0.0, 0.1, 1e15, 1e16, 1.5e300, 1e-5, 9.5e-6],
    });
    write_canonical(&value, &mut text).unwrap();
    assert_eq!(
        text,
        concat!(
            r#"{"":[0,-1,18446744073709551615,1.0,-0.0,0.1,1000000000000000.0,1e16,1.5e300,0.00001,9.5e-6],"#,
            "\"a\":\"é\\\"\\\\\\u000a\u{7f}/\",",
            r#""b":[true,false,null,[],{}]}"#
        )
    );
}

#[test]
fn fingerprints_never_change() {
    for (value, print) in [
        (json!(null), "5b9bc4ba528108e4"),
        (json!("a"), "d4272417d7c77eea"),
        (json!({"url": "https://example.org/ä", "n": [1, 2.5, 1e20, true]}), "2c9c279820423d69"),
    ] {
        assert_eq!(format!("{:016x}", fingerprint(&value)), print);
    }
}

#[test]
fn an_id_that_is_unique_is_the_name() {
    assert_eq!(
        named(&[
            json!({"id": "a/b"}),
            json!({"id": 7}),
            json!({"id": -1}),
            json!({"id": 2.5}),
            json!({"id": 7.0}),
            json!({"id": u64::MAX})
        ]),
        ["a/b", "7", "-1", "2.5", "7.0", "18446744073709551615"]
    );
}

#[test]
fn an_id_that_is_no_name_is_not_used() {
    let items = [
        json!({"id": ""}),
        json!({"id": null}),
        json!({"id": [1]}),
        json!({"id": "a\u{1b}[2J"}),
        json!({"id": "x".repeat(257)}),
        json!({"name": "x"}),
        json!([{"id": 1}]),
        json!(5),
    ];
    let prints: Vec<String> = items.iter().map(print_of).collect();
    assert_eq!(named(&items), prints);
}

#[test]
fn an_id_claimed_twice_names_neither() {
    let items = [json!({"id": 7, "n": 1}), json!({"id": "7", "n": 2}), json!({"id": 8}), json!("7")];
    assert_eq!(
        named(&items),
        [print_of(&items[0]), print_of(&items[1]), "8".to_owned(), print_of(&items[3])]
    );
}

#[test]
fn a_short_line_is_its_own_name() {
    let (longest, longer) = ("é".repeat(256), "é".repeat(257));
    let items = [json!("plain line"), json!(longest), json!(longer), json!("a/b"), json!("a\tb"), json!("")];
    assert_eq!(
        named(&items),
        [
            "plain line".to_owned(),
            longest,
            print_of(&items[2]),
            "a/b".to_owned(),
            print_of(&items[4]),
            print_of(&items[5])
        ]
    );
}

#[test]
fn equal_contents_are_numbered() {
    let print = print_of(&json!({"a": 1, "b": 2}));
    let items = ["{\"a\": 1, \"b\": 2}", "{\"b\":2,\"a\":1}", "{\"a\":1,\"b\":2}"];
    let items = items.map(|text| serde_json::from_str(text).unwrap());
    assert_eq!(named(&items), [print.clone(), format!("{print}-2"), format!("{print}-3")]);
}

#[test]
fn an_id_that_looks_like_a_fingerprint_keeps_its_name() {
    let plain = json!({"a": 1});
    let print = print_of(&plain);
    let thief = json!({"id": print});
    let second = json!({"id": format!("{print}-3")});
    let mut items = vec![plain.clone(), plain, thief, second];
    let names = |items: &[Value]| {
        let mut pairs: Vec<_> = named(items).into_iter().zip(items.iter().map(print_of)).collect();
        pairs.sort();
        pairs
    };
    assert_eq!(
        named(&items),
        [format!("{print}-2"), format!("{print}-4"), print.clone(), format!("{print}-3")]
    );
    let forward = names(&items);
    items.reverse();
    assert_eq!(names(&items), forward);
}

#[test]
fn contents_that_share_a_fingerprint_are_numbered_by_their_text() {
    let items = [json!([2]), json!([1]), json!([2]), json!([3])];
    let same = |_: &Value| 0xab;
    let zero = "00000000000000ab";
    assert_eq!(
        identities_by(&items, same),
        [format!("{zero}-2"), zero.to_owned(), format!("{zero}-3"), format!("{zero}-4")]
    );
}

/// Items that claim each other's names as often as possible when the fingerprint has one bit.
fn item() -> impl Strategy<Value = Value> {
    let claim = prop_oneof![
        Just("0000000000000000".to_owned()),
        Just("0000000000000001".to_owned()),
        "000000000000000[01]-[2-5]",
        "[ab]{0,2}",
        "[0-3]",
    ];
    prop_oneof![
        claim.clone().prop_map(Value::from),
        (claim, 0..3).prop_map(|(id, n)| json!({"id": id, "n": n})),
        (0..3, 0..2).prop_map(|(id, n)| json!({"id": id, "n": n})),
        (0..4).prop_map(|n| json!({ "n": n })),
        (0..3).prop_map(Value::from),
    ]
}

fn one_bit(value: &Value) -> u64 {
    fingerprint(value) & 1
}

fn pairs(items: &[Value], print: fn(&Value) -> u64) -> Vec<(String, String)> {
    let contents = items.iter().map(ToString::to_string);
    let mut pairs: Vec<_> = identities_by(items, print).into_iter().zip(contents).collect();
    pairs.sort();
    pairs
}

proptest! {
    #[test]
    fn names_are_unique_and_do_not_depend_on_the_order(
        (items, shuffled) in prop::collection::vec(item(), 0..24)
            .prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle())),
    ) {
        for print in [one_bit, fingerprint] {
            let named = pairs(&items, print);
            prop_assert_eq!(named.len(), items.len());
            prop_assert!(named.iter().zip(named.iter().skip(1)).all(|(a, b)| a.0 != b.0));
            prop_assert!(named.iter().all(|(name, _)| !name.is_empty()));
            prop_assert_eq!(&pairs(&shuffled, print), &named);
        }
    }

    #[test]
    fn an_item_that_has_the_only_id_of_its_kind_is_called_by_it(
        ids in prop::collection::btree_set("[a-z0-9-]{1,20}", 0..10),
        others in prop::collection::vec((0..5).prop_map(|n| json!({"n": n})), 0..10),
    ) {
        let mut items: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
        items.extend(others);
        let named = identities(&items);
        for (id, name) in ids.iter().zip(&named) {
            prop_assert_eq!(id, name);
        }
    }
}
