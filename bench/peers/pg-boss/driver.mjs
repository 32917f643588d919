// pg-boss with explicit fetching and completion of batches: its own workers sleep between batches, these loops do not.
import { PgBoss } from "pg-boss";
import { argument, clock, executed, items, run, say } from "./contract.mjs";

const queue = "items";
const loops = 4;
const batchSize = Number(process.env.BENCH_BATCH ?? 1000);
const together = 5000;
// How long a job of a dead worker stays active; the minimum of pg-boss is a second.
const expireInSeconds = 1;

const open = async () => {
  const boss = new PgBoss({
    connectionString: process.env.BENCH_POSTGRES, schedule: false, supervise: false, max: 10,
    superviseIntervalSeconds: 1, monitorIntervalSeconds: 1,
  });
  boss.on("error", (error) => process.stderr.write(`${error}\n`));
  await boss.start();
  return boss;
};

const submit = async (options) => {
  const boss = await open();
  await boss.createQueue(queue);
  for (let first = 0; first < items; first += together) {
    const jobs = [];
    for (let item = first; item < Math.min(items, first + together); item++) {
      jobs.push({ data: { item }, ...options });
    }
    await boss.insert(queue, jobs);
  }
  return boss;
};

// Fetches batches until this many jobs have succeeded, or for ever; `idle` is called when the queue is empty.
const work = async (boss, wanted, task, idle) => {
  let succeeded = 0;
  const loop = async () => {
    while (succeeded < wanted) {
      const jobs = await boss.fetch(queue, { batchSize, includeMetadata: true });
      if (jobs.length === 0) {
        await idle();
        continue;
      }
      const [good, bad] = [[], []];
      for (const job of jobs) (task(job) ? good : bad).push(job.id);
      if (good.length) await boss.complete(queue, good);
      if (bad.length) await boss.fail(queue, bad);
      succeeded += good.length;
    }
  };
  await Promise.all(Array.from({ length: loops }, loop));
};
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const measure = async (boss, task) => {
  const began = clock();
  await work(boss, items, task, () => pause(1));
  say({ items, seconds: clock() - began });
};
const append = (job) => { executed(job.data.item); return true; };

await run({
  async noop() {
    await measure(await submit(), () => true);
  },
  async retry() {
    await measure(await submit({ retryLimit: 3, retryDelay: 0 }), (job) => job.retryCount > 0);
  },
  async begin() {
    await measure(await submit({ retryLimit: 3, retryDelay: 0, expireInSeconds }), append);
  },
  async resume() {
    const boss = await open();
    say({ ready: true });
    // The jobs of the dead worker return to the queue when they have expired and `supervise` runs.
    await work(boss, Infinity, append, async () => { await boss.supervise(queue); await pause(20); });
  },
  async pend() {
    const began = clock();
    const boss = await submit({ startAfter: new Date(Number(argument)).toISOString() });
    const seconds = clock() - began;
    const { rows } = await boss.getDb().executeSql(
      "select sum(pg_total_relation_size(inhrelid))::float8 as disk from pg_inherits where inhparent = 'pgboss.job'::regclass");
    say({ items, seconds, disk: rows[0].disk });
  },
  async due() {
    const boss = await open();
    say({ ready: true });
    await work(boss, Infinity, append, () => pause(20));
  },
});
