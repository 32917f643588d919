// graphile-worker with its local queue and its batched completions, the fastest documented configuration.
import { makeWorkerUtils, run as work, Logger } from "graphile-worker";
import pg from "pg";
import { argument, clock, counter, executed, items, run, say } from "./contract.mjs";

const connectionString = process.env.BENCH_POSTGRES;
const logger = new Logger(() => () => {});
const preset = {
  worker: {
    connectionString,
    concurrentJobs: 64,
    maxPoolSize: 10,
    pollInterval: 100,
    localQueue: { size: 2000 },
    // A delayed completion is repeated after a kill.
    completeJobBatchDelay: Number(process.env.BENCH_COMPLETION_DELAY ?? 0),
    failJobBatchDelay: 0,
  },
};
const together = 5000;

const submit = async (spec) => {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  for (let first = 0; first < items; first += together) {
    const jobs = [];
    for (let item = first; item < Math.min(items, first + together); item++) {
      jobs.push({ identifier: "item", payload: { item }, ...spec });
    }
    await utils.addJobs(jobs);
  }
  return utils;
};

const start = (task) => work({ preset, logger, taskList: { item: task }, noHandleSignals: true });

// When the worker has stopped, everything is recorded.
const measure = async (task, done) => {
  const began = clock();
  const worker = await start(task);
  await done.reached;
  await worker.stop();
  const seconds = clock() - began;
  const client = new pg.Client({ connectionString });
  await client.connect();
  const { rows } = await client.query("select count(*)::int as left from graphile_worker._private_jobs");
  await client.end();
  return { items, seconds, left: rows[0].left };
};

const count = (task) => {
  const done = counter(items);
  return measure((payload) => { task?.(payload); done.add(); }, done);
};

await run({
  async noop() {
    await (await submit()).release();
    say(await count());
  },
  async retry() {
    await (await submit({ maxAttempts: 3 })).release();
    const done = counter(items);
    const figures = await measure((payload, helpers) => {
      if (helpers.job.attempts === 1) throw new Error("the first attempt fails");
      done.add();
    }, done);
    // The wait before the first retry is exp(1) seconds and cannot be configured.
    say({ ...figures, delay: Math.E });
  },
  async begin() {
    await (await submit()).release();
    say(await count(({ item }) => executed(item)));
  },
  async resume() {
    // Jobs of a dead worker stay locked for four hours, unless they are unlocked explicitly.
    const utils = await makeWorkerUtils({ connectionString, logger });
    await utils.withPgClient(async (client) => {
      const { rows } = await client.query("select distinct locked_by from graphile_worker._private_jobs where locked_by is not null");
      await utils.forceUnlockWorkers(rows.map((row) => row.locked_by));
    });
    await start(({ item }) => executed(item));
    say({ ready: true });
    await new Promise(() => {});
  },
  async pend() {
    const began = clock();
    const utils = await submit({ runAt: new Date(Number(argument)) });
    const seconds = clock() - began;
    const { rows } = await utils.withPgClient((client) =>
      client.query("select pg_total_relation_size('graphile_worker._private_jobs')::float8 as disk"));
    say({ items, seconds, disk: rows[0].disk });
  },
  async due() {
    await start(({ item }) => executed(item));
    say({ ready: true });
    await new Promise(() => {});
  },
});
