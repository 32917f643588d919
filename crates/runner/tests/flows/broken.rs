//! Flows that cannot be resumed: they are reported, left unchanged, and do not affect others.

use serde_json::{Value, json};
use undaunted_engine::event::JobSubmitted;
use undaunted_runner::journal;
use undaunted_store::Append;

use crate::fixture::{FlowFixture, activated, now, step, wanted};
use crate::http_server::{Reply, ScriptedServer};

/// Alters a byte in the middle of the row with this record.
fn damage(fixture: &FlowFixture, flow: &str, version: u64) {
    let database = rusqlite::Connection::open(fixture.folder().join("undaunted.db")).unwrap();
    let (row, mut body): (i64, Vec<u8>) = database
        .query_row(
            "SELECT batches.rowid, body FROM batches JOIN aggregates ON aggregate = number
             WHERE family = 'job' AND aggregates.id = ?1 AND first = ?2",
            (flow, i64::try_from(version).unwrap()),
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let middle = body.len() / 2;
    body[middle] ^= 0x55;
    let changed = database.execute("UPDATE batches SET body = ?1 WHERE rowid = ?2", (body, row));
    assert_eq!(changed.unwrap(), 1);
}

/// Appends a record to the journal of a flow.
fn append(fixture: &FlowFixture, flow: &str, record: Vec<u8>) {
    let aggregate = journal::aggregate(flow).unwrap();
    let claim = fixture.store().claim(&aggregate).unwrap();
    let append = Append::new(aggregate, claim.version, claim.epoch, vec![record]);
    fixture.store().append(vec![append]).unwrap();
    fixture.store().unclaim(&claim).unwrap();
}

/// The number of records in a journal, readable or not.
fn length(fixture: &FlowFixture, flow: &str) -> u64 {
    let aggregate = journal::aggregate(flow).unwrap();
    fixture.store().head(&aggregate).unwrap().unwrap().version.0
}

#[test]
fn a_flow_whose_secrets_cannot_be_read_is_reported_and_not_claimed() {
    let fixture = FlowFixture::of(&[step("s", "http://nowhere/s", &json!({}), &Value::Null)]);
    let submitted = fixture.submission(&wanted("template", "s", &json!({})));
    let mut text: Value = serde_json::from_str(&submitted.text).unwrap();
    text["secrets"] = json!({"KEY": {"env": "SURELY_NOT_SET"}});
    let submitted = JobSubmitted { job: "a".to_owned(), text: text.to_string().into(), ..submitted };
    journal::deposit(fixture.store(), submitted, &[], now()).unwrap();
    let engine = fixture.engine();
    let found = engine.host().recover().unwrap();
    assert_eq!(found.resumed, Vec::<String>::new());
    assert_eq!(found.broken[0].0, "a");
    assert!(found.broken[0].1.contains("SURELY_NOT_SET"), "{found:?}");
    engine.suspend();
    assert_eq!(length(&fixture, "a"), 1);
    fixture.free("a");
}

#[test]
fn broken_flows_are_reported_and_the_others_are_resumed() {
    let server = ScriptedServer::start().on("/s", &[Reply::outputs(&json!({}))]);
    let fixture = FlowFixture::of(&[step("s", &server.url("/s"), &json!({}), &Value::Null)]);
    let asked = wanted("template", "s", &json!({}));
    let flows = ["altered", "good-1", "good-2", "headless", "later", "unplanned"];
    for flow in flows {
        if flow == "unplanned" {
            let submitted = JobSubmitted {
                job: flow.to_owned(),
                text: r#"{"mode": "flow", "steps": [{"id": "s", "type": "some day"}]}"#.into(),
                ..fixture.submission(&asked)
            };
            // A workflow that this release refuses may have been stored by another release.
            let record = undaunted_engine::event::Record {
                at: now(),
                event: undaunted_engine::event::Event::Job(undaunted_engine::event::JobEvent::Submitted(
                    Box::new(submitted),
                )),
            };
            append(&fixture, flow, record.encode());
        } else {
            fixture.deposit(flow, &asked, &[]);
        }
        fixture.noted(vec![activated(flow)]);
    }
    // A second record, which is altered.
    append(&fixture, "altered", fixture.records("good-1")[0].encode());
    damage(&fixture, "altered", 2);
    damage(&fixture, "headless", 1);
    append(&fixture, "later", vec![1, 0x82, 0x00, 0x82, 0x19, 0x03, 0xe7, 0x80]);
    let before = flows.map(|flow| length(&fixture, flow));
    let engine = fixture.engine();
    let found = engine.host().recover().unwrap();
    assert_eq!(found.resumed, ["good-1", "good-2"]);
    let (names, reasons): (Vec<&str>, Vec<&str>) =
        found.broken.iter().map(|(flow, why)| (flow.as_str(), why.as_str())).unzip();
    assert_eq!(names, ["altered", "headless", "later", "unplanned"]);
    // Each reason names the record or the flow.
    assert!(reasons[0].contains("record 2") && reasons[0].contains("altered"), "{reasons:?}");
    assert!(reasons[1].contains("record 1") && reasons[1].contains("headless"), "{reasons:?}");
    assert!(reasons[2].contains("record 2") && reasons[2].contains("later"), "{reasons:?}");
    assert!(reasons[3].contains("unplanned"), "{reasons:?}");
    engine.completes("good-1");
    engine.completes("good-2");
    assert_eq!(server.all().len(), 2);
    for (flow, before) in flows.into_iter().zip(before) {
        if flow.starts_with("good") {
            continue;
        }
        assert_eq!(length(&fixture, flow), before, "{flow}");
        // It can be claimed for a repair.
        fixture.free(flow);
        assert_eq!(fixture.words_of(flow), ["flow_activated"], "{flow}");
    }
    // The next recovery reports the same.
    assert_eq!(engine.host().recover().unwrap().broken, found.broken);
}
