#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Shows the spans of a running program as they end, each with those within it; as root:  watch.py PID PROVIDER

Spans are pairs of probes, NAME__begin and NAME__end, which usdt.Provider makes. Those that ran in several tasks at once are
told apart by their numbers.
"""

import os
import sys

import usdt


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"


class Spans:
    def __init__(self):
        self.open = {}  # span: (name, when it began, lines of what ended within it)
        self.ended = self.failed = 0

    def see(self, event):
        name, _, moment = event.name.rpartition("__")
        span = event.arg("span") if event.names and "span" in event.names else None
        if span is None:
            return
        if moment == "begin":
            self.open[span] = (name, event.time, [])
            return
        name, began, within = self.open.pop(span, (name, None, []))
        if began is None:  # it was under way when the trace began
            return
        self.ended += 1
        self.failed += event.arg("failed")
        took = f"{(event.time - began) / 1e6:.2f} ms"
        lines = [f"{name} {took}{' failed' if event.arg('failed') else ''}", *("  " + line for line in within)]
        parent = self.open.get(event.arg("parent"))
        if parent:
            parent[2].extend(lines)
        else:
            print("\n".join(lines), flush=True)


def main(pid, provider):
    spans = Spans()
    with usdt.Tracer(f"{provider}:*", pids=pid) as tracer:
        print("watching", flush=True)
        while is_running(pid):
            for event in tracer.take(timeout=0.2):
                spans.see(event)
        tracer.detach()
        for event in tracer.take(timeout=0):
            spans.see(event)
    print(f"{spans.ended} spans, {spans.failed} failed; {tracer.counts().lost} hits lost")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: watch.py PID PROVIDER")
    try:
        main(int(sys.argv[1]), sys.argv[2])
    except KeyboardInterrupt:
        pass
    except usdt.Error as error:
        sys.exit(f"watch.py: {error}")
