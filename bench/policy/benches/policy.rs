//! The contestants under criterion: `cargo bench -p undaunted-bench-policy`.
//!
//! The library of this package defines the contestants; its program generates the committed table.

use criterion::Criterion;

fn main() -> Result<(), undaunted_policy::PolicyError> {
    let mut criterion = Criterion::default().configure_from_args();
    for group in undaunted_bench_policy::groups()? {
        let mut figures = criterion.benchmark_group(group.name);
        for mut contestant in group.contestants {
            figures.bench_function(contestant.name, |bencher| {
                bencher.iter_custom(|iterations| contestant.time(iterations));
            });
        }
        figures.finish();
    }
    criterion.final_summary();
    Ok(())
}
