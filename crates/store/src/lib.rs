//! The store: journals of facts.
//!
//! A [`Store`] holds a journal of opaque records for each aggregate, together with the owner of the
//! aggregate, the requests to that owner, and snapshots that shorten recovery. The trait [`Store`] is the
//! contract of all stores, and [`suite`] tests each of them.
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
//! A job has one owner, so its appends carry the version they continue and the epoch of the claim. To an
//! aggregate that several processes share, such as a breaker, they append facts, which carry neither and
//! never conflict; `append` returns the versions at which they were stored:
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
mod error;
#[cfg(feature = "failpoints")]
pub mod failpoint;
#[cfg(not(feature = "failpoints"))]
mod failpoint;
mod faulty;
mod location;
mod memory;
mod requests;
mod sqlite;
mod store;
pub mod suite;

pub use aggregate::{AggregateId, Claim, ClaimError, Epoch, InvalidAggregateId, Owner, Version};
pub use append::{Append, AppendError, Guard, LARGEST_RECORD};
pub use error::{SharedError, StoreError};
pub use faulty::{Fault, Faults, FaultyStore};
pub use location::Location;
pub use memory::MemoryStore;
pub use requests::{Findings, NumberedRecord, OnFindings, Question, RequestId, StoreRequest};
pub use sqlite::{FORMAT, SqliteOptions, SqliteStore};
pub use store::{FoundSnapshot, Head, ListedAggregate, OnAppended, Records, Snapshot, Store, UnderClaim};
