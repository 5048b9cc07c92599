#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""buf() and ntop(): bytes at pointers as the program has them, judged by its own words and by Python's socket."""

import json
import pathlib
import re
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # noqa: E402, F401 (finds the harness)
from harness import at_once, attach_at_once, check, check_equal, main, require_root, scenario  # noqa: E402

attach_at_once()

PROGRAM = r"""
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sdt.h>
struct main_addr { int number; };
struct peer {
  int port;
  struct in6_addr six;
  struct in_addr four;
  unsigned char mac[6];
  long size;
  unsigned char* data;
  struct main_addr own;
};
__attribute__((noinline)) long take(struct peer* peer, struct sockaddr* any, struct in6_addr* six, struct in_addr* four) {
  __asm__ volatile("" : "+r"(peer), "+r"(any), "+r"(six), "+r"(four) : : "memory");
  return peer->port;
}
__attribute__((noinline)) long done(struct in6_addr* six, struct in_addr* four, unsigned char* data, long size) {
  __asm__ volatile("" : "+r"(six), "+r"(four), "+r"(data) : : "memory");
  return data[0] + size;
}
static void invert(void* bytes, int size) {
  for (int n = 0; n < size; n++) ((unsigned char*)bytes)[n] ^= 0xff;
}
static void say(const void* bytes, long size) {
  for (long i = 0; i < size; i++) printf("%02x", ((const unsigned char*)bytes)[i]);
  printf(size > 0 ? " " : "- ");
}
int main(void) {
  // The last page of what may be read: what goes on behind it cannot be.
  unsigned char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + 4096, 4096);
  srand(7);
  for (int i = 0; i < 60; i++) {
    struct peer peer = {.port = i, .size = i % 21 == 20 ? -1 : i % 21, .data = pages + 4096 - 20};
    for (unsigned n = 0; n < 16; n++) peer.six.s6_addr[n] = i % 3 == 0 ? 0 : (unsigned char)rand();
    for (unsigned n = 0; n < 6; n++) peer.mac[n] = (unsigned char)rand();
    for (int n = 0; n < 20; n++) peer.data[n] = n == 3 ? 0 : (unsigned char)(i * 13 + n);
    peer.four.s_addr = (uint32_t)rand() * 2 + 1;
    say(&peer.six, 16), say(&peer.four, 4), say(peer.mac, 6), say(peer.data, 20), printf("%ld\n", peer.size);
    DTRACE_PROBE5(bytes, at, &peer.six, &peer.four, peer.data, peer.size, i);
    take(&peer, NULL, i % 10 == 9 ? NULL : &peer.six, &peer.four);
    invert(&peer.six, 16), invert(&peer.four, 4), invert(peer.data, 20);
    DTRACE_PROBE4(bytes, done, &peer.six, &peer.four, peer.data, peer.size);
    done(i % 10 == 9 ? NULL : &peer.six, &peer.four, peer.data, peer.size);
  }
  return 0;
}
"""


class Said:
    """One line of the program."""

    def __init__(self, line):
        six, four, mac, data, size = line.split()
        self.six, self.four, self.mac, self.data = (bytes.fromhex(word) for word in (six, four, mac, data))
        self.size = int(size)


def build(run):
    require_root()
    (run.dir / "bytes.c").write_text(PROGRAM)
    return run.build("bytes", [run.dir / "bytes.c"], ["-O1", "-g"])


def traced(run, program, probe, wanted, *options, code=0):
    out = run.dir / "shown"
    done = subprocess.run([run.tool, probe.format(program), "-o", out, "--print", wanted, *options, *at_once([probe], options),
                           "--", program], capture_output=True, text=True, timeout=60)
    check_equal(done.returncode, code, done.stderr)
    if code:
        return done.stderr
    return out.read_text().splitlines(), [Said(line) for line in done.stdout.splitlines()]


def values(lines):
    return [json.loads(line)["args"] for line in lines if '"args"' in line and '"summary"' not in line]


def six(address):
    return socket.inet_ntop(socket.AF_INET6, address)


def four(address):
    return socket.inet_ntop(socket.AF_INET, address)


AT = "usdt:{}:bytes:at"


@scenario
def bytes_at_pointers_are_those_that_the_program_has(run):
    program = build(run)
    lines, said = traced(run, program, AT, "buf(arg2, 20), buf(arg2, 0x1), buf(arg0, 16), arg4, buf(arg2, arg3)", "-f", "json")
    check_equal(len(values(lines)), 60, "events")
    for i, (event, own) in enumerate(zip(values(lines), said)):
        check_equal(event[:4], [own.data.hex(), own.data[:1].hex(), own.six.hex(), i], f"hit {i}")
        check_equal(event[4], own.data[:own.size].hex() if own.size >= 0 else {"error": "its length is below 0"}, f"hit {i}")


@scenario
def what_cannot_be_read_is_an_error_and_never_bytes(run):
    program = build(run)
    lines, said = traced(run, program, AT, "buf(arg2, 21), buf(arg3, 4), buf(arg2, 20)", "-f", "json")
    for event, own in zip(values(lines), said):
        for unread in event[:2]:
            check("could not be read" in unread["error"] or unread["error"] == "null pointer", f"behind the last page: {event}")
        check_equal(event[2], own.data.hex(), "before its end")


@scenario
def addresses_are_those_that_python_makes_of_the_bytes(run):
    program = build(run)
    lines, said = traced(run, program, AT, "ntop(arg0, 16), ntop(arg1, 4), ntop(*(u32 *)arg1)", "-f", "json")
    for event, own in zip(values(lines), said):
        check_equal(event, [six(own.six), four(own.four), four(own.four)], "of pointers")
    wanted = "ntop(peer->six), ntop(peer->four), ntop(four), ntop(six), buf(peer->mac), ntop(peer->six, 16), buf(peer->data, peer->size)"
    lines, said = traced(run, program, "uprobe:{}:take", wanted, "-f", "json")
    check_equal(len(values(lines)), 60, "events")
    for i, (event, own) in enumerate(zip(values(lines), said)):
        check_equal(event[:3] + event[4:6], [six(own.six), four(own.four), four(own.four), own.mac.hex(), six(own.six)], "of members")
        check_equal(event[3], {"error": "null pointer"} if i % 10 == 9 else six(own.six), "of a pointer")
        check_equal(event[6], own.data[:own.size].hex() if own.size >= 0 else {"error": "its length is below 0"}, "by a member")


@scenario
def lines_and_formats_show_them_escaped_or_in_digits(run):
    program = build(run)
    lines, said = traced(run, program, AT, "buf(arg2, 5), ntop(arg1, 4)")
    for line, own in zip(lines, said):
        shown = "".join(chr(c) if 32 <= c < 127 and chr(c) not in '"\\' else f"\\x{c:02x}" for c in own.data[:5])
        check(line.endswith(f' buf(arg2, 5)="{shown}" ntop(arg1, 4)={four(own.four)}'), line)
    lines, said = traced(run, program, AT, "buf(arg2, 5), buf(arg2, 300), ntop(arg0, 16)", "--format-string", "%x|%s|%s")
    for line, own in zip(lines, said):
        digits, unread, address = line.split("|")
        check_equal((digits, address), (own.data[:5].hex(), six(own.six)), line)
        check("could not be read" in unread, line)


@scenario
def a_recording_has_the_same_bytes(run):
    program = build(run)
    file = run.dir / "recording"
    wanted = "buf(arg2, arg3), ntop(arg0, 16), buf(arg2, 21), buf(arg2, 20)"
    live, _ = traced(run, program, AT, wanted, "-f", "json", "--record", file)
    for options in ([], ["--print", wanted]):
        again = subprocess.run([run.tool, "--replay", file, "-f", "json", *options], capture_output=True, text=True, timeout=60)
        check_equal(again.returncode, 0, again.stderr)
        check_equal(values(again.stdout.splitlines()), values(live), options)


@scenario
def bytes_that_a_recording_does_not_have_are_none_of_its_pointers(run):
    program = build(run)
    file = run.dir / "recording"
    traced(run, program, "uprobe:{}:take", "peer, six, four", "--record", file)
    for wanted in ("ntop(six)", "ntop(six, 16)", "ntop(four)", "buf(four, 4)", "ntop(peer)"):
        again = subprocess.run([run.tool, "--replay", file, "--print", wanted], capture_output=True, text=True, timeout=60)
        check(not re.search(r"\d+\.\d+\.\d+\.\d+$", again.stdout, re.M), f"{wanted}:\n{again.stdout}")


@scenario
def an_address_is_whole_however_short_texts_are(run):
    program = build(run)
    lines, said = traced(run, program, "uprobe:{}:take", "ntop(peer->six), ntop(peer->four)", "-Z", "4")
    check_equal(len(said), 60, "calls")
    shown = [line for line in lines if "ntop(" in line]
    for line, own in zip(shown, said):
        check(line.endswith(f"={six(own.six)} ntop(peer->four)={four(own.four)}"), line)
    check_equal(len(shown), 60, "lines")


@scenario
def each_carrier_brings_the_same_bytes(run):
    program = build(run)
    for carrier in ("table", "per-link"):
        lines, said = traced(run, program, AT, "buf(arg2, arg3), buf(arg0, 16)", "-f", "json", "--carrier", carrier)
        check_equal([event[1] for event in values(lines)], [own.six.hex() for own in said], carrier)
        check_equal([event[0] for event in values(lines) if isinstance(event[0], str)],
                    [own.data[:own.size].hex() for own in said if own.size >= 0], carrier)


WRONG = [
    (AT, "buf(arg4, 16)", "arg4 is no pointer"),
    (AT, "buf(arg2)", "how many bytes of arg2?"),
    (AT, "buf(arg2, 0)", "no bytes"),
    (AT, "buf(arg2, 100000)", "at most 65536"),
    (AT, "buf(arg9, 4)", "no such argument"),
    (AT, "buf(arg2, arg9)", "no such argument"),
    (AT, "ntop(arg0, 5)", "an address has 4 or 16 bytes"),
    (AT, "ntop(arg0, arg1)", "an address has 4 or 16 bytes"),
    ("uprobe:{}:take", "ntop(any)", "say which, as in ntop(((struct sockaddr_in *)any)->sin_addr)"),
    ("uprobe:{}:take", "buf(peer->port, 4)", "peer->port is no pointer"),
    ("uprobe:{}:take", "ntop(peer->mac)", "say how many bytes"),
    ("uprobe:{}:take", "ntop(peer->own)", "say how many bytes"),
]


@scenario
def what_has_no_such_bytes_is_refused_with_the_reason(run):
    program = build(run)
    for probe, wanted, reason in WRONG:
        said = traced(run, program, probe, wanted, code=2)
        check(reason in said, f"{wanted}: {said}")
    said = traced(run, program, AT, "buf(arg2, 4)", "--format-string", "%d", code=2)
    check("bytes, for which there are %s, %x and %X" in said, said)


def inverted(data):
    return bytes(byte ^ 0xff for byte in data)


def read_or_error(own, size):
    return own[:size].hex() if size >= 0 else {"error": "its length is below 0"}


@scenario
def both_ends_of_a_span_have_the_bytes_that_were_there_then(run):
    program = build(run)
    file = run.dir / "recording"
    # Without types, by numbers; and with types, by names.
    wanted = ("ntop(arg0, 16), ntop(arg1, 4), buf(arg2, 20), buf(arg2, arg3), arg4, "
              "ntop(end.arg0, 16), ntop(end.arg1, 4), buf(end.arg2, 20), buf(end.arg2, end.arg3), end.arg3")
    probes = [f"usdt:{program}:bytes:at", "~~", f"usdt:{program}:bytes:done"]
    typed = ("ntop(peer->six), ntop(four), buf(peer->mac), ntop(end.six), ntop(end.four), buf(end.data, 20), "
             "buf(end.data, end.size)")
    of_functions = [f"uprobe:{program}:take", "~~", f"uprobe:{program}:done"]
    for points, text in ((probes, wanted), (of_functions, typed)):
        live = subprocess.run([run.tool, *points, "--print", text, "-f", "json", "--record", file, "-o", run.dir / "live", "--",
                               program], capture_output=True, text=True, timeout=60)
        check_equal(live.returncode, 0, live.stderr)
        said = [Said(line) for line in live.stdout.splitlines()]
        shown = values((run.dir / "live").read_text().splitlines())
        check_equal(len(shown), 60, "spans")
        for i, (span, own) in enumerate(zip(shown, said)):
            last = inverted(own.data)
            if points == probes:
                begin = [six(own.six), four(own.four), own.data.hex(), read_or_error(own.data, own.size), i]
                end = [six(inverted(own.six)), four(inverted(own.four)), last.hex(), read_or_error(last, own.size), own.size]
            else:
                begin = [six(own.six), four(own.four), own.mac.hex()]
                end = [span[3] if i % 10 == 9 else six(inverted(own.six)), four(inverted(own.four)), last.hex(),
                       read_or_error(last, own.size)]
                check(i % 10 != 9 or span[3] == {"error": "null pointer"}, f"span {i}: {span}")
            check_equal(span, begin + end, f"span {i}")
        again = subprocess.run([run.tool, "--replay", file, "-f", "json"], capture_output=True, text=True, timeout=60)
        check_equal(values(again.stdout.splitlines()), shown, "replayed")


if __name__ == "__main__":
    main()
