//! Appending the same bytes to a file, a group at a time, each group synced.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use crate::process::Reason;

/// How many items share a sync.
pub(crate) const GROUP: u32 = 1024;

/// Appends `bytes` for each item and returns the items per second.
pub(crate) fn append(folder: &Path, items: u32, bytes: u32) -> Result<f64, Reason> {
    let path = folder.join("appended");
    let write = || -> std::io::Result<f64> {
        let group = vec![7; usize::try_from(bytes.saturating_mul(GROUP)).unwrap_or_default()];
        let mut file = File::create(&path)?;
        let began = Instant::now();
        for _ in 0..items.div_ceil(GROUP) {
            file.write_all(&group)?;
            file.sync_data()?;
        }
        let rate = f64::from(items.div_ceil(GROUP).saturating_mul(GROUP)) / began.elapsed().as_secs_f64();
        fs::remove_file(&path)?;
        Ok(rate)
    };
    write().map_err(|error| error.to_string())
}
