// What every driver in JavaScript has in common: how it is called and how it answers. It is copied beside each of them.
//
//     driver noop N              N items that do nothing
//     driver retry N             N items that fail once and then succeed
//     driver begin N FILE        N items, each of which adds a line to FILE when it is executed
//     driver resume N FILE       goes on with what `begin` has left when it was killed
//     driver pend N DUE          N items that are due at DUE, in milliseconds since 1970
//     driver due N FILE          waits for them; a line each, as above
//
// One line of JSON on standard output says how long it took; `resume` and `due` say when they are ready.
import { openSync, writeSync } from "node:fs";

const [workload, number, rest] = process.argv.slice(2);
export const items = Number(number);
export const argument = rest;

// The clock that is not stepped, in seconds.
export const clock = () => Number(process.hrtime.bigint()) / 1e9;

export const say = (facts) => process.stdout.write(JSON.stringify(facts) + "\n");

// Somebody outside counts these lines: which item, and when.
let file;
export const executed = (item) => {
  file ??= openSync(argument, "a");
  writeSync(file, `${item} ${Date.now()}\n`);
};

// A promise for the moment at which something has been counted so often.
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
