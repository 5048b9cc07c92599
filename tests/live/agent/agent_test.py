#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent over its life: hits are those that the traced program says, in metrics that Prometheus's client library reads and
in log records that protoc reads, while files are read again, programs are replaced, servers are away and the agent is
killed."""

import collections
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "export"))
sys.path.insert(2, str(pathlib.Path(__file__).resolve().parent))

import puppet  # noqa: E402, F401 (finds the harness)
from agent import Agent, Program, agent_of, build, numbers_of, once_each, question  # noqa: E402
from collector import Collector, attributes_of  # noqa: E402
from harness import check, check_equal, main, require_program, scenario, wait_until  # noqa: E402


@scenario
def hits_are_in_metrics_and_in_log_records(run):
    path, collector = build(run), Collector(run)
    program = Program(run, path)
    agent = Agent(run, {"a": question("all", f"usdt:{path}:agent:hit", "print = 'arg0'"),
                        "b": question("by-last-digit", f"usdt:{path}:agent:hit", "by = 'arg0 % 10'", "sum = 'arg0'")},
                  "--export", f"otlp={collector.url}")
    agent.wait_for("attached", 2)
    check_equal(program.hit(1000), 1000, "hits by the program")
    wait_until(lambda: agent.sum_of("usdt_by_last_digit_row_hits_total") == 1000, "hits of the rows")
    metrics = agent.metrics()
    rows = {key[1]: value for key, value in metrics.items() if key[0] == "usdt_by_last_digit_summed"}
    check_equal(rows, {str(n): sum(range(n, 1000, 10)) for n in range(10)}, "sums of the rows")
    check_equal(agent.sum_of("usdt_all_hits_total"), 1000, "hits")
    check_equal(metrics["usdt_agent_questions", "traced"], 2, "questions that are traced")
    check_equal(agent.get("/healthz"), (200, "ok\n"), "health")
    wait_until(lambda: numbers_of(collector) == once_each(1000), "a log record of each hit")
    check_equal(agent.end(), 0, "exit code")
    agent.wait_for("all: 1000 events of 1000 hits; lost: 0 ring_full")


@scenario
def questions_that_stay_lose_no_hit_while_others_change(run):
    path, collector = build(run), Collector(run)
    program = Program(run, path)
    agent = Agent(run, {"stays": question("stays", f"usdt:{path}:agent:hit", "print = 'arg0'")}, "--export", f"otlp={collector.url}")
    agent.wait_for("attached")
    program.begin(6000, 500)
    for n in range(6):
        agent.write("changes", question("changes", f"usdt:{path}:agent:odd", f"where = 'arg0 % 7 == {n}'"))
        agent.reload()
    agent.write("changes", question("changes", f"usdt:{path}:agent:odd", "by = 'arg0 % 3'"))
    agent.reload()
    (agent.directory / "changes.toml").unlink()
    agent.reload()
    check_equal(program.wait(), 6000, "hits by the program")
    wait_until(lambda: agent.sum_of("usdt_stays_hits_total") == 6000, "hits of the question that stays")
    check_equal(agent.sum_of("usdt_changes_hits_total"), 0, "what is not asked any more is on the page no more")
    check_equal(agent.metrics()["usdt_agent_reloads_total", "done"], 8, "reloads")
    check_equal(agent.end(), 0, "exit code")
    kept = collections.Counter(attributes_of(log.attributes)["arg0"] for _, log in collector.logs() if log.event_name == "agent:hit")
    check_equal(kept, once_each(6000), "each hit once, and none lost")


@scenario
def questions_lose_no_hit_when_they_move_to_other_files(run):
    path, collector = build(run), Collector(run)
    program = Program(run, path)
    hits, odds = question("hits", f"usdt:{path}:agent:hit", "print = 'arg0'"), question("odds", f"usdt:{path}:agent:odd", "print = 'arg0'")
    agent = Agent(run, {"both": hits + odds}, "--export", f"otlp={collector.url}")
    agent.wait_for("attached", 2)
    program.begin(12_000, 500)
    for files in ({"renamed": hits + odds}, {"a": hits, "b": odds}, {"a": odds, "b": hits}, {"one": odds + hits}):
        for file in agent.directory.glob("*.toml"):
            file.unlink()
        for name, text in files.items():
            agent.write(name, text)
        agent.reload()
        wait_until(lambda: agent.metrics()["usdt_agent_questions", "traced"] == 2, "questions that are traced")  # no sample is there twice
    check_equal(program.wait(), 12_000, "hits by the program")
    check_equal(agent.end(), 0, "exit code")
    for name, numbers in (("agent:hit", range(12_000)), ("agent:odd", range(1, 12_000, 2))):
        came = {attributes_of(log.attributes)["arg0"] for _, log in collector.logs() if log.event_name == name}
        check_equal(sorted(set(numbers) - came), [], f"{name} that are nowhere")


@scenario
def many_reloads_at_once_pile_nothing_up(run):
    path, collector = build(run), Collector(run)
    program = Program(run, path)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "print = 'arg0'")}, "--export", f"otlp={collector.url}")
    agent.wait_for("attached")
    program.begin(4000, 500)
    most = 0
    for n in range(100):
        (agent.directory / "new").write_text(question("a", f"usdt:{path}:agent:hit", "print = 'arg0'", f"where = 'arg0 != {10_000 + n}'"))
        os.rename(agent.directory / "new", agent.directory / "a.toml")
        agent.process.send_signal(signal.SIGHUP)
        most = max(most, len(os.listdir(f"/proc/{agent.process.pid}/task")))
        time.sleep(0.01)
    check(most <= 12, f"{most} threads, where one reload has up to 9")
    check_equal(program.wait(), 4000, "hits by the program")
    check_equal(agent.end(), 0, "exit code")
    check_equal(sorted(set(range(4000)) - set(numbers_of(collector))), [], "hits that are nowhere")


@scenario
def files_that_are_wrong_change_nothing(run):
    path = build(run)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "count = true")})
    agent.wait_for("attached")
    for text, why in (("[question.b\n", "b.toml:1:"), (question("a", "x:y", ""), "a question of this name, too"),
                      (question("b", "x:y", "duration = 5"), "duration"), (question("b", "x:y", "wher = 'pid == 1'"), "'where'?")):
        agent.write("b", text)
        before = len(agent.said)
        agent.process.send_signal(signal.SIGHUP)
        wait_until(lambda: any(why in line for line in agent.said[before:]), f"{why} in {agent.said[before:]}")
    wait_until(lambda: agent.metrics()["usdt_agent_reloads_total", "refused"] == 4, "refusals")
    check_equal((agent.metrics()["usdt_agent_reloads_total", "done"], agent.metrics()["usdt_agent_questions", "traced"]), (0, 1),
                "what goes on")
    check_equal(agent.end(), 0, "exit code")


@scenario
def what_is_no_file_is_neither_waited_for_nor_the_end_of_an_agent(run):
    path = build(run)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "count = true")})
    agent.wait_for("attached")
    odd = agent.directory / "odd.toml"
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to("/nonexistent")):
        make(odd)
        refused = agent.metrics()["usdt_agent_reloads_total", "refused"]
        agent.process.send_signal(signal.SIGHUP)
        wait_until(lambda: agent.metrics()["usdt_agent_reloads_total", "refused"] > refused, f"a refusal of {os.lstat(odd)}")
        done = subprocess.run([agent_of(run), "check", "--listen", "1", agent.directory], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, "odd.toml" in done.stderr), (2, True), done.stderr)
        os.rmdir(odd) if odd.is_dir() else odd.unlink()
    check_equal(agent.metrics()["usdt_agent_questions", "traced"], 1, "what goes on")
    check_equal(agent.end(), 0, "exit code")


@scenario
def programs_come_and_are_replaced(run):
    built, collector = build(run), Collector(run)
    path = run.dir / "service"
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "print = 'arg0'")}, "--export", f"otlp={collector.url}")
    agent.wait_for("waiting")
    wait_until(lambda: agent.metrics()["usdt_agent_questions", "waiting"] == 1, "questions that wait")
    status, text = agent.get("/healthz")
    check_equal((status, "a.toml: waiting: " in text, str(path) in text), (200, True, True), f"waiting is well, and said: {text}")
    first = 0
    for generation in range(3):
        shutil.copy(built, run.dir / "new")
        os.rename(run.dir / "new", path)
        agent.wait_for("is a new file: 1 site", generation + 1)
        program = Program(run, path, first)
        first = program.hit(200)
        program.process.stdin.close()
        program.process.wait(20)
    wait_until(lambda: numbers_of(collector) == once_each(600), f"all hits of three programs, {agent.said}")
    check_equal({resource["service.name"] for resource, _ in collector.logs()}, {"service"}, "the program, which was not there at first")
    check_equal(agent.end(), 0, "exit code")


@scenario
def everything_gone_is_waited_for_again(run):
    built = build(run)
    path = run.dir / "service"
    shutil.copy(built, path)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "count = true")})
    agent.wait_for("attached")
    with open(path, "r+b") as file:  # written to: its sites are detached
        file.write(b"\x7fELF")
    agent.wait_for("was written to")
    os.unlink(path)
    shutil.copy(built, path)
    program = Program(run, path)
    def counted():
        program.hit(10)
        return agent.sum_of("usdt_a_hits_total") >= 10
    wait_until(counted, f"hits of the file that came back, {agent.said}", 60, every=0.5)
    check_equal(agent.end(), 0, "exit code")


@scenario
def what_a_killed_agent_had_on_disk_is_sent_by_the_next_one(run):
    path = build(run)
    program = Program(run, path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        away = f"http://127.0.0.1:{free.getsockname()[1]}"
    files = {"a": question("a", f"usdt:{path}:agent:hit", "print = 'arg0'")}
    asked = ["--export", f"otlp={away}?encoding=json", "--spool", run.dir / "spool"]
    agent = Agent(run, files, *asked)
    agent.wait_for("attached")
    program.hit(3000)
    wait_until(lambda: agent.sum_of("usdt_agent_spool_events") == 3000, "events on disk")
    check_equal((agent.sum_of("usdt_agent_export_up"), agent.get("/healthz")[0]), (0, 200), "the server is not up, the agent is well")
    agent.end(signal.SIGKILL)
    collector = Collector(run, port=int(away.rsplit(":", 1)[1]))
    agent = Agent(run, files, *asked)
    agent.wait_for("attached")
    program.hit(500)
    wait_until(lambda: numbers_of(collector) == once_each(3500), "each hit once")
    check_equal({kind for _, kind, _ in collector.kept}, {"application/json"}, "types of what was on disk, and of what came since")
    wait_until(lambda: agent.sum_of("usdt_agent_spool_bytes") == 0, "an empty spool")
    check_equal(agent.sum_of("usdt_agent_spool_lost_events_total"), 0, "lost")
    check_equal(agent.end(), 0, "exit code")


@scenario
def a_question_that_ends_while_a_server_is_away_takes_it_from_no_other(run):
    path = build(run)
    program = Program(run, path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    agent = Agent(run, {"stays": question("stays", f"usdt:{path}:agent:hit", "print = 'arg0'"),
                        "goes": question("goes", f"usdt:{path}:agent:odd", "print = 'arg0'")}, "--export", f"otlp=http://127.0.0.1:{port}")
    agent.wait_for("attached", 2)
    program.hit(1000)
    (agent.directory / "goes.toml").unlink()
    agent.reload()
    agent.wait_for("goes: 0 events of 500 hits; lost: 0 ring_full, 0 discarded, 500 not_written")
    collector = Collector(run, port=port)
    program.hit(1000)
    wait_until(lambda: numbers_of(collector) == once_each(2000), f"all hits of the question that stays, {agent.said}")
    check_equal(agent.sum_of("usdt_stays_lost_total"), 0, "lost")
    check_equal(agent.end(), 0, "exit code")


@scenario
def an_agent_ends_soon_however_its_servers_are(run):
    path = build(run)
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.bind(("127.7.7.7", 53))  # and never answers
    (run.dir / "resolv.conf").write_text("nameserver 127.7.7.7\noptions timeout:30\n")
    hidden = ["unshare", "-m", "sh", "-c", f"mount --bind {run.dir}/resolv.conf /etc/resolv.conf; exec \"$@\"", "sh"]
    slow = Collector(run, slow=1.0)
    asked = question("NAME", f"usdt:{path}:agent:hit", "print = 'arg0'")
    places = {"away": [f"otlp=http://127.0.0.1:{port}" for port in range(2, 8)], "slow": [f"otlp={slow.url}"],
              "unknown": ["otlp=http://servers.example.org:4318"]}
    for kind, exports in places.items():
        program = Program(run, path)
        agent = Agent(run, {kind: asked.replace("NAME", kind)}, *(word for place in exports for word in ("--export", place)), prefix=hidden)
        agent.wait_for("attached")
        program.begin(4000, 1000)
        time.sleep(3)
        began = time.monotonic()
        check_equal(agent.end(), 0, "exit code")
        check(time.monotonic() - began < 5, f"{kind}: {time.monotonic() - began} s until the end")
        program.wait()


@scenario
def an_agent_ends_soon_while_questions_are_starting(run):
    libraries = pathlib.Path(next(line.split()[-1] for line in open("/proc/self/maps") if "/libc.so" in line)).parent
    path = build(run)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "count = true")})
    agent.wait_for("attached")
    agent.write("much", question("much", f"ucall:{libraries}/*:*e", "count = true"))
    agent.process.send_signal(signal.SIGHUP)
    wait_until(lambda: agent.metrics()["usdt_agent_questions", "starting"] == 1, "a question that is starting")
    time.sleep(1)
    began = time.monotonic()
    check_equal(agent.end(), 0, "exit code")
    check(time.monotonic() - began < 5, f"{time.monotonic() - began} s until the end")
    agent.wait_for("a: 0 hits counted")


@scenario
def many_files_end_soon(run):
    path = build(run)
    agent = Agent(run, {f"a{n}": question(f"a{n}", f"usdt:{path}:agent:hit", "count = true") for n in range(60)})
    agent.wait_for("attached", 60)
    began = time.monotonic()
    check_equal(agent.end(), 0, "exit code")
    check(time.monotonic() - began < 5, f"{time.monotonic() - began} s until the end")
    agent.wait_for("0 hits counted", 60)


@scenario
def places_that_look_alike_have_spools_of_their_own(run):
    path = build(run)
    program = Program(run, path)
    servers = [Collector(run) for _ in range(2)]
    places = [f"{server.url}/{name}" for server, name in zip(servers, ("a.b", "a_b"))]
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "print = 'arg0'")},
                  *(word for place in places for word in ("--export", f"otlp={place}")), "--spool", run.dir / "spool")
    agent.wait_for("attached")
    program.hit(100)
    wait_until(lambda: all(len(server.kept) > 0 for server in servers), f"batches at both, {agent.said}")
    check_equal(len(list((run.dir / "spool").iterdir())), 2, "directories")
    check_equal(agent.end(), 0, "exit code")


@scenario
def what_a_server_refuses_of_a_spool_is_said_and_counted(run):
    path = build(run)
    program = Program(run, path)
    collector = Collector(run, [(400, {"Content-Type": "application/json"}, b'{"code":3,"message":"no tenant"}')])
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "print = 'arg0'")}, "--export", f"otlp={collector.url}?encoding=json",
                  "--spool", run.dir / "spool")
    agent.wait_for("attached")
    program.hit(1000)
    agent.wait_for("not taken: 400 Bad Request: no tenant")
    wait_until(lambda: agent.sum_of("usdt_agent_spool_sent_events_total") + agent.sum_of("usdt_agent_spool_lost_events_total") == 1000, "all hits")
    check_equal(agent.sum_of("usdt_agent_spool_lost_batches_total"), 1, "batches")
    lost = agent.sum_of("usdt_agent_spool_lost_events_total")
    check_equal((lost > 0, numbers_of(collector).total()), (True, 1000 - lost), "those that the server has")
    check(any(f": {lost:.0f} events that waited on disk not taken" in line for line in agent.said), f"{agent.said}")
    collector.answers.append((200, {"Content-Type": "application/json"}, b'{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"old"}}'))
    wait_until(lambda: not collector.answers, "numbers", 30, every=0.2)
    wait_until(lambda: agent.sum_of("usdt_agent_spool_lost_batches_total") == 2, "the batch of numbers")
    check_equal(agent.end(), 0, "exit code")
    check(any("numbers that waited on disk not taken: old" in line for line in agent.said), f"{agent.said}")


@scenario
def a_full_spool_is_counted(run):
    path = build(run)
    program = Program(run, path)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "print = 'arg0, comm'")},
                  "--export", "otlp=http://127.0.0.1:9", "--spool", run.dir / "spool", "--spool-size", "1")
    agent.wait_for("attached")
    hits = 0
    while agent.metrics().get(("usdt_a_lost_total", "not_written"), 0) == 0:
        check(hits < 1_000_000, "the spool is never full")
        hits = program.hit(20_000, 1)
        time.sleep(1)
    time.sleep(2.5)  # the last batch, and another look
    metrics = agent.metrics()
    kept, lost = agent.sum_of("usdt_agent_spool_events"), sum(v for k, v in metrics.items() if k[0] == "usdt_a_lost_total")
    check(lost > 0 and kept > 0, f"{kept} kept, {lost} lost")
    check_equal(kept + lost, hits, "hits on disk, and lost ones")
    check(agent.sum_of("usdt_agent_spool_bytes") <= 1 << 20, "bytes on disk")
    check(any("is full" in line for line in agent.said), f"{agent.said}")
    check_equal(agent.end(), 0, "exit code")
    check(any("wait on disk" in line for line in agent.said), f"{agent.said}")


@scenario
def a_file_whose_questions_fail_is_said_and_the_others_go_on(run):
    path = build(run)
    program = Program(run, path)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "count = true"),
                        "b": "disable-feature = 'uprobe_multi'\n" + question("b", f"usdt:{path}:agent:odd", "backend = 'uprobe_multi'")})
    agent.wait_for("it is tried again")
    agent.wait_for("a: attached")
    wait_until(lambda: agent.sum_of("usdt_agent_questions") == 2 and agent.get("/healthz")[0] == 503, "a failure")
    program.hit(100)
    wait_until(lambda: agent.sum_of("usdt_a_hits_total") == 100, "hits of the other file")
    for _ in range(20):  # whether it is tried again at the moment or not
        status, text = agent.get("/healthz")
        check_equal((status, "b.toml" in text), (503, True), text)
        check_equal(agent.metrics()["usdt_agent_questions", "failing"], 1, "questions that fail")
        time.sleep(0.1)
    check_equal(agent.end(), 0, "exit code")


@scenario
def systemd_learns_how_it_goes(run):
    path = build(run)
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind(str(run.dir / "notify"))
    manager.settimeout(20)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "count = true")},
                  environment={"NOTIFY_SOCKET": str(run.dir / "notify"), "WATCHDOG_USEC": "900000"})
    heard = []

    def hear(what):
        while not any(line.startswith(what) for line in heard):
            heard.extend(manager.recv(4096).decode().splitlines())
    hear("READY=1")
    hear("STATUS=questions: 0 starting, 0 waiting, 1 traced, 0 failing")
    heard.clear()
    hear("WATCHDOG=1")
    agent.process.send_signal(signal.SIGHUP)
    hear("RELOADING=1")
    hear("MONOTONIC_USEC=")
    agent.end()
    hear("STOPPING=1")


@scenario
def check_says_without_privilege_where_answers_would_go(run):
    require_program("setpriv")
    os.chmod(run.dir, 0o755)
    (run.dir / "a.toml").write_text(question("rows", "python:gc__start", "by = 'pid'") + question("stacks", "python:gc__start", "by = 'ustack'"))
    tool = shutil.copy(agent_of(run), run.dir / "agent")

    def checked(*words):
        return subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", tool, "check", *words],
                              capture_output=True, text=True, timeout=60)
    done = checked("--listen", "9435", "--export", "otlp=http://127.0.0.1:4318", run.dir / "a.toml")
    check_equal(done.returncode, 2, done.stderr)
    check("a.toml" in done.stderr and "stacks: its answers would go nowhere: metrics have labels" in done.stderr, done.stderr)
    (run.dir / "a.toml").write_text(question("rows", "python:gc__start", "by = 'pid'"))
    done = checked("--listen", "9435", "--export", "otlp=http://127.0.0.1:4318", run.dir / "a.toml")
    check_equal((done.returncode, done.stderr), (0, ""), "the check")
    check("rows: otlp=http://127.0.0.1:4318 metrics at 9435" in done.stdout, done.stdout)
    for words, why in (((run.dir / "a.toml",), "go nowhere"), (("--listen", "1", run.dir), "run.dir"), ((), "no files with questions"),
                       (("--export", "json=/tmp/x", run.dir / "a.toml"), "would grow for ever"),
                       (("--export", "nonsense=x", run.dir / "a.toml"), "there is no format"),
                       (("--listen", "1", "/nonexistent"), "No such file")):
        done = checked(*words)
        check_equal((done.returncode, why == "run.dir" or why in done.stderr), (0 if why == "run.dir" else 2, True), done.stderr)


@scenario
def check_says_all_that_would_fail_later(run):
    path = build(run)
    probe, otlp = f"usdt:{path}:agent:hit", ("--export", "otlp=http://127.0.0.1:4318")
    wrong = {"name": (question("a", probe, "by = 'nosuchname'"), "nosuchname"),
             "relative": (question("b", "usdt:./hits:agent:hit", "count = true"), "a path is needed that begins"),
             "file": ("export = 'prometheus=x.prom'\n" + question("c", probe, "count = true"), "needs its whole path"),
             "long": (f"export = 'otlp=http://127.0.0.1:4318/{'x' * 250}'\n" + question("d", probe, "count = true"), "too long for a spool")}
    for name, (text, _) in wrong.items():
        (run.dir / f"{name}.toml").write_text(text)
    (run.dir / "right.toml").write_text(question("e", probe, "by = 'comm'"))

    def checked(*words):
        return subprocess.run([agent_of(run), *map(str, words)], capture_output=True, text=True, timeout=60)
    done = checked("check", "--spool", run.dir / "spool", *otlp, run.dir)
    check_equal(done.returncode, 2, done.stderr)
    for name, (_, why) in wrong.items():
        [line] = [line for line in done.stderr.splitlines() if f"{name}.toml" in line]
        check(why in line, f"{name}: {line}")
    check_equal(len(done.stderr.splitlines()), len(wrong), f"lines\n{done.stderr}")
    done = checked(run.dir / "right.toml", "check", "--listen", "99999")
    check_equal((done.returncode, "99999" in done.stderr), (2, True), done.stderr)
    done = checked("--listen", "9435", run.dir / "right.toml", "check")
    check_equal((done.returncode, done.stderr), (0, ""), "the word is known in any place")
    (run.dir / "right.toml").write_text(question("e", probe, "print = 'arg0'"))
    done = checked("check", "--listen", "9435", run.dir / "right.toml")
    check_equal((done.returncode, "print: its values would go nowhere" in done.stderr), (2, True), done.stderr)
    check_equal(checked("check", "--listen", "9435", *otlp, run.dir / "right.toml").returncode, 0, "otlp has them")
    (run.dir / "right.toml").write_text(question("e", f"usdt:{run.dir}/later:agent:hit", "by = 'arg0'"))
    done = checked("check", *otlp, run.dir / "right.toml")
    check_equal((done.returncode, "nothing of it is here yet" in done.stdout), (0, True), done.stdout)


@scenario
def passwords_of_places_are_nowhere_to_be_read(run):
    path = build(run)
    (run.dir / "a.toml").write_text("export = 'otlp=http://u:sesame@127.0.0.1:9'\n" + question("a", f"usdt:{path}:agent:hit", "count = true"))
    (run.dir / "b.toml").write_text(question("a", f"usdt:{path}:agent:hit", "count = true"))
    places = ["otlp=http://u:sesame@127.0.0.1:9", "otlp=https://u:sesame@h", "otlp=u:sesame@h", "clickhouse=http://u:sesame@h/",
              "otlp=http://u:se/sesame@h", "sesame://u:sesame@h", "json=http://u:sesame@h"]
    for words in [("check", run.dir / "a.toml"), (run.dir / "a.toml",)] + [("--export", place, run.dir / "b.toml") for place in places]:
        done = subprocess.run([agent_of(run), *map(str, words)], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, "sesame@" in done.stdout + done.stderr), (2, False), f"{words}: {done.stdout}{done.stderr}")
    for place in places[:5]:
        done = subprocess.run([run.tool, f"usdt:{path}:agent:hit", "--export", place, "-d", "0.1"], capture_output=True, text=True, timeout=60)
        check("sesame@" not in done.stdout + done.stderr and done.returncode != 0, f"{place}: {done.stdout}{done.stderr}")


@scenario
def a_log_does_not_grow_with_what_others_start(run):
    path, count = build(run), 150
    agent = Agent(run, {"a": question("a", "agent:hit", "count = true")})
    agent.wait_for("waiting")
    for n in range(count):
        shutil.copy(path, run.dir / f"service{n}")
        program = Program(run, run.dir / f"service{n}")
        program.hit(1)
        program.process.stdin.close()
        program.process.wait(20)
    wait_until(lambda: agent.metrics().get(("usdt_agent_questions", "traced")) == 1, "a question that is traced")
    wait_until(lambda: any("more within a moment" in line for line in agent.said), f"a summary in {agent.said[-3:]}")
    began = time.monotonic()
    check_equal(agent.end(), 0, "exit code")
    lines = [line for line in agent.said if "followed: " in line]
    check(len(lines) < count // 2, f"{len(lines)} lines of {count} programs, {time.monotonic() - began:.1f} s to end")
    print(f"  {count} programs, {len(lines)} lines")


@scenario
def what_waits_for_a_server_that_is_not_asked_for_any_more_is_said(run):
    path = build(run)
    left = run.dir / "spool" / "otlp-http%3a%2f%2fold%3a4318"
    left.mkdir(parents=True)
    (left / "00000000000000000001.batch").write_bytes(b"x" * 1234)
    agent = Agent(run, {"a": question("a", f"usdt:{path}:agent:hit", "count = true")}, "--export", "otlp=http://127.0.0.1:9", "--spool", run.dir / "spool")
    agent.wait_for("attached")
    check(any("otlp=http://old:4318: 1 batch, 1234 bytes, on disk, and no question goes there" in line for line in agent.said), f"{agent.said}")
    check_equal(agent.end(), 0, "exit code")


@scenario
def what_an_agent_cannot_be_asked_is_refused_with_its_place(run):
    of_question = (("max-events = 5", "asks for ever"), ("record = 'x.rec'", "record"))
    of_all = (("duration = 5", "asks for ever"), ("output = 'x'", "output"), ("format = 'json'", "format"), ("pid = 1", "pid"),
              ("no-follow = true", "no-follow"), ("hold-exec = true", "hold-exec"), ("export = 'json=x'", "would grow for ever"),
              ("export = 'otlp=https://x:4318'", "a collector of this host"), ("export = 'otlp=http://x?encoding=xml'", "encoding=json"),
              ("export = 'clickhouse=http://u:p@x/'", "USDT_CLICKHOUSE_USER"))
    for line, why in of_question + of_all:
        asked = question("a", "python:gc__start")
        (run.dir / "a.toml").write_text(asked + line if (line, why) in of_question else line + "\n" + asked)
        done = subprocess.run([agent_of(run), "check", "--export", "otlp=http://127.0.0.1:4318", run.dir / "a.toml"],
                              capture_output=True, text=True, timeout=60)
        check_equal(done.returncode, 2, line)
        check("a.toml:" in done.stderr and why in done.stderr, f"{line}: {done.stderr}")


@scenario
def no_two_questions_have_metrics_of_one_name(run):
    for first, second, why in (("a-b", "a_b", "would be called as those of a-b"), ("a", "agent", "of the agent itself"),
                               ("a", "agent-spool", "of the agent itself"), ("a", "a-row", "of rows of another question"),
                               ("é", "key", "would be called as those of é")):
        (run.dir / "a.toml").write_text("".join(f"[question.'{name}']\nprobes = ['python:gc__start']\ncount = true\n" for name in (first, second)))
        done = subprocess.run([agent_of(run), "check", "--listen", "1", run.dir / "a.toml"], capture_output=True, text=True, timeout=60)
        check_equal((done.returncode, why in done.stderr), (2, True), f"{first} and {second}: {done.stderr}")


@scenario
def a_port_that_is_taken_is_said(run):
    path = build(run)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (run.dir / "a.toml").write_text(question("a", f"usdt:{path}:agent:hit", "count = true"))
        done = subprocess.run([agent_of(run), "--listen", str(taken.getsockname()[1]), run.dir / "a.toml"], capture_output=True, text=True,
                              timeout=60)
    check_equal(done.returncode, 1, done.stderr)
    check("Address already in use" in done.stderr, done.stderr)


if __name__ == "__main__":
    main()
