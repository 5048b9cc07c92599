#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many hits, many sites, little time. Limits are those the project promises; times are the best of several runs,
since the machine may be shared."""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import many_sites  # noqa: E402
import puppet  # noqa: E402
from harness import Failure, check, check_equal, main, require_root, require_x86_64, scenario  # noqa: E402
from puppet import Puppet, probe_of  # noqa: E402

HITS = 1_000_000
SITES = 10_000
ATTACH_LIMIT_MS = 50
WILDCARD_LIMIT_S = 1.0


def count_beats(path):
    """Delivered events of a large trace, each checked against its neighbour; and the summary."""
    events, last, summary = 0, -1, None
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if not line.startswith("{"):
                continue
            record = json.loads(line)
            if record["type"] == "summary":
                summary = record
                continue
            number, text, triple = record["args"]
            check(number > last and triple == 3 * number and text == "beat text", f"after beat {last}: {line[:300]}")
            events, last = events + 1, number
    return events, summary


@scenario
def a_million_hits_are_delivered_or_counted_as_lost(run):
    program = puppet.build(run)
    argv = run.tool_argv(probe_of(program), ["--print", "arg0, str(arg1), arg2"], [program, f"fire:{HITS}"])
    out = run.dir / "events"
    with open(out, "w", encoding="utf-8") as stdout:
        done = subprocess.run(argv, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=150)
    check_equal(done.returncode, 0, f"exit code\n{done.stderr[-1000:]}")
    events, summary = count_beats(out)
    check(summary is not None, f"no summary\n{done.stderr[-1000:]}")
    lost = sum(summary["lost"].values())
    print(f"  {events} delivered, {lost} lost {summary['lost']}")
    check_equal(events + lost, HITS, "delivered + lost")
    check_equal((summary["events"], summary["hits"]), (events, HITS), "summary")


def build_many(run):
    require_root()
    require_x86_64()
    source = run.dir / "many.s"
    source.write_text(many_sites.assembly(SITES))
    return run.build("many", [source])


@scenario
def a_wildcard_shows_every_site_its_own_value(run):
    program = build_many(run)
    result = run.trace(f"usdt:{program}:many:*", command=[program, "once"], timeout=100)
    result.check_code(0)
    result.check_accounted(SITES, lost=0)
    seen = [(event["probe"].rsplit(":", 1)[1], event["args"]) for event in result.events]
    check_equal(seen, [(f"p{n}", [n]) for n in range(SITES)], "probe and value of every site")


def best_of(repeats, measure):
    return min(measure() for _ in range(repeats))


@scenario
def a_wildcard_over_ten_thousand_sites_adds_less_than_a_second(run):
    program = build_many(run)

    def seconds(probe):
        start = time.monotonic()
        run.trace(probe, command=[program], timeout=100).check_code(0)
        return time.monotonic() - start

    one = best_of(5, lambda: seconds(f"usdt:{program}:many:p77"))
    every = best_of(5, lambda: seconds(f"usdt:{program}:many:*"))
    print(f"  one probe {one * 1e3:.0f} ms, {SITES} sites {every * 1e3:.0f} ms")
    check(every - one < WILDCARD_LIMIT_S, f"attach + detach of {SITES} sites adds {every - one:.2f} s")


def attach_ms(run, program, tool, *argv):
    """From starting a tracer until the traced program itself sees its semaphore rise. `argv`: PID is the program's."""
    target = Puppet(run, program)
    target.send("watch:0")
    time.sleep(0.02)  # it is spinning by then
    start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    tracing = run.start(tool, *[str(word).replace("PID", str(target.pid)) for word in argv], stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    line = target.process.stdout.readline()
    if not line:
        raise Failure("the watching program died")
    tracing.kill()
    tracing.wait()
    target.process.kill()
    target.process.wait()
    return (int(line) - start) / 1e6


@scenario
def one_probe_is_attached_within_50_ms(run):
    """Where starting any program is slow, within less than half of what bpftrace takes."""
    program = puppet.build(run)
    probe = probe_of(program)
    ours = [run.tool, probe, "-p", "PID", "--duration", "30"]
    times = [attach_ms(run, program, *ours) for _ in range(9)]
    if min(times) < ATTACH_LIMIT_MS or not shutil.which("bpftrace"):
        peers = []
        while min(times) >= ATTACH_LIMIT_MS and len(times) < 40:  # the machine may be busy: the best time counts
            times.append(attach_ms(run, program, *ours))
    else:
        peers = [attach_ms(run, program, "bpftrace", "-p", "PID", "-e", probe + ' { printf("%d\\n", arg0); }') for _ in times]
        times += [attach_ms(run, program, *ours) for _ in peers]
    times.sort()
    print(f"  best {times[0]:.1f} ms, median {statistics.median(times):.1f} ms, worst {times[-1]:.1f} ms; bpftrace {sorted(peers)}")
    check(times[0] < max(ATTACH_LIMIT_MS, 0.5 * min(peers, default=0)), f"start to attached: {times} ms, bpftrace {peers}")


if __name__ == "__main__":
    main()
