//! Goals and attributes: the part of a job that only flows have.

use undaunted_policy::Reason;

use super::complete::JobFailure;
use super::state::Job;
use super::step::StepStage;
use crate::event::StoredText;
use crate::flow::AttributeValue;
use crate::id::StepId;

impl Job {
    pub(super) fn begin_flow(&mut self) {
        let submitted = self.submitted.flow.as_ref().map(|flow| flow.aim().init);
        let in_text = || Some(self.plan.workflow().flow.as_ref()?.init.clone());
        let init = submitted.or_else(in_text).into_iter().flatten();
        let init = init.map(|(name, value)| (name, AttributeValue { value, step: None }));
        self.attributes = init.collect();
    }

    pub(crate) fn is_planned(&self, step: StepId) -> bool {
        let flow = self.workflow().flow.as_ref();
        flow.is_some_and(|flow| flow.plan.contains(&step.position()))
    }

    pub(crate) fn goals(&self) -> impl Iterator<Item = StepId> {
        let flow = self.workflow().flow.as_ref();
        let goals = flow.map(|flow| flow.goals.as_slice()).unwrap_or_default();
        let steps = || StepId::all().zip(&self.workflow().steps);
        let named =
            move |goal: &String| steps().find(|(_, step)| step.name == *goal).map(|(number, _)| number);
        goals.iter().filter_map(named)
    }

    pub(crate) fn has_missed_a_goal(&self) -> bool {
        let failed = |step: StepId| self.step(step).map(|state| state.stage) == Some(StepStage::Failed);
        self.open.failed > 0 && self.goals().any(failed)
    }

    pub(super) fn set_attribute(&mut self, step: StepId, name: &str, value: &str) {
        let value = serde_json::from_str(value).unwrap_or_default();
        self.attributes.insert(name.to_owned(), AttributeValue { value, step: Some(step) });
        self.open_dependents(step);
    }

    pub(super) fn mark_unreachable(&mut self, step: StepId, missing: &str) {
        let name = self.plan.step(step).map(|found| found.name.clone());
        let error = format!(
            "step `{}` cannot start: it requires `{missing}`, which no step can produce any more",
            name.unwrap_or_default()
        );
        self.failures
            .failure
            .get_or_insert(JobFailure { reason: Reason::Permanent, error: StoredText::Itself(error) });
        if let Some(state) = self.step_mut(step) {
            state.unreachable = true;
        }
        self.close(step, StepStage::Failed);
    }
}
