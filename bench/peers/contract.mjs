// The interface of all drivers, and their common code in JavaScript. It is copied into the folder of each driver.
//
//     driver noop N              N items that do nothing
//     driver retry N             N items that fail once and then succeed
//     driver begin N FILE        N items, each of which appends a line to FILE when it is executed
//     driver resume N FILE       resumes after `begin` was killed
//     driver pend N DUE          N items that are due at DUE, in milliseconds since 1970
//     driver due N FILE          waits for these items; each appends a line, as above
//
// A driver prints one line of JSON with its figures; `resume` and `due` print one when they are ready.
import { openSync, writeSync } from "node:fs";

const [workload, number, rest] = process.argv.slice(2);
export const items = Number(number);
export const argument = rest;

// A monotonic clock, in seconds.
export const clock = () => Number(process.hrtime.bigint()) / 1e9;

export const say = (facts) => process.stdout.write(JSON.stringify(facts) + "\n");

// The benchmark counts these lines: the item and the time.
let file;
export const executed = (item) => {
  file ??= openSync(argument, "a");
  writeSync(file, `${item} ${Date.now()}\n`);
};

// A promise that resolves when the counter has reached `wanted`.
export const counter = (wanted) => {
  let count = 0;
  let reach;
  const reached = new Promise((resolve) => (reach = resolve));
  return { reached, add: (n = 1) => (count += n) >= wanted && reach() };
};

export const run = async (workloads) => {
  if (!(workload in workloads) || !(items > 0)) {
    process.stderr.write(`driver WORKLOAD N [ARGUMENT]; workloads: ${Object.keys(workloads).join(", ")}\n`);
    process.exit(2);
  }
  await workloads[workload]();
  process.exit(0);
};
