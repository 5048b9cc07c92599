# SPDX-License-Identifier: BSD-2-Clause
"""The recipes of docs/cookbook.md about the kernel, in a guest: what they tell is what the guest's programs did."""

import pathlib
import re
import shlex
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "live/cookbook"))
import recipes  # finds the harness
import harness
from checks import Cell

READ = "Which processes read files, and in which sizes?"
FILES = "Which files are read, and how much of each?"
OPENED = "Which files does a process open?"
SIGNALS = "Who sends signals, which, and to whom?"
PEER = (int.from_bytes(bytes([127, 0, 0, 1]), "little"), 5000)  # as the kernel has it in memory
SENT = "To which peers does which process send by TCP, and how much?"


def copied(text):
    """Blocks that dd says it read, all of one size."""
    return sum(int(blocks) for blocks in re.findall(r"^(\d+)\+0 records in", text, re.M))


def judge_read(traced, said):
    bars = {(bar["first"], bar["last"]): bar["count"] for bar in traced.rows[("dd",)]["buckets"]}
    large, small = re.findall(r"^(\d+)\+0 records in", said, re.M)
    harness.check_equal(bars, {(512, 1023): int(large), (64, 127): int(small)}, "reads of 1000 and of 100 bytes")


def judge_files(traced, said):
    harness.check_equal(traced.rows[("dd", "usdt-trace")]["sum"], 1000 * copied(said), "bytes of the file")


def judge_opened(traced, _said):
    opened = [(event["args"][0], event["args"][1] >= 0) for event in traced.events]
    harness.check_equal(opened, [("/etc/motd", False), ("/dev/null", True), ("/tmp/nothing", True)], "files that dd opens, and has")


def judge_signals(traced, _said):
    child_ended = 17
    counts = {key: count for key, count in traced.counts().items() if key[0] == "busybox" and key[1] != child_ended}
    harness.check_equal(counts, {("busybox", 23, "sleep"): 7, ("busybox", 15, "sleep"): 1}, "signals that busybox sent")


def judge_sent(traced, said):
    [(peer, row)] = [(key[1:], row) for key, row in traced.rows.items() if key[0] == "nc"]
    harness.check_equal((peer, row["sum"]), (PEER, int(said.split()[0])), "peer, and bytes sent to it")


class Question:
    """A recipe, what is done while it runs, and whether it told that."""

    def __init__(self, name, question, work, judge):
        self.name, self.question, self.work, self.judge = name, question, work, judge

    def step(self):
        line = shlex.join(recipes.recipes()[self.question])
        out = f"/out/cookbook.{self.name}"
        return (f"{line} --format json >{out}.json 2>{out}.err & tool=$!; "
                f"until grep -q ^attached {out}.err || ! kill -0 $tool; do sleep 0.1; done; ({self.work}) >{out}.said 2>&1; "
                "kill -INT $tool; wait $tool")

    def judged(self, status, out):
        texts = {kind: (out / f"cookbook.{self.name}.{kind}").read_text() for kind in ("json", "err", "said")}
        traced = recipes.Traced(status, texts["json"], texts["err"])
        traced.check_code(0)
        try:
            self.judge(traced, texts["said"])
        except (KeyError, ValueError) as failure:
            raise harness.Failure(f"{failure!r}; {texts['said'][-300:]}; {traced.describe()}") from failure


QUESTIONS = [
    Question("read", READ, "dd if=/lab/usdt-trace of=/dev/null bs=1000 count=37; dd if=/lab/usdt-trace of=/dev/null bs=100 count=5",
             judge_read),
    Question("files", FILES, "dd if=/lab/usdt-trace of=/dev/null bs=1000 count=29", judge_files),
    Question("opened", OPENED, "dd if=/etc/motd; dd if=/dev/null of=/tmp/nothing", judge_opened),
    Question("signals", SIGNALS, "sleep 60 & sleep 1; for i in 1 2 3 4 5 6 7; do busybox kill -URG $!; done; busybox kill -TERM $!", judge_signals),
    Question("sent", SENT, "sleep 3 | nc -l -p 5000 >/tmp/got & sleep 1; head -c 70000 /lab/usdt-trace | nc 127.0.0.1 5000; wait $!; wc -c </tmp/got",
             judge_sent),
]


class Cookbook:
    """Wants a kernel with BTF: arguments are read by the kernel's types."""

    name = "cookbook"

    def __init__(self, bin_dir):
        self.files = {"lab/usdt-trace": bin_dir / "usdt-trace"}
        self.steps = [(90, question.step()) for question in QUESTIONS]

    def judge(self, outcomes, out, _rows):
        for question, outcome in zip(QUESTIONS, outcomes):
            try:
                question.judged(outcome.status, out)
            except (harness.Failure, OSError) as failure:
                return {self.name: Cell("FAIL", f"{question.question} {failure}\n{outcome.output[-600:]}")}
        return {self.name: Cell(f"{len(QUESTIONS)} questions ({sum(outcome.seconds for outcome in outcomes):.0f} s)")}
