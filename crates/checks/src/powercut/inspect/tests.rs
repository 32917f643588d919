//! What may be found after a cut, and what may not.

use std::sync::Arc;

use super::super::model::{AppendPart, StoreCall, StoreModel, StoreOperation};
use super::ExpectedState;

fn append(handle: usize, to: &[usize], text: &str) -> StoreCall {
    let part = |index: &usize| AppendPart {
        index: *index,
        records: vec![Arc::new(text.as_bytes().to_vec())],
        taken: vec![],
    };
    StoreCall { handle, what: StoreOperation::Append(to.iter().map(part).collect()), answer: 0 }
}

fn after(calls: &[&StoreCall]) -> StoreModel {
    let mut model = StoreModel::default();
    for call in calls {
        model.apply(call);
    }
    model
}

#[test]
fn unacknowledged_calls_take_effect_in_order_or_not_at_all() {
    let [first, second, third] = ["a", "b", "c"].map(|text| append(0, &[0, 1], text));
    let acknowledged = after(&[&first]);
    let known = ExpectedState { acknowledged: &acknowledged, under_way: vec![vec![&second, &third]] };
    let found = |calls: &[&StoreCall]| known.matching(&after(calls)).is_some();
    assert!(found(&[&first]));
    assert!(found(&[&first, &second]));
    assert!(found(&[&first, &second, &third]));
    assert!(!found(&[&first, &third]), "the second came before it");
    assert!(!found(&[]), "the first was acknowledged");
    assert!(!found(&[&second]));
    assert!(!found(&[&first, &second, &third, &third]));
}

#[test]
fn half_an_append_is_never_right() {
    let [whole, half] = [&[0, 1][..], &[0]].map(|to| append(0, to, "a"));
    let acknowledged = StoreModel::default();
    let known = ExpectedState { acknowledged: &acknowledged, under_way: vec![vec![&whole]] };
    assert!(known.matching(&after(&[&whole])).is_some());
    assert!(known.matching(&after(&[&half])).is_none());
}

#[test]
fn each_handle_has_its_own_prefix_of_calls() {
    let [one, other] = [append(0, &[0], "a"), append(1, &[1], "b")];
    let acknowledged = StoreModel::default();
    let known = ExpectedState { acknowledged: &acknowledged, under_way: vec![vec![&one], vec![&other]] };
    for found in [&[][..], &[&one], &[&other], &[&one, &other]] {
        assert!(known.matching(&after(found)).is_some());
    }
}
