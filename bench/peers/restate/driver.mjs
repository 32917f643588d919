// Restate: one invocation per item. The driver is both the service that executes them and the client that submits them. It
// starts its own server with a synced log (the default).
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import * as restate from "@restatedev/restate-sdk";
import { argument, clock, counter, executed, items, run, say } from "./contract.mjs";

const folder = process.env.BENCH_FOLDER;
const width = Number(process.env.BENCH_WIDTH ?? 256);
const agent = new http.Agent({ keepAlive: true, maxSockets: width });

const free = () => new Promise((resolve) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});

// A restarted server finds the service at the same port.
const ports = async () => {
  const file = join(folder, "ports.json");
  if (!existsSync(file)) {
    writeFileSync(file, JSON.stringify({ node: await free(), ingress: await free(), admin: await free(), service: await free() }));
  }
  return JSON.parse(readFileSync(file, "utf8"));
};
const { node, ingress, admin, service } = await ports();

const post = (port, path, body) => new Promise((resolve, reject) => {
  const request = http.request({ agent, port, path, method: "POST", headers: { "content-type": "application/json" } }, (response) => {
    let text = "";
    response.on("data", (chunk) => (text += chunk));
    response.on("end", () => (response.statusCode < 300 ? resolve(text) : reject(new Error(`${response.statusCode}: ${text}`))));
  });
  request.on("error", reject);
  request.end(JSON.stringify(body));
});
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const start = async (task) => {
  const item = restate.service({
    name: "item",
    handlers: { run: async (ctx, number) => task(number) },
    options: { retryPolicy: { initialInterval: 1, maxInterval: 1, maxAttempts: 10 } },
  });
  // The SDK logs to standard output, which is reserved for the answer.
  await restate.endpoint().bind(item).setLogger(() => {}).listen(service);
  // The server is killed when the driver dies.
  const program = join(import.meta.dirname, `node_modules/@restatedev/restate-server-linux-${process.arch}/bin/restate-server`);
  spawn("setpriv", ["--pdeathsig", "KILL", "--", program, "--no-logo", "--base-dir", join(folder, "restate")], {
    stdio: "ignore",
    env: {
      ...process.env,
      RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_NODE_NAME: "bench",
      RESTATE_DISABLE_TELEMETRY: "true",
      DO_NOT_TRACK: "1",
    },
  });
};

const register = async () => {
  for (;;) {
    try {
      await post(admin, "/deployments", { uri: `http://127.0.0.1:${service}`, force: true });
      await post(ingress, "/item/run", -1);
      return;
    } catch (error) {
      await pause(20);
    }
  }
};

const all = async (path) => {
  let next = 0;
  const client = async () => { while (next < items) await post(ingress, path(), next++); };
  await Promise.all(Array.from({ length: width }, client));
};
const submit = (due) => all(() => `/item/run/send?delay=${Math.max(0, due - Date.now())}ms`);

const measure = async (task) => {
  await start(task);
  await register();
  const began = clock();
  await all(() => "/item/run");
  say({ items, seconds: clock() - began });
};

const append = (number) => { if (number >= 0) executed(number); };

await run({
  noop: () => measure(() => {}),
  async retry() {
    const failed = new Set();
    await measure((number) => {
      if (number < 0 || failed.has(number)) return;
      failed.add(number);
      throw new Error("the first attempt fails");
    });
  },
  async begin() {
    // No item is due before all are submitted: an item that was not submitted cannot be lost.
    const done = counter(items);
    await start((number) => { append(number); if (number >= 0) done.add(); });
    await register();
    await submit(Date.now() + 3000 + items * 2);
    await done.reached;
    say({ items });
  },
  async resume() {
    await start(append);
    say({ ready: true });
    await new Promise(() => {});
  },
  async pend() {
    await start(append);
    await register();
    const began = clock();
    await submit(Number(argument));
    say({ items, seconds: clock() - began });
  },
  async due() {
    await start(append);
    await register();
    say({ ready: true });
    await new Promise(() => {});
  },
});
