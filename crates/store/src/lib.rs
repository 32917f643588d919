//! Where facts are kept.
//!
//! A [`Store`] holds one journal of opaque records for each aggregate, and with it the owner of the
//! aggregate, the requests made to that owner, and snapshots that shorten recovery. The contract of
//! all stores is the trait [`Store`]; [`suite`] tests it on each of them.
//!
//! ```
//! use undaunted_store::{AggregateId, Append, MemoryStore, Store, Version};
//!
//! let store = MemoryStore::new();
//! let job = AggregateId::new("job", "7f3k")?;
//! let claim = store.claim(&job)?;
//! let records = vec![b"submitted".to_vec(), b"started".to_vec()];
//! store.append(vec![Append::new(job.clone(), claim.version, claim.epoch, records)])?;
//!
//! let last = store.read(&job, Version(1))?.last().transpose()?;
//! assert_eq!(last, Some((Version(2), b"started".to_vec())));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A job has one owner, so its appends carry the version they continue and the epoch of the claim. An
//! aggregate that several processes share, such as a breaker, is given facts, which carry neither and
//! never conflict; `append` returns the versions they were stored at:
//!
//! ```
//! use undaunted_store::{AggregateId, Append, MemoryStore, Store, Version};
//!
//! let store = MemoryStore::new();
//! let breaker = AggregateId::new("breaker", "payments")?;
//! let failed = || Append::facts(breaker.clone(), vec![b"failed".to_vec()]);
//! assert_eq!(store.append(vec![failed()])?, [Version(1)]);
//! assert_eq!(store.another().append(vec![failed()])?, [Version(2)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod aggregate;
mod append;
mod claim;
mod error;
#[cfg(feature = "failpoints")]
pub mod failpoint;
#[cfg(not(feature = "failpoints"))]
mod failpoint;
mod faulty;
mod location;
mod memory;
mod question;
mod request;
mod snapshot;
mod sqlite;
mod store;
pub mod suite;
mod version;

pub use aggregate::{AggregateId, NotAnAggregate};
pub use append::{Append, AppendError, Guard, LARGEST_RECORD};
pub use claim::{Claim, ClaimError, Owner};
pub use error::{SharedError, StoreError};
pub use faulty::{Fault, Faults, FaultyStore};
pub use location::Location;
pub use memory::MemoryStore;
pub use question::{Findings, Numbered, OnFindings, Question};
pub use request::{RequestId, StoreRequest};
pub use snapshot::{FoundSnapshot, Snapshot};
pub use sqlite::{FORMAT, SqliteOptions, SqliteStore};
pub use store::{Head, Listed, OnAppended, Records, Store, UnderClaim};
pub use version::{Epoch, Version};
