"""DBOS: parallel workflows, each of which calls its share of the items as sequential steps.

`contract.mjs` describes the interface of a driver.
"""

import json
import os
import sqlite3
import sys
import time

import psycopg
from dbos import DBOS, SetWorkflowID

# Steps of different workflows share the commits of PostgreSQL; SQLite has one writer, for which several workflows would compete.
WORKFLOWS = 8 if "BENCH_POSTGRES" in os.environ else 1

workload, items = sys.argv[1], int(sys.argv[2])
argument = sys.argv[3] if len(sys.argv) > 3 else None


def say(**facts):
    print(json.dumps(facts), flush=True)


def database():
    """PostgreSQL if there is one, or else SQLite with a write-ahead log; SQLite's commits are synced by default."""
    if url := os.environ.get("BENCH_POSTGRES"):
        return url
    path = os.path.join(os.environ["BENCH_FOLDER"], "dbos.sqlite")
    with sqlite3.connect(path) as connection:
        connection.execute("pragma journal_mode = wal")
    return f"sqlite:///{path}"


DBOS(config={
    "name": "bench",
    "system_database_url": database(),
    "log_level": "ERROR",
    "application_version": "1",
    "executor_id": "bench",
    "sys_db_pool_size": 20,
})

output = None


def executed(item):
    """Appends a line with the item and the time, which the benchmark counts."""
    global output
    if output is None:
        output = os.open(argument, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(output, f"{item} {int(time.time() * 1000)}\n".encode())


@DBOS.step()
def nothing(item):
    return item


failed = set()


@DBOS.step(retries_allowed=True, interval_seconds=0, max_attempts=3)
def second_time(item):
    if item not in failed:
        failed.add(item)
        raise RuntimeError("the first attempt fails")
    return item


@DBOS.step()
def counted(item):
    executed(item)
    return item


STEPS = {"nothing": nothing, "second_time": second_time, "counted": counted}


@DBOS.workflow()
def share(step, first, behind):
    for item in range(first, behind):
        STEPS[step](item)


@DBOS.workflow()
def pending(item, due):
    """A pending retry is a durable sleep."""
    DBOS.sleep(max(0.0, due / 1000 - time.time()))
    counted(item)


def shares(step):
    handles = []
    for number in range(WORKFLOWS):
        with SetWorkflowID(f"share-{number}"):
            first, behind = items * number // WORKFLOWS, items * (number + 1) // WORKFLOWS
            handles.append(DBOS.start_workflow(share, step, first, behind))
    return handles


def measure(step):
    DBOS.launch()
    began = time.monotonic()
    for handle in shares(step):
        handle.get_result()
    say(items=items, seconds=time.monotonic() - began)


def pend():
    DBOS.launch()
    began = time.monotonic()
    for item in range(items):
        with SetWorkflowID(f"item-{item}"):
            DBOS.start_workflow(pending, item, int(argument))
    say(items=items, seconds=time.monotonic() - began, **disk())


def disk():
    """The bytes of the tables in PostgreSQL."""
    if not (url := os.environ.get("BENCH_POSTGRES")):
        return {}
    with psycopg.connect(url) as connection:
        query = "select sum(pg_total_relation_size(oid))::float8 from pg_class where relkind = 'r' and relnamespace = 'dbos'::regnamespace"
        return {"disk": connection.execute(query).fetchone()[0]}


def resume():
    """DBOS resumes pending workflows when it is launched."""
    DBOS.launch()
    say(ready=True)
    while True:
        time.sleep(3600)


workloads = {
    "noop": lambda: measure("nothing"),
    "retry": lambda: measure("second_time"),
    "begin": lambda: measure("counted"),
    "resume": resume,
    "pend": pend,
    "due": resume,
}
if workload not in workloads:
    sys.exit(f"driver WORKLOAD N [ARGUMENT]; workloads: {', '.join(workloads)}")
workloads[workload]()
# Exits without waiting for other threads.
sys.stdout.flush()
os._exit(0)
