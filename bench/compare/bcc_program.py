# SPDX-License-Identifier: BSD-2-Clause
"""A question about compare.c as programs for bcc ask it: bcc_program.py QUESTION PROGRAM HITS TEXT. Prints what it found,
and what the program says. bcc_program.py "value PROBE TYPE" PROGRAM: the argument of a probe of values.c."""

import subprocess
import sys

from bcc import BPF, USDT

COUNT = """
BPF_ARRAY(hits, u64, 1);
int on_hit(struct pt_regs *ctx) { hits.atomic_increment(0); return 0; }
"""
BY_TEXT = """
struct key { char text[64]; };
BPF_HASH(rows, struct key);
int on_hit(struct pt_regs *ctx) {
  struct key key = {};
  u64 text = 0;
  bpf_usdt_readarg(2, ctx, &text);
  bpf_probe_read_user_str(key.text, sizeof(key.text), (void *)text);
  rows.atomic_increment(key);
  return 0;
}
"""
PRINT = """
struct event { s64 number; char text[64]; };
BPF_RINGBUF_OUTPUT(events, 2048);
int on_hit(struct pt_regs *ctx) {
  struct event event = {};
  u64 text = 0;
  bpf_usdt_readarg(1, ctx, &event.number);
  bpf_usdt_readarg(2, ctx, &text);
  bpf_probe_read_user_str(event.text, sizeof(event.text), (void *)text);
  events.ringbuf_output(&event, sizeof(event), 0);
  return 0;
}
"""
VALUE = """
struct event { TYPE value; };
BPF_RINGBUF_OUTPUT(events, 8);
int on_hit(struct pt_regs *ctx) {
  struct event event = {};
  bpf_usdt_readarg(1, ctx, &event.value);
  events.ringbuf_output(&event, sizeof(event), 0);
  return 0;
}
"""


def show_value(probe, its_type, program):
    """The argument of a probe of values.c, read as a value of its type."""
    probes = USDT(path=program)
    probes.enable_probe(probe, "on_hit")
    bpf = BPF(text=VALUE.replace("TYPE", its_type), usdt_contexts=[probes])

    def show(_, data, __):
        value = bpf["events"].event(data).value
        if isinstance(value, bytes):  # a char
            value = int.from_bytes(value, "little", signed=its_type[0] == "s")
        print("value", value)
    bpf["events"].open_ring_buffer(show)
    subprocess.run([program], stdout=subprocess.DEVNULL, check=True)
    bpf.ring_buffer_consume()


def main():
    question, program, *words = sys.argv[1:]
    if question.startswith("value "):
        show_value(*question.split()[1:], program)
        return
    probes = USDT(path=program)
    probes.enable_probe("hit", "on_hit")
    bpf = BPF(text={"count": COUNT, "by text": BY_TEXT, "print": PRINT}[question], usdt_contexts=[probes])
    if question == "print":
        def show(_, data, __):
            event = bpf["events"].event(data)
            print(event.number, event.text.decode())
        bpf["events"].open_ring_buffer(show)
    with subprocess.Popen([program, *words]) as traced:
        while question == "print" and traced.poll() is None:
            bpf.ring_buffer_poll(10)
    if question == "print":
        bpf.ring_buffer_consume()
    elif question == "count":
        print("hits", bpf["hits"][0].value)
    else:
        print("hits", sum(value.value for value in bpf["rows"].values()))


if __name__ == "__main__":
    main()
