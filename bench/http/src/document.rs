//! Rounds, and the document about them.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use undaunted_bench_figures::{Figures, alternate, machine};

use crate::waiting::Cost;

/// The numbers of concurrent requests.
const WIDTHS: [u32; 2] = [16, 64];

/// How many flows are started at a time to fill a store with waiting ones.
const TOGETHER: u32 = 8;

/// The numbers of flows that fail at the same time.
const FAILING: [u32; 4] = [25, 50, 100, 200];

/// The steps, in a separate process.
struct Steps {
    process: Child,
    url: String,
}

/// Measures everything and prints the document.
pub(crate) fn measure(folder: &Path, requests: u32, rounds: u32, flows: u32) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let before = machine::load();
    let steps = Steps::begin()?;
    let mut tables = String::new();
    for width in WIDTHS {
        tables.push_str(&table(width, &contest(folder, &steps.url, width, requests, rounds)?)?);
    }
    let failing = failing(folder, &steps.url)?;
    let waiting = waiting(folder, &steps.url, flows)?;
    print!("{}", opening(requests, rounds, &before)?);
    print!("{tables}{failing}{waiting}");
    Ok(())
}

fn failing(folder: &Path, url: &str) -> Result<String, Box<dyn Error>> {
    let mut text = "\n## Flows that fail at the same time\n
All flows call one origin that responds with 503. Timed until the retry of each flow is on the disk.\n
| flows | s | ms per flow |\n|--:|--:|--:|\n"
        .to_owned();
    for flows in FAILING {
        eprintln!("{flows} flows fail");
        let took = left(folder, url, flows, flows)?;
        let each = took * 1000.0 / f64::from(flows);
        writeln!(text, "| {flows} | {took:.2} | {each:.1} |")?;
    }
    Ok(text)
}

fn waiting(folder: &Path, url: &str, flows: u32) -> Result<String, Box<dyn Error>> {
    eprintln!("{flows} flows wait");
    let began = left_in(folder, url, flows, TOGETHER)?;
    let cost = own(&["resume", &path(&folder.join("left")), &flows.to_string()])?;
    std::fs::remove_dir_all(folder.join("left"))?;
    Ok(format!(
        "\n## {flows} flows that wait for a retry\n
Started in {began:.0} s, {TOGETHER} at a time, each with one failed attempt and a retry in an hour. Their process was then ended without suspending them, and another one resumed them.\n\n| | |\n|---|--:|\n{cost}"
    ))
}

/// Starts flows that wait, and removes their store.
fn left(folder: &Path, url: &str, flows: u32, together: u32) -> Result<f64, Box<dyn Error>> {
    let took = left_in(folder, url, flows, together)?;
    std::fs::remove_dir_all(folder.join("left"))?;
    Ok(took)
}

/// Starts flows that wait.
fn left_in(folder: &Path, url: &str, flows: u32, together: u32) -> Result<f64, Box<dyn Error>> {
    let (store, flows, together) = (path(&folder.join("left")), flows.to_string(), together.to_string());
    seconds(&["leave", &store, url, &flows, &together])
}

/// Every contestant's rates, in the order of the columns.
fn contest(
    folder: &Path,
    url: &str,
    width: u32,
    requests: u32,
    rounds: u32,
) -> Result<[Figures; 3], Box<dyn Error>> {
    let flows = requests.checked_div(10).unwrap_or_default().max(1);
    let store = folder.join("round");
    let measured = alternate(usize::try_from(rounds)?, 3, |round, contestant| {
        eprintln!("width {width}, round {round}");
        let (store_path, width) = (path(&store), width.to_string());
        let (many, one) = (flows.to_string(), requests.to_string());
        let (arguments, of) = match contestant {
            0 => (vec!["bare", url, &width, &one], requests),
            1 => (vec!["one", &store_path, url, &width, &one], requests),
            _ => (vec!["many", &store_path, url, &width, &many], flows),
        };
        let took = seconds(&arguments)?;
        if contestant > 0 {
            std::fs::remove_dir_all(&store)?;
        }
        Ok::<f64, Box<dyn Error>>(f64::from(of) / took)
    });
    let mut figures = Vec::new();
    for rates in measured {
        figures.push(Figures::of(rates?));
    }
    let figures = <[Figures; 3]>::try_from(figures);
    figures.map_err(|_| "a contestant is missing".into())
}

/// Runs this program in another mode and returns its output.
fn own(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    let done = command.args(arguments).stderr(Stdio::inherit()).output()?;
    if !done.status.success() {
        return Err(format!("{arguments:?} failed").into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

fn seconds(arguments: &[&str]) -> Result<f64, Box<dyn Error>> {
    Ok(own(arguments)?.trim().parse()?)
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Steps {
    fn begin() -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        let command = command.arg("serve").stdin(Stdio::piped());
        let mut process = command.stdout(Stdio::piped()).spawn()?;
        let mut url = String::new();
        let output = process.stdout.take().ok_or("steps without output")?;
        BufReader::new(output).read_line(&mut url)?;
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // The steps end when their input does; waiting leaves no zombie behind.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn opening(requests: u32, rounds: u32, before: &str) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let flows = requests.checked_div(10).unwrap_or_default().max(1);
    writeln!(
        text,
        "# Recorded requests, and many flows\n
Generated; do not edit. Run in `bench/`, with a folder on a physical disk:\n
```sh
cargo run --release --locked -p undaunted-bench-http -- measure FOLDER > HTTP.md
```\n
{cores} cores, {system}, load average {before} before and {after} after. The steps (axum, HTTP/1.1, immediate responses) run in a separate process on the same machine, so the clients share its cores with them. There are {rounds} rounds; in each, every contestant runs once in its own process, and the order is reversed from round to round. No figure is checked against a limit.\n
- **bare**: reqwest as the product configures it, {requests} requests of the same shape, without records.
- **one flow**: one step with `for_each` over {requests} elements, with `parallelism` equal to the width of the client. Every start is on the disk before its
  request is sent, and every outcome before anything that depends on it. Timed from the submission of the flow to its end.
- **many flows**: {flows} flows of one request each, started by as many threads as the client has connections. Timed until the last flow has ended.",
        cores = machine::cores(),
        system = machine::kernel(),
        after = machine::load(),
    )?;
    Ok(text)
}

fn table(width: u32, [bare, one, many]: &[Figures; 3]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    writeln!(text, "\n## {width} at a time\n")?;
    writeln!(
        text,
        "| round | bare, requests/s | one flow, attempts/s | relative to bare | many flows, flows/s | relative to bare |\n|--:|--:|--:|--:|--:|--:|"
    )?;
    let (of_one, of_many) = (one.over(bare), many.over(bare));
    let columns = [bare, one, &of_one, many, &of_many].map(Figures::rounds);
    let [bare, one, one_of, many, many_of] = columns.map(|column| column.iter());
    let rows = bare.zip(one).zip(one_of).zip(many).zip(many_of);
    for (number, ((((bare, one), one_of), many), many_of)) in (1..).zip(rows) {
        writeln!(text, "| {number} | {bare:.0} | {one:.0} | {one_of:.2} | {many:.0} | {many_of:.2} |")?;
    }
    let (one_low, one_high) = of_one.range();
    let (many_low, many_high) = of_many.range();
    let (one, many) = (of_one.median(), of_many.median());
    let goal = if one >= 0.5 { "met" } else { "missed" };
    writeln!(
        text,
        "\nMedian ratio of one flow {one:.2} ({one_low:.2} to {one_high:.2}; goal: at least 0.5, {goal}), of many flows {many:.2} ({many_low:.2} to {many_high:.2})."
    )?;
    Ok(text)
}

/// Prints the cost of many flows as rows of a table.
pub(crate) fn tell_cost(cost: &Cost, flows: u32) {
    let seconds = |took: Duration| format!("{:.2} s", took.as_secs_f64());
    let each = cost.memory.saturating_mul(1024);
    let each = each.checked_div(u64::from(flows)).unwrap_or_default();
    println!("| the store is open after | {} |", seconds(cost.opened));
    println!("| every flow is loaded after | {} |", seconds(cost.loaded));
    println!("| every `job_resumed` is on the disk after | {} |", seconds(cost.on_disk));
    println!("| CPU time for that | {} |", seconds(cost.worked));
    let megabytes = cost.memory.checked_div(1024).unwrap_or_default();
    println!("| memory afterwards | {megabytes} MB, {each} bytes per flow |");
    let idle = cost.idle.as_secs_f64() * 1000.0;
    println!("| CPU time during 10 idle seconds | {idle:.1} ms |");
}
