//! Fuzzing of everything that comes from outside or from the disk: any bytes in, a panic only when a
//! law is broken.
//!
//! The targets are pure functions of their input. Of the policy, one restores saved states from
//! bytes (`restore`), the other lets bytes decide what befalls a command or a breaker (`decide`). Of
//! the language, bytes are a file (`check`), a template (`template`), or a filter and an input
//! (`filter`). Of what is stored, they are a record (`record`), a journal (`journal`), the log of a spool
//! or words of a keeper (`keeper`), an archive (`archive`) or a file of another system (`import`); of
//! what others send, requests (`http`) or results (`webhook`). All look from outside: what an answer may be is worked out from what was asked and
//! what is shown of the answer (`promise` and the laws), not from the fields it came from. `fuzz/`
//! feeds them for as long as one likes, with coverage to guide it; `tests/fuzz.rs` feeds them mutants
//! of the corpus (`run`) for a few seconds in every `./verify`.

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
