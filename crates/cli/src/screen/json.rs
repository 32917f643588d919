//! A view as one line of JSON.

use std::io::{self, Write};

use serde::Serialize;

pub(crate) fn json(out: &mut impl Write, view: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, view)?;
    writeln!(out)
}
