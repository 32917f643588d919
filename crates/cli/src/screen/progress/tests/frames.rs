//! Frames, compared as a whole: wide and narrow, with and without colours.

use std::time::Duration;

use snapbox::{IntoData, assert_data_eq, str};
use undaunted_engine::id::{StartId, StepId};
use undaunted_engine::job::StepStage;

use super::MAP;
use crate::screen::fixture::JobFixture;
use crate::screen::progress::draw::Size;
use crate::screen::progress::frame::{HoldRow, NextRetry, ProgressFrame, StepRow, TimeLeft, sample};
use crate::screen::progress::line::width;
use crate::screen::progress::speed::Speed;

fn step(name: &'static str, stage: StepStage) -> StepRow<'static> {
    StepRow {
        name,
        stage,
        is_map: false,
        items: u64::from(!matches!(stage, StepStage::Waiting)),
        done: u64::from(stage == StepStage::Completed),
        dead: u64::from(stage == StepStage::Failed),
        skipped: 0,
        running: u64::from(stage == StepStage::Running),
        waiting: 0,
        held: 0,
        missing: 0,
    }
}

fn map(items: u64, [done, dead, skipped, running, waiting]: [u64; 5]) -> StepRow<'static> {
    StepRow { is_map: true, items, done, dead, skipped, running, waiting, ..step("map", StepStage::Running) }
}

fn retry(millis: u64, of: &str, retry: u32) -> NextRetry {
    NextRetry {
        due_in: Duration::from_millis(millis),
        of: of.to_owned(),
        retry,
        attempt: retry + 1,
        why: "HTTP 503: try again later".to_owned(),
    }
}

/// A map in the middle of its work.
fn busy() -> ProgressFrame<'static> {
    ProgressFrame {
        steps: vec![
            step("prepare", StepStage::Completed),
            map(120, [58, 3, 2, 8, 4]),
            step("report", StepStage::Waiting),
        ],
        retries: vec![
            retry(0, "https://example.org/3", 2),
            retry(1840, "https://example.org/17", 1),
            retry(95_100, "https://example.org/41", 4),
        ],
        holds: vec![],
        attempts: 93,
        attempts_in_ten_seconds: Some(47),
        so_far: Duration::from_millis(21_730),
        left: Some(TimeLeft { time: Duration::from_secs(137), step: Some("map") }),
        paused: false,
    }
}

/// The frame as text; its lines fit.
fn frame(progress: &ProgressFrame<'_>, columns: usize, rows: usize) -> String {
    let lines = progress.lines(Size { columns, rows });
    assert!(lines.len() < rows.max(2));
    for line in &lines {
        assert!(line.width() < columns.max(1));
        assert_eq!(width(&line.drawn(false)), line.width());
    }
    lines.iter().map(|line| line.drawn(false) + "\n").collect()
}

/// The same with colours, by their names.
fn coloured(progress: &ProgressFrame<'_>, columns: usize) -> String {
    let lines = progress.lines(Size { columns, rows: 24 });
    let mut drawn: String = lines.iter().map(|line| line.drawn(true) + "\n").collect();
    for (code, name) in [("2", "faint"), ("31", "red"), ("32", "green"), ("33", "yellow"), ("0", "/")] {
        drawn = drawn.replace(&format!("\x1b[{code}m"), &format!("<{name}>"));
    }
    assert!(!drawn.contains('\x1b'));
    drawn
}

#[test]
fn a_map_is_drawn_for_every_width_and_in_colours() {
    let frames = [120, 80, 50, 24].map(|columns| format!("{columns}:\n{}", frame(&busy(), columns, 24)));
    assert_data_eq!(
        frames.concat(),
        str![[r"
120:
  prepare  [===================] 100%  done
  map      [========x>>        ]  52%  58 of 120 done, 3 dead, 8 running, 4 waiting, 2 skipped
  report   pending
  now       https://example.org/3: retry 2 (attempt 3) after HTTP 503: try again later
  in 1.9s   https://example.org/17: retry 1 (attempt 2) after HTTP 503: try again later
  in 1m36s  https://example.org/41: retry 4 (attempt 5) after HTTP 503: try again later
  93 attempts, 4.7 a second, 21s so far, about 2m10s left of map
80:
  prepare  [=============] 100%  done
  map      [=====x>>     ]  52%  58 of 120 done, 3 dead, 8 running, 4 waiting
  report   pending
  now       https://example.org/3: retry 2 (attempt 3) after HTTP 503: try aga…
  in 1.9s   https://example.org/17: retry 1 (attempt 2) after HTTP 503: try ag…
  in 1m36s  https://example.org/41: retry 4 (attempt 5) after HTTP 503: try ag…
  93 attempts, 4.7 a second, 21s so far, about 2m10s left of map
50:
  prepare  [========] 100%  done
  map      [===x>   ]  52%  58 of 120 done
  report   pending
  now       https://example.org/3: retry 2 (atte…
  in 1.9s   https://example.org/17: retry 1 (att…
  in 1m36s  https://example.org/41: retry 4 (att…
  93 attempts, 4.7 a second, 21s so far
24:
  prepare  100%  done
  map       52%
  report   pending
  now       https://ex…
  in 1.9s   https://ex…
  in 1m36s  https://ex…
  93 attempts

"]]
        .raw()
    );
    assert_data_eq!(coloured(&busy(), 100), str![[r"
  prepare  [<green>================</>] 100%  <green>done</>
  map      [<green>=======</><red>x</><yellow>>></>      ]  52%  58 of 120 done, <red>3 dead</>, 8 running, <yellow>4 waiting</>, <faint>2 skipped</>
  <faint>report</>   <faint>pending</>
<yellow>  now       </>https://example.org/3: retry 2 (attempt 3)<faint> after HTTP 503: try again later</>
<yellow>  in 1.9s   </>https://example.org/17: retry 1 (attempt 2)<faint> after HTTP 503: try again later</>
<yellow>  in 1m36s  </>https://example.org/41: retry 4 (attempt 5)<faint> after HTTP 503: try again later</>
  93 attempts, 4.7 a second, 21s so far, about 2m10s left of map

"]].raw());
}

/// The same in an outage.
fn held() -> ProgressFrame<'static> {
    let mut progress = busy();
    progress.steps = vec![StepRow { held: 12, ..map(120, [58, 0, 0, 1, 1]) }];
    progress.retries.truncate(1);
    progress.holds = vec![
        HoldRow { breaker: "payments".to_owned(), held: 11, next_probe: "next probe in 40s".to_owned() },
        HoldRow { breaker: "mail".to_owned(), held: 1, next_probe: "probing".to_owned() },
    ];
    progress.left = None;
    progress
}

#[test]
fn what_breakers_hold_has_a_line_for_each() {
    assert_data_eq!(
        frame(&held(), 80, 24),
        str![[r"
  map  [======>      ]  48%  58 of 120 done, 1 running, 1 waiting, 12 held
  now  https://example.org/3: retry 2 (attempt 3) after HTTP 503: try again la…
  11 held by payments, next probe in 40s
  1 held by mail, probing
  93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
    assert_data_eq!(
        frame(&held(), 40, 24),
        str![[r"
  map   48%  58 of 120 done, 1 running
  now  https://example.org/3: retry 2 …
  11 held by payments, next probe in 4…
  1 held by mail, probing
  93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
    assert_data_eq!(coloured(&held(), 80), str![[r"
  map  [<green>======</><yellow>></>      ]  48%  58 of 120 done, 1 running, <yellow>1 waiting</>, <yellow>12 held</>
<yellow>  now  </>https://example.org/3: retry 2 (attempt 3)<faint> after HTTP 503: try again la…</>
<yellow>  11 held by payments</>, next probe in 40s
<yellow>  1 held by mail</>, probing
  93 attempts, 4.7 a second, 21s so far

"]].raw());
}

#[test]
fn a_low_terminal_shows_the_outage_before_the_retries() {
    assert_data_eq!(
        frame(&held(), 80, 5),
        str![[r"
  map  [======>      ]  48%  58 of 120 done, 1 running, 1 waiting, 12 held
  11 held by payments, next probe in 40s
  1 held by mail, probing
  93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
}

#[test]
fn a_step_of_a_list_that_is_held_says_so() {
    let mut progress = held();
    progress.steps = vec![
        StepRow { running: 0, held: 1, ..step("charge", StepStage::Running) },
        StepRow { stage: StepStage::Completed, missing: 2, ..map(5, [3, 0, 0, 0, 0]) },
    ];
    progress.retries.clear();
    progress.holds.truncate(1);
    assert_data_eq!(
        frame(&progress, 80, 24),
        str![[r"
  charge  [>>>>>>>>>>>>>]   0%  held
  map     [=======------] 100%  3 of 5 done, 2 not waited for
  11 held by payments, next probe in 40s
  93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
}

#[test]
fn a_map_that_has_just_begun() {
    let progress = ProgressFrame {
        steps: vec![step("map", StepStage::Reading(Some(StartId(1))))],
        retries: vec![],
        holds: vec![],
        attempts: 0,
        attempts_in_ten_seconds: None,
        so_far: Duration::from_millis(300),
        left: None,
        paused: false,
    };
    assert_data_eq!(
        frame(&progress, 80, 24),
        str![[r"
  map  reading items
  0 attempts, 0s so far

"]]
        .raw()
    );
}

#[test]
fn a_million_items_and_a_pause() {
    let progress = ProgressFrame {
        steps: vec![map(1_000_000, [999_999, 0, 0, 1, 0])],
        retries: vec![],
        holds: vec![],
        attempts: 1,
        attempts_in_ten_seconds: Some(123_456),
        so_far: Duration::from_secs(7_384),
        left: Some(TimeLeft { time: Duration::ZERO, step: None }),
        paused: true,
    };
    assert_data_eq!(
        frame(&progress, 100, 24),
        str![[r"
  map  [===============>]  99%  999999 of 1000000 done, 1 running
  paused, 1 attempt, 12345.6 a second, 2h3m so far, about 1s left

"]]
        .raw()
    );
}

#[test]
fn a_step_that_failed_and_a_map_without_items() {
    let mut progress = busy();
    progress.retries.clear();
    progress.left = None;
    let none = StepRow { stage: StepStage::Completed, ..map(0, [0; 5]) };
    progress.steps = vec![
        none,
        step("prepare", StepStage::Failed),
        StepRow { stage: StepStage::Failed, ..map(0, [0; 5]) },
    ];
    assert_data_eq!(
        frame(&progress, 80, 24),
        str![[r"
  map      no items
  prepare  [xxxxxxxxxxxxx] 100%  failed
  map      failed
  93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
    assert_data_eq!(
        coloured(&progress, 80),
        str![[r"
  map      <green>no items</>
  prepare  [<red>xxxxxxxxxxxxx</>] 100%  <red>failed</>
  map      <red>failed</>
  93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
}

fn long_list() -> ProgressFrame<'static> {
    const NAMES: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let mut progress = busy();
    progress.left = None;
    progress.steps = (0..)
        .zip(NAMES)
        .map(|(place, name)| match place {
            0..5 => step(name, StepStage::Completed),
            5 => StepRow { running: 0, waiting: 1, ..step(name, StepStage::Running) },
            _ => step(name, StepStage::Waiting),
        })
        .collect();
    progress.retries.truncate(1);
    progress
}

#[test]
fn a_long_list_shows_what_is_around_the_step_that_runs() {
    assert_data_eq!(
        frame(&long_list(), 80, 24),
        str![[r"
  four    [=============] 100%  done
  five    [=============] 100%  done
  six     [>>>>>>>>>>>>>]   0%  waiting
  seven   pending
  eight   pending
  nine    pending
  ten     pending
  eleven  pending
  now  https://example.org/3: retry 2 (attempt 3) after HTTP 503: try again la…
  5 of 12 steps done, 93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
}

#[test]
fn a_low_terminal_shows_the_step_that_runs() {
    assert_data_eq!(
        frame(&long_list(), 80, 4),
        str![[r"
  six  [>>>>>>>>>>>>>]   0%  waiting
  now  https://example.org/3: retry 2 (attempt 3) after HTTP 503: try again la…
  5 of 12 steps done, 93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
}

#[test]
fn long_and_wide_names_are_cut() {
    let mut progress = busy();
    progress.steps = vec![
        step("夜間バッチ処理の準備をするための手順", StepStage::Completed),
        StepRow { name: "a step whose name\nhas two lines and \x1b[2J is long", ..map(10, [1, 1, 1, 1, 1]) },
    ];
    progress.retries = vec![retry(12_345, "東京都千代田区永田町一丁目七番一号", 1)];
    assert_data_eq!(
        frame(&progress, 100, 24),
        str![[r"
  夜間バッチ処理の準備を…   [================] 100%  done
  a step whose name\nhas …  [=xx->>>>        ]  30%  1 of 10 done, 1 dead, 1 running, 1 waiting
  in 13s  東京都千代田区永田町一丁目七番一号: retry 1 (attempt 2) after HTTP 503: try again later
  93 attempts, 4.7 a second, 21s so far, about 2m10s left of map

"]]
        .raw()
    );
    assert_data_eq!(
        frame(&progress, 40, 24),
        str![[r"
  夜間バッチ処…  100%  done
  a step whose…   30%  1 of 10 done
  in 13s  東京都千代田区永田町一丁目七…
  93 attempts, 4.7 a second, 21s so far

"]]
        .raw()
    );
}

#[test]
fn every_frame_fits_every_terminal() {
    for progress in [busy(), long_list(), held()] {
        for columns in 0..130 {
            for rows in 0..14 {
                frame(&progress, columns, rows);
            }
        }
    }
}

#[test]
fn a_frame_is_made_from_the_state_of_a_job() {
    let mut fixture = JobFixture::of(MAP);
    let mut speed = Speed::new(sample(&fixture.job, fixture.now));
    fixture.read(StepId(0), &["north", "east", "so\u{1b}[2Juth", "west", "up", "down"]);
    fixture.start();
    fixture.wait(2000);
    fixture.end(StepId(0).item(0), None);
    fixture.end(StepId(0).item(1), Some("a line\nno answer"));
    fixture.wait(500);
    fixture.end(StepId(0).item(2), Some(""));
    fixture.start();
    fixture.wait(1500);
    fixture.end(StepId(0).item(3), None);
    speed.note(sample(&fixture.job, fixture.now));
    let frame = ProgressFrame::of(&fixture.job, &fixture.breakers, &speed, fixture.now);
    let lines = frame.lines(Size { columns: 80, rows: 24 });
    let drawn: String = lines.iter().map(|line| line.drawn(false) + "\n").collect();
    assert_data_eq!(
        drawn,
        str![[r"
  map     [====>>>>>>>>>]  33%  2 of 6 done, 2 running, 2 waiting
  report  pending
  in 6.0s  east: retry 1 (attempt 2) after exit status 1: no answer
  in 6.5s  so\u{1b}[2Juth: retry 1 (attempt 2) after exit status 1
  6 attempts, 1.5 a second, 4s so far, about 8s left of map

"]]
        .raw()
    );
}

#[test]
fn the_estimate_covers_the_longest_wait() {
    let mut fixture = JobFixture::of(MAP);
    let speed = Speed::new(sample(&fixture.job, fixture.now));
    fixture.read(StepId(0), &["north", "east"]);
    fixture.start();
    fixture.wait(3000);
    fixture.end(StepId(0).item(0), None);
    fixture.end(StepId(0).item(1), Some("no answer"));
    let left = ProgressFrame::of(&fixture.job, &fixture.breakers, &speed, fixture.now).left;
    assert_eq!(left.expect("it is known").time, Duration::from_secs(8));
}
