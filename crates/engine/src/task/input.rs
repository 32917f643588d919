//! Where the items of a map come from, with all values filled in.

use super::action::TaskWork;
use super::attempt::{KeptOutput, Task};
use super::values::{ItemValues, ValueFiles, within};
use crate::id::StepId;
use crate::job::Job;
use crate::workflow::InputSource;
use crate::workflow::template::ValueError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputTask {
    File(String),
    /// The program's output holds the items.
    Run(Task),
}

pub fn input_task(job: &Job, step: StepId, files: ValueFiles<'_>) -> Result<Option<InputTask>, ValueError> {
    let Some(map) = job.plan().map(step) else {
        return Ok(None);
    };
    let seen = ItemValues::new(job, step.item(0), files);
    Ok(Some(match &map.input.source {
        InputSource::File(path) => {
            let path = path.render(&seen)?;
            InputTask::File(within(&job.submitted().working_dir, Some(&path)))
        }
        InputSource::Shell(text) => {
            let script = text.render(&seen)?;
            let mut env = seen.declared()?;
            env.extend(script.env);
            env.push(("UNDAUNTED_JOB".to_owned(), job.id().to_owned()));
            InputTask::Run(Task {
                work: TaskWork::shell(job, script.text),
                env,
                working_dir: job.submitted().working_dir.clone(),
                timeout: None,
                output_limit: None,
                wants_output: true,
                reads_item_file: false,
                stdin: None,
                keeps: KeptOutput::Items,
            })
        }
    }))
}
