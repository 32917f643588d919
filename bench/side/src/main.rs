//! Measures the same work on Undaunted and on its peers.
//!
//! `bench/run` builds the programs and starts this one. Progress goes to stderr, the document to
//! `bench/RESULTS.md` and the charts to `bench/charts/`. A missed target is no error: the exit code is 0
//! whatever the figures are.

mod arguments;
mod bench;
mod chart;
mod executions;
mod floor;
mod machine;
mod peers;
mod postgres;
mod process;
mod results;
mod scratch;
mod section;
mod workload;

use std::error::Error;
use std::fs;
use std::process::ExitCode;

use arguments::{Arguments, PEERS};
use bench::Bench;
use machine::Machine;
use results::Opening;
use section::Section;

fn main() -> ExitCode {
    let arguments = match Arguments::read(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(reason) => {
            eprintln!("bench/run: {reason}\nusage: bench/run [--quick] [PEER…]; peers: {}", PEERS.join(", "));
            return ExitCode::from(2);
        }
    };
    match measure(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench/run: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let before = undaunted_bench_figures::machine::load();
    let bench = Bench::prepare(arguments)?;
    let machine = Machine::look(bench.scratch.data());
    let sections: Vec<Section> = workload::ALL.iter().map(|workload| workload(&bench)).collect();
    let version = process::finish(bench.undaunted().arg("--version"))?;
    let opening = Opening {
        command: bench.arguments.command(),
        rounds: bench.rounds(),
        load: [before, undaunted_bench_figures::machine::load()],
        machine: &machine,
        version: version.trim().to_owned(),
        postgres: match &bench.postgres {
            Ok(postgres) => postgres.version().to_owned(),
            Err(reason) => format!("not available: {reason}"),
        },
        peers: &bench.peers,
    };
    let charts = bench.arguments.bench.join("charts");
    fs::create_dir_all(&charts)?;
    for (name, chart) in sections.iter().filter_map(|section| section.chart.as_ref()) {
        fs::write(charts.join(name).with_extension("svg"), chart.svg()?)?;
    }
    let document = results::document(&opening, &sections)?;
    fs::write(bench.arguments.bench.join("RESULTS.md"), document)?;
    eprintln!("bench/run: wrote bench/RESULTS.md");
    Ok(())
}
