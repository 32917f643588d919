//! Jobs whose commands are functions of a program.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a panic in a test is a red test")]

mod ahead;
mod killed;
mod outcomes;
mod refused;

#[test]
fn the_page_shows_the_example() {
    let example = include_str!("../../examples/embed.rs");
    let page = include_str!("../../../../docs/guide/embedding.md");
    let code = example.find("use std").map(|begin| &example[begin..]);
    assert!(page.contains(code.unwrap()), "docs/guide/embedding.md differs from examples/embed.rs");
    let lines = code.unwrap().lines().filter(|line| !line.is_empty());
    assert!(lines.count() <= 32);
}
