//! The lines that are said of a job, as usual and with `--verbose`.

use snapbox::{IntoData, assert_data_eq, str};
use undaunted_engine::input::Input;

use super::jobs::{MAP, Scene};
use crate::screen::progress::sentences::{Sentences, headline, leaving};

fn said(verbose: bool) -> String {
    let mut scene = Scene::of(MAP);
    scene.read(0, &["north", "so\u{1b}[2Juth"]);
    scene.start();
    scene.tell(&Input::Pause);
    scene.wait(1500);
    scene.tell(&Input::Unpause);
    scene.end(0, 0, None);
    scene.end(0, 1, Some("it says:\n\x1b[1mno\x1b[0m answer"));
    scene.wait(8000);
    scene.start();
    scene.end(0, 1, Some("no\tanswer\nstill none"));
    scene.tell(&Input::Woke);
    scene.start();
    scene.end(1, 0, None);
    let mut sentences = Sentences::new(verbose);
    let mut lines = vec![headline(&scene.job)];
    let records = scene.records.iter();
    lines.extend(records.filter_map(|record| sentences.of(&scene.job, record)));
    lines.join("\n") + "\n"
}

#[test]
fn as_usual_what_fails_and_what_follows_is_said() {
    assert_data_eq!(said(false), str![[r"
job 7f3k  regions
  map: 2 items, 3 at a time
  paused; go on:  undaunted unpause 7f3k
  goes on after 1.5s paused
  so\u{1b}[2Juth: attempt 1 of 2 failed (exit status 1: \u{1b}[1mno\u{1b}[0m answer); retry 1 of 1 in 8s
  so\u{1b}[2Juth: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
    still none

"]].raw());
}

#[test]
fn every_start_and_success_is_said_to_whoever_wants_to_know() {
    assert_data_eq!(said(true), str![[r"
job 7f3k  regions
  map: 2 items, 3 at a time
  north: attempt 1 starts
  so\u{1b}[2Juth: attempt 1 starts
  paused; go on:  undaunted unpause 7f3k
  goes on after 1.5s paused
  north: attempt 1 succeeded
  so\u{1b}[2Juth: attempt 1 of 2 failed (exit status 1: \u{1b}[1mno\u{1b}[0m answer); retry 1 of 1 in 8s
  so\u{1b}[2Juth: attempt 2 starts
  so\u{1b}[2Juth: stopped after 2 attempts: All attempts used (1 retry, 2 attempts); last error: exit status 1: no answer
    still none
  report: attempt 1 starts
  report: attempt 1 succeeded

"]].raw());
}

#[test]
fn whoever_asks_to_leave_is_told_what_it_waits_for() {
    let lines = [(1, 0), (1, 1), (1, 3), (2, 3)];
    let lines = lines.map(|(asked, running)| leaving(asked, running).unwrap_or_default() + "\n");
    assert_data_eq!(
        lines.concat(),
        str![[r"

  waiting for 1 command to finish; Ctrl-C again ends it now
  waiting for 3 commands to finish; Ctrl-C again ends them now
  ending 3 commands (TERM, then KILL)

"]]
        .raw()
    );
}
