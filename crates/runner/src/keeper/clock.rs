//! The timer thread: timeouts, the end of a grace, output limits.

use std::sync::PoisonError;
use std::time::Instant;

use super::shared::{KeeperShared, KeeperState};
use crate::locked;

pub(crate) fn run_timer(shared: &KeeperShared) {
    let mut state = locked(&shared.state);
    loop {
        let now = Instant::now();
        while let Some(&(at, id)) = state.alarms.first()
            && at <= now
        {
            state.alarms.pop_first();
            alarm_due(shared, &mut state, id, now);
        }
        if state.patience.is_some_and(|until| until <= now) {
            state.patience = None;
            shared.exit_if_idle(&state);
        }
        let next = [state.alarms.first().map(|(at, _)| *at), state.patience];
        state = match next.into_iter().flatten().min() {
            Some(at) => {
                let rest = at.saturating_duration_since(Instant::now());
                let waited = shared.alarm.wait_timeout(state, rest);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared.alarm.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
    }
}

fn alarm_due(shared: &KeeperShared, state: &mut KeeperState, id: u64, now: Instant) {
    let Some(run) = state.runs.get_mut(&id) else {
        return;
    };
    let due = run.wake(now);
    shared.set_alarm(state, id);
    if due {
        shared.schedule(state, id);
    }
}
