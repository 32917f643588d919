//! Requests to a job that no process runs do not count as activity of a process.

use undaunted_engine::input::Input;
use undaunted_policy::Reason;

use crate::fixture::{EXIT_1, TestedJob, at};

/// One item with a deadline, which waits for its retry.
fn waiting(settings: &str, limit: u64) -> TestedJob {
    let text = format!(
        "
retry_budget: 5
mode: mapreduce
map:
  input: a.json
  timeout_config: {{agent_timeout_secs: {limit}}}
  agent_template:
    - {{shell: a, retry_config: {{attempts: 4, backoff: fixed, initial_delay: 2s{settings}}}}}
"
    );
    let mut test = TestedJob::started_over(&text, 1);
    test.fail(0, EXIT_1).at(1);
    test
}

fn asked() -> [Vec<(u64, Input)>; 4] {
    [
        vec![],
        vec![(5, Input::TopUp { retries: 1 })],
        vec![(3, Input::Pause), (6, Input::Unpause)],
        vec![(2, Input::Pause), (3, Input::Unpause), (4, Input::TopUp { retries: 1 })],
    ]
}

#[test]
fn requests_to_a_suspended_job_do_not_end_its_suspension() {
    for asked in asked() {
        let mut test = waiting("", 6);
        test.suspend();
        for (when, input) in &asked {
            test.at(*when).feed(input);
        }
        test.at(8).crash_and_resume();
        assert_eq!(test.active(0).began(), Some(at(7)), "{asked:?}");
    }
}

#[test]
fn a_pause_that_begins_before_or_in_a_suspension_counts_once() {
    for paused in [0, 1] {
        let mut test = waiting("", 600);
        if paused == 0 {
            test.pause();
        }
        test.at(11).suspend();
        if paused == 1 {
            test.at(15).pause();
        }
        test.at(31).crash_and_resume().at(41).unpause();
        // Suspended from 11s to 31s, paused until 41s; the first pause began at 1s.
        let expected = if paused == 0 { 40 } else { 30 };
        assert_eq!(test.active(0).began(), Some(at(expected)));
    }
}

#[test]
fn requests_during_downtime_do_not_shorten_it() {
    for asked in asked() {
        let mut test = waiting(", retry_budget: 3s", 600);
        for (when, input) in &asked {
            test.at(*when).feed(input);
        }
        let lines = test.at(9).crash_and_resume().lines();
        assert!(lines.iter().any(|it| it.ends_with("retry_budget_expired")), "{asked:?}: {lines:?}");
        assert_eq!(test.outcome().1, Some(Reason::RetryBudgetExpired));
    }
}
