#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes about PostgreSQL: what they tell is what the server itself logs and counts."""

import re
import subprocess
import time

from recipes import Recipe, check_near
from harness import Skip, check, check_equal, main, scenario, wait_until
from postgres import POSTGRES_BIN, Postgres


def logged(server, pattern, many):
    """What the server wrote to its log since it runs; it may write later than it answers."""
    wait_until(lambda: len(re.findall(pattern, server.log.read_text(), re.M)) >= many, f"{many} times {pattern} in the log")
    return re.findall(pattern, server.log.read_text(), re.M)


def session(run, server):
    """A psql that takes statements at its standard input, one after the other."""
    argv = ["runuser", "-u", server.user, "--", f"{POSTGRES_BIN}/psql", "-h", server.dir, "-U", "tester", "-d", "postgres", "-XAtq"]
    return run.start(*argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=server.dir)


SLEEPS = {"SELECT pg_sleep(0.12)": 0.12, "SELECT 'slow', pg_sleep(0.2)": 0.2}
QUICK = ["SELECT 1", "SELECT 1 / 0", "SELECT count(*) FROM pg_class", "SELECT 2"]  # the second one fails


@scenario
def slow_statements_are_those_that_the_server_logs_as_slow(run):
    with Postgres(run, "log_min_duration_statement=0") as server:
        slow = Recipe(run, "Which SQL statements take longer than 50 ms?").start(server.pid)
        times = Recipe(run, "How long do statements take, by their text?").start(server.pid)
        server.sql("SELECT 1", *SLEEPS, *QUICK, *SLEEPS)
        slow, times = slow.stop(), times.stop()
    said = [(text, float(ms) / 1000) for ms, text in logged(server, r"duration: ([\d.]+) ms  statement: (.*)$", 8)]
    expected = [(text, took) for text, took in said if took > 0.05]
    check_equal([span["args"][0] for span in slow.spans], [text for text, _ in expected], "slow statements")
    check(len(expected) >= 4, f"those that sleep are among them: {expected}")
    for span, (text, took) in zip(slow.spans, expected):
        check_near(span["duration_ns"] / 1e9, took, text)
    began = slow.summary["probes"][0]
    check_equal(began["in_flight"] + began["lost"]["abandoned"], 1, "the statement that failed; its process may have ended")

    check_equal(sum(times.counts().values()), len(said), "statements")
    for text in SLEEPS:
        row, theirs = times.rows[(text,)], [took for each, took in said if each == text]
        check_equal(row["count"], len(theirs), text)
        check_near(row["max"] / 1e9, max(theirs), f"the longest {text}")
    check_equal(times.counts()[("SELECT 1",)], 2, "a quick one")


@scenario
def lock_waits_are_as_long_as_the_server_logs(run):
    with Postgres(run, "log_lock_waits=on", "deadlock_timeout=10ms") as server:
        server.sql("CREATE TABLE held(n int)", "CREATE TABLE free(n int)")
        relation = int(server.sql("SELECT 'held'::regclass::oid"))
        database = int(server.sql("SELECT oid FROM pg_database WHERE datname = 'postgres'"))
        holder, waiter = session(run, server), session(run, server)
        recipe = Recipe(run, "Who waits for a lock, for which table, and how long?").start(server.pid)
        for hold in (0.15, 0.3):
            holder.stdin.write("BEGIN; LOCK TABLE held; SELECT 'holds';\n")
            check_equal(holder.stdout.readline().strip(), "holds", "the holder")
            waiter.stdin.write("SELECT 'asks'; INSERT INTO held VALUES (1); SELECT 'has';\n")
            check_equal(waiter.stdout.readline().strip(), "asks", "the one that waits")
            time.sleep(hold)
            holder.stdin.write("COMMIT;\n")
            check_equal(waiter.stdout.readline().strip(), "has", "the one that waits")
        result = recipe.stop()
    said = logged(server, r"process (\d+) acquired RowExclusiveLock on relation (\d+) of database (\d+) after ([\d.]+) ms", 2)
    check_equal(len(result.spans), 2, "lock waits")
    row_exclusive = 3  # src/include/storage/lockdefs.h
    for span, (pid, table, base, ms) in zip(result.spans, said):
        check_equal((span["pid"], *span["args"]), (int(pid), int(base), int(table), row_exclusive), "process, database, table, mode")
        check_equal((int(table), int(base)), (relation, database), "the ones that were meant")
        check_near(span["duration_ns"] / 1e9, float(ms) / 1000, "the wait")


@scenario
def checkpoints_are_as_long_and_as_large_as_the_server_logs(run):
    with Postgres(run) as server:
        recipe = Recipe(run, "How long does a checkpoint take, and how much does it write?").start(server.pid)
        for rows in (10, 3000):
            server.sql(f"CREATE TABLE c{rows} AS SELECT g FROM generate_series(1, {rows}) g", "CHECKPOINT")
        said = logged(server, r"checkpoint complete: wrote (\d+) buffers .* (\d+) WAL file\(s\) added.* total=([\d.]+) s", 2)
        result = recipe.stop()
    check_equal(len(result.spans), 2, "checkpoints")
    for span, (wrote, added, total) in zip(result.spans, said):
        check_equal(span["args"], [int(wrote), int(added)], "buffers written, files of the log added")
        check_near(span["duration_ns"] / 1e9, float(total), "a checkpoint")


@scenario
def tables_are_read_as_often_as_the_server_counts(run):
    with Postgres(run) as server:
        if int(server.sql("SHOW server_version_num")) >= 160000:
            raise Skip("buffer__read__done has other arguments since PostgreSQL 16; the recipe is of 15")
        tables = [f"CREATE TABLE {table} AS SELECT g FROM generate_series(1, {rows}) g"
                  for table, rows in (("small", 100), ("large", 60000))]
        flush = "SELECT 'flushed' FROM pg_stat_force_next_flush()"  # else a session's counts may come after its end
        server.sql(*tables, "VACUUM ANALYZE small", "VACUUM ANALYZE large", "CHECKPOINT", flush)
        counters = "SELECT relid, heap_blks_read, heap_blks_hit FROM pg_statio_user_tables ORDER BY relid"
        before = server.sql(counters)
        recipe = Recipe(run, "Which tables are read from files, and which from the cache?").start(server.pid)
        server.sql(*["SELECT count(*) FROM small"] * 3, *["SELECT sum(g) FROM large"] * 2, flush)
        result = recipe.stop()
        after = server.sql(counters)
    numbers = [[list(map(int, line.split("|"))) for line in text.splitlines()] for text in (before, after)]
    for (relation, *old), (_, *new) in zip(*numbers):
        for hit in (0, 1):
            check_equal(result.counts().get((relation, hit), 0), new[hit] - old[hit], f"pages of {relation}, found in the cache: {hit}")
    check(sum(result.counts().values()) > 500, f"pages: {result.counts()}")


if __name__ == "__main__":
    main()
