#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Presets asked of the distribution's servers: their numbers are those that the servers and their clients have."""

import json
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from puppet import HERE  # noqa: E402, F401 (finds the harness)
from harness import check, check_equal, main, scenario, wait_until  # noqa: E402
from postgres import Postgres  # noqa: E402
from presets_support import answers, asked, check_ready  # noqa: E402
from servers import Libvirt, MariaDb, Nginx, Redis  # noqa: E402


@asked("postgresql.queries,times,statements,parsing,planning,executing,lock-waits,lwlock-waits,reads,sorts,checkpoints")
@scenario
def postgresql_is_asked_for_statements_locks_blocks_sorts_and_checkpoints(run):
    with Postgres(run) as server:
        check_ready(run, server.pid, "postgresql")
        server.sql("create table shop (n int)")
        long = f"select n from shop where n in ({', '.join(map(str, range(50)))}) and n <> "  # alike for longer than the kernel's keys are
        statements = ["insert into shop select generate_series(1, 1000)", "select count(*) from shop", "select n from shop order by n desc", "checkpoint",
                      long + "3", long + "3", long + "4"]
        got = answers(run, "postgresql.queries,times,statements,parsing,planning,executing,lock-waits,lwlock-waits,reads,sorts,checkpoints",
                      options=["-p", server.pid, "--children", "--hold-exec"], work=lambda: server.sql(*statements))
    texts = [str(args) for args in got.args("queries")]
    for statement in statements:
        check(any(statement in text for text in texts), f"{statement}: {texts}")
    check_equal(got.spans("times"), got.spans("queries"), "statements")
    check_equal(got.spans("parsing"), len(statements), "statements that were parsed")
    check(got.spans("planning") >= 3 and got.spans("executing") >= 2, "phases")
    check_equal(got.counts("statements"), {statement: statements.count(statement) for statement in statements}, "statements by their whole texts")
    check_equal(got.spans("sorts"), 1, "sorts")
    check_equal(got.spans("checkpoints"), 1, "checkpoints")
    check_equal(got.spans("lock-waits"), 0, "nobody waited for a lock")
    check(got.rows("reads"), "blocks")
    check("lwlock-waits" in got.of, "waits for lightweight locks")


@scenario
def what_changes_rows_is_executed_once_as_postgresql_counts_it(run):
    """Both of its probes are hit twice where rows are changed. It does not count what it cannot execute, nor PREPARE."""
    statements = ["insert into shop select generate_series(1, 100)", "update shop set n = n + 1", "delete from shop where n > 50",
                  "insert into shop values (7) returning n", "select count(*) from shop", "prepare p as update shop set n = 8 where n = $1", "execute p(7)",
                  "create table other (n int)", "begin", "commit", "select 1 / (n - n) from shop", *["insert into shop values (1)"] * 20]
    with Postgres(run, "shared_preload_libraries=pg_stat_statements") as server:
        server.sql("create extension pg_stat_statements", "create table shop (n int)", "select pg_stat_statements_reset()")
        got = answers(run, "postgresql.executing", options=["-p", server.pid, "--children", "--hold-exec"],
                      work=lambda: server.session().communicate("".join(f"{each};\n" for each in statements)))
        told = server.sql("select sum(calls) from pg_stat_statements where query not like '%pg_stat_statements%'")
    check_equal((int(told), got.spans("executing")), (len(statements) - 2, int(told) + 1), "executions, and PREPARE")


@scenario
def waits_for_locks_have_the_names_that_postgresql_gives_them(run):
    """pg_locks says who waits for what, while they do."""
    waits = [("relation", "AccessShareLock", "lock table shop", "select * from shop"),
             ("transactionid", "ShareLock", "update shop set n = 2", "update shop set n = 3"),
             ("advisory", "ExclusiveLock", "select pg_advisory_xact_lock(7)", "select pg_advisory_xact_lock(7)")]
    told = {}
    with Postgres(run) as server:
        server.sql("create table shop (n int)", "insert into shop values (1)")

        def wait(holds, waits):
            holder = server.session()
            holder.stdin.write(f"begin; {holds};\n\\echo held\n")
            wait_until(lambda: holder.stdout.readline() == "held\n", "the lock")
            waiter = threading.Thread(target=server.sql, args=[waits])
            waiter.start()
            waiting = "select locktype || ' ' || mode from pg_locks where not granted"
            wait_until(lambda: server.sql(waiting), "somebody who waits")
            for each in server.sql(waiting).splitlines():
                key = tuple(each.split())
                told[key] = told.get(key, 0) + 1
            holder.communicate("commit;\n")
            waiter.join()

        def work():
            for _, _, holds, then in waits:
                wait(holds, then)
        got = answers(run, "postgresql.lock-waits", options=["-p", server.pid, "--children", "--hold-exec"], work=work)
    check_equal(set(told), {(kind, mode) for kind, mode, _, _ in waits}, "what pg_locks had")
    check_equal(got.named_counts("lock-waits"), told, "waits")


@asked("redis.commands,times,slow,keys,expired,forks,saves")
@scenario
def redis_is_asked_for_commands_keys_and_files(run):
    server = Redis(run)
    check_ready(run, server.pid, "redis")
    server.commands("config resetstat")
    used = ["set tea 1", "get tea", "get tea", "incr tea", "lpush list a b c", "eval \"return redis.call('get', KEYS[1])\" 1 tea", "multi", "get tea", "exec",
            "auth nobody secret", "debug sleep 0.05", "set gone 1 px 1", "save", "bgsave"]

    def work():
        server.commands(*used)
        time.sleep(0.05)
        server.commands("get gone")
        wait_until(lambda: "rdb_bgsave_in_progress:0" in server.commands("info persistence"), "the child that saves")
        waiter = threading.Thread(target=server.commands, args=["blpop none 5"])
        waiter.start()
        wait_until(lambda: "blocked_clients:1" in server.commands("info clients"), "somebody who waits")
        server.commands("blpop list 5", "rpush none d", "blpop none 1")
        waiter.join()
    got = answers(run, "redis.commands,times,slow,keys,expired,forks,saves", options=["-p", server.pid, "--children"], work=work)
    told = server.statistics("commandstats", r"cmdstat_([a-z|]+):calls=(\d+),usec=(\d+)")
    del told["config|resetstat"]  # before the trace
    rows = got.rows("commands")
    for name in ("set", "get", "incr", "lpush", "eval", "multi", "debug", "save", "bgsave"):
        check_equal((rows[name]["count"], rows[name]["sum"]), told[name], f"calls of {name}, and microseconds")
    left_out = {name: told[name][0] - got.counts("commands").get(name, 0) for name in told if name not in ("info", "command|docs")}
    check_equal({name: count for name, count in left_out.items() if count}, {"exec": 1, "blpop": 1}, "commands that its title says are not there")
    check_equal(got.spans("times"), sum(told[name][0] for name in told) - 1, "commands, without the client's own that asks for statistics")
    check_equal([args[0] for args in got.args("slow") if args[0] not in ("save", "bgsave")], ["debug"], "commands of 10 ms")
    check(got.counts("keys")["tea"] >= 6, f"keys {got.counts('keys')}")
    check_equal(got.counts("expired"), {"gone": server.statistics("stats", r"(expired_keys):(\d+)")["expired_keys"][0]}, "keys that expired")
    check_equal(got.spans("forks"), server.statistics("stats", r"(total_forks):(\d+)")["total_forks"][0], "children")
    check_equal(got.spans("saves"), 2, "files of SAVE and BGSAVE")


@asked("nginx.requests,slow,errors,files,upstream")
@scenario
def nginx_is_asked_for_requests_errors_files_and_other_servers(run):
    server = Nginx(run, f"location /gone {{ return 410; }} location /slowly {{ limit_rate 100k; alias {run.dir}/files; }} "
                        f"location /elsewhere {{ proxy_pass http://unix:{run.dir}/nginx.sock:/small; }}")
    check_ready(run, server.pid, "nginx")
    (server.files / "small").write_text("tea")
    (server.files / "large").write_bytes(bytes(60000))
    asked_for = ["/small"] * 5 + ["/missing"] * 3 + ["/gone"] * 2 + ["/elsewhere"] * 4 + ["/slowly/large"]
    got = answers(run, "nginx.requests,slow,errors,files,upstream", options=["-p", server.pid], work=lambda: server.get(*asked_for))
    served = server.served()
    check_equal(len(served), len(asked_for) + 4, "lines of the server's log")
    check_equal(got.spans("requests"), len(served), "requests")
    texts = [args[0] for args in got.args("slow")]
    check(texts[0].startswith("GET /slowly/large HTTP/1.1\r\nHost: shop\r\n"), f"the slowest: {texts[0]!r}")
    check_equal(sorted(text.split(" HTTP")[0] for text in texts), sorted(request for request, _ in served), "requests by their text")
    check(all(text.endswith("\r\n\r\n") for text in texts), f"each to its end, and nothing of another: {texts}")
    check_equal(got.counts("errors"), {404: 3, 410: 2}, "errors")
    check_equal(got.counts("files"), {str(server.files / name): count for name, count in (("small", 9), ("missing", 3), ("large", 1))}, "files")
    check_equal(got.spans("upstream"), 4, "requests that another server answered")


@asked("mariadb.queries,statements,times,errors,lock-waits,table-waits,sorts")
@scenario
def mariadb_is_asked_for_statements_errors_locks_and_sorts(run):
    server = MariaDb(run)
    check_ready(run, server.pid, "mariadb")
    server.sql("create database shop", "create table shop.tea (n int primary key, m int) engine=innodb", "insert into shop.tea values (1, 3), (2, 2), (3, 1)")
    alike = "select n from tea where n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13) and n <> "  # for longer than the kernel's keys are
    statements = ["select n from tea order by m", "select n from tea order by m", "select sleep(0.2)", "prepare p from 'select 1'", "execute p",
                  alike + "3", alike + "4"]

    def work():
        server.sql(*statements, database="shop")
        server.sql("use shop", "use information_schema", "use shop")
        for wrong in ("select nope from tea", "select * from nosuch", "select * from nosuch"):
            server.sql(wrong, database="shop", may_fail=True)
        # One holds a row, then a table, and others wait for them.
        holder = run.adopt(subprocess.Popen(server.client("shop"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1))
        holder.stdin.write("begin; update tea set m = 5 where n = 1; select 'held';\n")
        check_equal(holder.stdout.readline(), "held\n", "the row")
        waiting = [threading.Thread(target=server.sql, args=[text], kwargs={"database": "shop"})
                   for text in ("update tea set m = 6 where n = 1", "alter table tea add column o int")]
        for thread, state in zip(waiting, ("Updating", "Waiting for table metadata lock")):
            thread.start()
            wait_until(lambda: state in server.sql("show processlist"), state)
        time.sleep(0.2)
        holder.stdin.write("commit;\n")
        holder.stdin.close()
        for thread in waiting:
            thread.join()
        holder.wait()
    got = answers(run, "mariadb.queries,statements,times,errors,lock-waits,table-waits,sorts", options=["-p", server.pid], work=work)
    texts = [args[0] for args in got.args("queries")]
    check(any("select sleep(0.2)" == text for text in texts[:4]), f"statements {texts}")
    rows = got.rows("statements")
    check_equal(rows["select n from tea order by m"]["count"], 2, "statements by their text")
    check_equal([rows[alike + end]["count"] for end in "34"], [1, 1], "statements that are alike for longer")
    check(200e6 <= rows["select sleep(0.2)"]["max"] <= 2e9, f"how long: {rows['select sleep(0.2)']}")
    check_equal(got.rows("times")[3]["count"], sum(row["count"] for row in rows.values()), "commands that are statements")
    check_equal(got.named_counts("times")["init_db"], 3, "commands that choose a database")
    check_equal(got.counts("errors"), {(1054, "Unknown column 'nope' in 'SELECT'"): 1, (1146, "Table 'shop.nosuch' doesn't exist"): 2}, "errors")
    check_equal(got.spans("sorts"), 2, "sorts")
    waits = [bucket for bucket in got.objects("lock-waits", "table")[-1]["rows"][0]["buckets"] if bucket["count"]]
    check_equal([bucket["count"] for bucket in waits], [1], f"waits for a row: {waits}")
    counted = int(server.sql("show global status like 'innodb_row_lock_time'").split()[1])
    check(waits[0]["first"] <= counted <= waits[0]["last"] and counted >= 200, f"{waits}, counted by the server: {counted} ms")
    check(got.spans("table-waits") >= 1, "waits for a table")


@asked("libvirt.commands,events,calls,objects")
@scenario
def libvirt_is_asked_for_commands_to_qemu_events_calls_and_objects(run):
    with Libvirt(run) as server:
        check_ready(run, server.pid, "libvirt")

        def work():
            for _ in range(3):
                server.virsh("qemu-monitor-command", "shop", '{"execute":"query-version"}')
            server.virsh("suspend", "shop")
            server.virsh("resume", "shop")
            server.virsh("domid", "no-such-domain", may_fail=True)
        got = answers(run, "libvirt.commands,events,calls,objects", options=["-p", server.pid], work=work)
    pairs = [(json.loads(args[0]), args[1]) for args in got.args("commands")]
    names = [sent["execute"] for sent, _ in pairs]
    check_equal([names.count(name) for name in ("query-version", "stop", "cont")], [3, 1, 1], f"commands {names}")
    for sent, reply in pairs:
        check(f'"id": "{sent["id"]}"' in reply or len(reply) >= 199, f"{sent} and {reply}")
    check_equal([json.loads(args[0])["event"] for args in got.args("events")], ["STOP", "RESUME"], "events")
    calls = got.named_counts("calls")
    check_equal(calls[("qemu", 1, "ok")], 3, f"calls of the monitor: {calls}")  # QEMU_PROC_DOMAIN_MONITOR_COMMAND
    check_equal((calls[("remote", 34, "ok")], calls[("remote", 28, "ok")]), (1, 1), "calls to suspend and resume")  # REMOTE_PROC_DOMAIN_...
    check_equal(calls[("remote", 1, "ok")], 6, "clients that connected")  # REMOTE_PROC_CONNECT_OPEN
    check_equal(calls[("remote", 23, "error")], 1, "calls that failed")  # REMOTE_PROC_DOMAIN_LOOKUP_BY_NAME
    check_equal(got.counts("objects")["virNetServerClient"], 6, "objects of clients")


if __name__ == "__main__":
    main()
