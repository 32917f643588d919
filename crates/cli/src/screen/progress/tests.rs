//! What is shown of a job while it runs, as people see it.

mod frames;
mod jobs;
mod said;
mod terminals;
