//! The progress display as users see it.

mod frames;
mod sentences;
mod terminals;

const MAP: &str = "
name: regions
mode: mapreduce
map:
  input: regions.json
  max_parallel: 3
  error_policy: {on_item_failure: dlq, retry_config: {attempts: 1, backoff: fixed, initial_delay: 8s}}
  agent_template:
    - shell: ./ask
reduce:
  - id: report
    shell: ./report
";
