//! Fuzz targets for everything that comes from outside or from the disk: any bytes in, a panic only when a
//! law is broken.
//!
//! The targets are pure functions of their input. For the policy, bytes are saved states (`restore`) or
//! decide what happens to a command or a breaker (`decide`). For the language, they are a workflow file
//! (`check`), a template (`template`), or a filter and an input (`filter`). For the store, they are a record
//! (`record`), a journal (`journal`), a spool log or keeper messages (`keeper`), an archive (`archive`) or a
//! state file of another system (`import`). For the server, they are HTTP requests (`http`) or async results
//! (`webhook`). The targets are oracles: they compute what an answer may be from what was asked and from what
//! the answer shows (`expected` and the laws), not from the fields it came from. `fuzz/` feeds them under
//! libFuzzer; `tests/fuzz` feeds them mutants of the corpus (`run`) for a few seconds in every `./verify`.

mod answer;
mod archive;
mod breaker;
mod byte_source;
mod check;
mod decide;
mod drive;
mod expected;
mod filter;
mod generate;
mod http;
mod import;
mod items;
mod journal;
mod keeper;
mod law;
mod mutant;
mod notation;
mod offline_server;
mod record;
mod request;
mod restore;
mod run;
mod template;
mod views;
mod waiting_flow;
mod webhook;
mod workflow;

pub use archive::archive_restore;
pub use check::workflow_check;
pub use decide::policy_decide;
pub use filter::workflow_filter;
pub use http::http_request;
pub use import::state_import;
pub use journal::journal_fold;
pub use keeper::keeper_bytes;
pub use record::journal_record;
pub use restore::{SAVED, policy_restore};
pub use run::{FuzzFinding, FuzzTarget, run};
pub use template::workflow_template;
pub use webhook::webhook_result;
