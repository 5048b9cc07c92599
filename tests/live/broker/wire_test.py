#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a client can send that the library's does not: usdt-broker keeps to its rules, and goes on serving others.

Requests are written by wire.py, which knows nothing of the code under test."""

import os
import pathlib
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import ANNA, BERT, Changing, Service, as_user, build_changing, build_shared, children_of  # noqa: E402
import wire  # noqa: E402
from elf_view import file_offset, note  # noqa: E402
from harness import LONG, Skip, check, check_equal, main, scenario, wait_line, wait_until  # noqa: E402
from wire import ATTACH, ATTACHED, HELLO, LOAD, LOADED, REFUSED, read_varint  # noqa: E402

USTACK = 15  # a HitField
CLIENT = "import sys; sys.path.insert(0, {here!r}); from wire import *\n{body}"


def as_client(run, uid, body, *words):
    """Runs Python as a user, with wire.py at hand; returns what it prints."""
    here = run.dir / "client"
    here.mkdir(exist_ok=True)
    (here / "wire.py").write_text((pathlib.Path(__file__).parent / "wire.py").read_text())
    done = subprocess.run([*as_user(uid), sys.executable, "-B", "-c", CLIENT.format(here=str(here), body=body),
                           *map(str, words)], capture_output=True, text=True, timeout=6 * 3600 if LONG else 120)
    check_equal(done.returncode, 0, f"exit code of the client\n{done.stderr}")
    return done.stdout


def messages_of_a_trace(run, service, program, *question):
    """What usdt-trace sends, recorded; it runs as the user who asks."""
    here = run.dir / "client"
    here.mkdir(exist_ok=True)
    (here / "recorder").unlink(missing_ok=True)
    os.chown(here, ANNA, ANNA)
    (here / "wire.py").write_text((pathlib.Path(__file__).parent / "wire.py").read_text())
    body = f"""
import sys, time; sys.path.insert(0, {str(here)!r}); import wire
recorder = wire.Recorder({str(here / "recorder")!r}, {str(service.socket)!r})
print("ready", flush=True)
sys.stdin.readline()
for kind, message in recorder.messages: print(kind, message.hex())
"""
    recorder = run.start(*as_user(ANNA), sys.executable, "-B", "-c", body, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
    check_equal(recorder.stdout.readline().strip(), "ready", "the recorder")
    traced = Changing(run, program, ANNA)
    result = service.trace(ANNA, "--broker", here / "recorder", *question, "-p", traced.pid, "-d", "100ms")
    result.check_code(0)
    out, _ = recorder.communicate("\n", timeout=30)
    messages = [(int(kind), bytes.fromhex(body)) for kind, body in (line.split() for line in out.splitlines())]
    check_equal([kind for kind, _ in messages[:3]], [HELLO, LOAD, ATTACH], "kinds of messages")
    return messages


class Asker:
    """Asks for one place of the shared library, by hand."""

    def __init__(self, run, *options):
        self.run = run
        self.service = Service(run, *options)
        self.library, self.program = build_shared(run), build_changing(run)
        self.name = f"usdt:{self.library}:shared:hit"
        self.messages = messages_of_a_trace(run, self.service, self.program, self.name, "--ring-size", "1")
        self.programs = read_varint(self.messages[1][1])[0]
        self.probe = note(self.library, "hit")
        self.offset = file_offset(self.library, self.probe.pc)
        self.semaphore = file_offset(self.library, self.probe.semaphore)

    def ask(self, of_plan, constants=None, pid=0, file=None, program="usdt_trace_count"):
        """Kind and words of the answers: to load, and to attach if a process is named."""
        body = """
wire_plan, constants, pid, file = bytes.fromhex(sys.argv[3]), bytes.fromhex(sys.argv[4]), int(sys.argv[5]), sys.argv[6]
program = sys.argv[7]
with Wire(sys.argv[1]) as wire:
    fd = os.open(file, os.O_RDONLY)
    kind, answer = wire.ask(LOAD, load(int(sys.argv[2]), wire_plan, constants, program), [fd])
    print(kind, Wire.reason(answer) if kind == REFUSED else "")
    if kind == LOADED and pid:
        kind, answer = wire.ask(ATTACH, varint(read_varint(answer)[0]) + varint(0) + varint(pid) + varint(0))
        print(kind, Wire.reason(answer) if kind == REFUSED else "")
"""
        out = as_client(self.run, ANNA, body, self.service.socket, self.programs, of_plan.hex(),
                        (constants if constants is not None else bytes(wire.CONSTANTS)).hex(), pid, file or self.library, program)
        return [(int(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in out.splitlines()]

    def refuses(self, answers, *words):
        kind, why = answers[-1]
        check_equal(kind, REFUSED, f"kind of the answer {answers}")
        for word in words:
            check(word in why, f"{word!r} is not in {why!r}")


@scenario
def in_a_file_of_roots_only_its_probes_are_places(run):
    asker = Asker(run)
    process = Changing(run, asker.program, ANNA)
    good = asker.ask(wire.plan(asker.offset, asker.semaphore), pid=process.pid)
    check_equal([kind for kind, _ in good], [LOADED, ATTACHED], f"a probe with its semaphore: {good}")
    asker.refuses(asker.ask(wire.plan(asker.offset, asker.semaphore + 2), pid=process.pid), "no probe", "semaphore")
    asker.refuses(asker.ask(wire.plan(asker.offset, 0), pid=process.pid), "no probe")
    code = pathlib.Path(asker.library).read_bytes()
    for distance in range(-8, 9):
        if distance:
            asker.refuses(asker.ask(wire.plan(asker.offset + distance), pid=process.pid), "no probe")
    asker.refuses(asker.ask(wire.plan(len(code) + 4096), pid=process.pid), "no probe")
    asker.refuses(asker.ask(wire.plan(asker.offset, asker.semaphore, function=1), pid=process.pid), "root's")
    check(not process.attached(), "a breakpoint is left")


@scenario
def in_an_own_file_any_place_is_the_users_risk_and_its_process_alone_has_it(run):
    asker = Asker(run)
    own = run.dir / "own.so"
    own.write_bytes(asker.library.read_bytes())
    os.chown(own, ANNA, ANNA)
    own.chmod(0o644)
    process, other = Changing(run, asker.program, ANNA), Changing(run, asker.program, BERT)
    answers = asker.ask(wire.plan(asker.offset + 1), pid=process.pid, file=own)
    check_equal([kind for kind, _ in answers], [LOADED, ATTACHED], f"a place in an own file: {answers}")
    asker.refuses(asker.ask(wire.plan(asker.offset), pid=other.pid, file=own), "not (or not only) yours")
    asker.refuses(asker.ask(wire.plan(asker.offset), pid=1, file=own), "not (or not only) yours")
    asker.refuses(asker.ask(wire.plan(asker.offset), pid=2**22 - 3, file=own), "process")


@scenario
def processes_that_are_protected_are_refused(run):
    asker = Asker(run)
    plan = wire.plan(asker.offset, asker.semaphore)
    powerful = build_changing(run, "powerful", setuid=True)
    for orders, why in (([f"exec:{powerful}"], "not (or not only) yours"), (["protect:0"], "protected"),
                        ([f"exec:{powerful}", f"become:{ANNA}"], "protected")):
        process = Changing(run, asker.program, ANNA)
        for order in orders:
            process.order(order)
        asker.refuses(asker.ask(plan, pid=process.pid), why)
        check(not process.attached(), f"a breakpoint in it after {orders}")
    capable = run.start("setpriv", f"--reuid={ANNA}", f"--regid={ANNA}", "--clear-groups", "--inh-caps=+net_raw",
                        "--ambient-caps=+net_raw", "sleep", "60")
    wait_until(lambda: f"Uid:\t{ANNA}" in pathlib.Path(f"/proc/{capable.pid}/status").read_text(), "it is the user's")
    asker.refuses(asker.ask(plan, pid=capable.pid), "capabilities")
    grouped = run.start("setpriv", f"--reuid={ANNA}", f"--regid={BERT}", "--clear-groups", "sleep", "60")
    wait_until(lambda: f"Uid:\t{ANNA}" in pathlib.Path(f"/proc/{grouped.pid}/status").read_text(), "it is the user's")
    asker.refuses(asker.ask(plan, pid=grouped.pid), "group")


@scenario
def constants_by_which_programs_would_read_the_kernel_are_refused_or_the_brokers(run):
    asker = Asker(run)
    plan = wire.plan(asker.offset, asker.semaphore)

    def with_word(at, value):
        constants = bytearray(wire.CONSTANTS)
        struct.pack_into("=I", constants, at, value)
        return bytes(constants)

    asker.refuses(asker.ask(plan, with_word(72, 16)), "stacks of the kernel")  # record.stack_depth
    asker.refuses(asker.ask(plan, with_word(20, 1)), "stacks of the kernel")  # table.kernel_stack
    asker.refuses(asker.ask(plan, with_word(88, 1)), "what threads work for")  # record.context_at
    asker.refuses(asker.ask(plan, with_word(140, 1)), "descent")  # family.ancestors.count
    asker.refuses(asker.ask(plan, with_word(476, 1)), "wait for pages")  # may_sleep
    asker.refuses(asker.ask(plan, bytes(wire.CONSTANTS - 1)), "another version")
    # A record that is larger than the entry of a map which it is copied from would have the kernel's memory behind that.
    for program in ("usdt_trace_call", "usdt_trace_call_memory", "usdt_trace_call_steps", "usdt_trace_table_call"):
        asker.refuses(asker.ask(plan, with_word(56, 4096), program=program), "larger than the room")
    asker.refuses(asker.ask(plan, program="usdt_trace_span_begin"), "no spans")
    asker.refuses(asker.ask(plan, program="no_such_program"), "no such program")
    # What the client says of whose hits count is not asked.
    own = Changing(run, asker.program, ANNA)
    answers = asker.ask(plan, with_word(488, 0), pid=own.pid)  # owner.checked
    check_equal([kind for kind, _ in answers], [LOADED, ATTACHED], str(answers))


@scenario
def texts_in_the_kernels_memory_are_read_by_programs_alone_that_keep_them(run):
    """Such a text is read where a value says: in no other program than one that finds the value itself, and in a record
    that has room for all of it."""
    asker = Asker(run)
    matches = wire.node(wire.MATCHES, words="x", of=[wire.node(wire.TEXT_OF, wire.OF_TEXT)])
    asked = wire.question(matches, values=1, kept=[(0, 0)])

    def plan(asked, moment=1):
        return wire.plan(asker.offset, asker.semaphore, asked=asked, moment=moment)

    for program, moment in (("usdt_trace_hit_where", 1), ("usdt_trace_hit_memory", 1), ("usdt_trace_count_where", 1),
                            ("usdt_trace_call_memory", 1), ("usdt_trace_call_steps", 2), ("usdt_trace_call", 3)):
        asker.refuses(asker.ask(plan(asked, moment), program=program), "does not keep")

    def constants(size=64, slots=1, bytes_of_slot=32):
        of_record = bytearray(wire.CONSTANTS)
        struct.pack_into("=IIII", of_record, 56, size, 1, slots, bytes_of_slot)
        return bytes(of_record)

    for words, told in ((constants(slots=0), "no record keeps"), (constants(size=65), "larger than the room"),
                        (constants(), "larger than the room"), (constants(bytes_of_slot=2**31), "larger than the room"),
                        (constants(slots=2**31, bytes_of_slot=2**31), "larger than the room")):
        asker.refuses(asker.ask(plan(asked, 3), words, program="usdt_trace_call_memory"), told)
    # A kept text is no number, which would be an address in the kernel. The connection ends.
    number = wire.question(wire.node(wire.VALUE), values=1, kept=[(0, 0)])
    asker.refuses(asker.ask(plan(number, 3), constants(), program="usdt_trace_call_memory"), "cannot be")


@scenario
def rows_and_stacks_are_written_where_the_programs_have_room_for_them(run):
    asker = Asker(run)

    def row(key):
        parts = [wire.node(wire.PART, of=[each]) for each in (wire.node(wire.INTEGER, bits=1), key)]
        return wire.plan(asker.offset, asker.semaphore, asked=wire.question(wire.node(wire.ROW, bits=1, of=parts)))

    def user_stack(at):
        constants = bytearray(wire.CONSTANTS)
        struct.pack_into("=I", constants, 16, at)  # table.user_stack
        return bytes(constants)

    number = row(wire.node(wire.INTEGER, bits=7))
    for program in ("usdt_trace_hit_where", "usdt_trace_count_where", "usdt_trace_hit_memory"):
        asker.refuses(asker.ask(number, program=program), "no filter")
    stack = row(wire.node(wire.FIELD, wire.OF_STACK, USTACK))
    asker.refuses(asker.ask(stack, program="usdt_trace_table_hit"), "no key")
    for at in (0, 2, 9, 2**32 - 8):
        asker.refuses(asker.ask(stack, user_stack(at), program="usdt_trace_table_hit_stacks"), "no key")
    asker.refuses(asker.ask(number, user_stack(1), program="usdt_trace_table_hit_stacks"), "no key")


@scenario
def what_is_no_file_of_a_local_file_system_is_refused(run):
    """While the kernel reads the instruction under a breakpoint nobody can fork, however long that takes."""
    asker = Asker(run)
    for what in ("/proc/self/maps", "/sys/kernel/btf/vmlinux", "/dev/null"):
        kinds = asker.ask(wire.plan(0x10), file=what)
        check_equal(kinds[-1][0], REFUSED, f"the answer about {what}: {kinds}")


# A user namespace of one's own, in which anybody may mount an overlay; a file of it goes out to the parent.
OVERLAY = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
here, theirs = socket.socketpair()
uid, gid, base = os.getuid(), os.getgid(), sys.argv[2]
if os.fork() == 0:
    if libc.unshare(0x10000000 | 0x20000) != 0: os._exit(77)
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file: file.write(line)
    options = f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work,userxattr".encode()
    if libc.mount(b"overlay", f"{base}/merged".encode(), b"overlay", 0, options) != 0: os._exit(77)
    socket.send_fds(theirs, [b"x"], [os.open(f"{base}/merged/own.so", os.O_RDONLY)])
    os._exit(0)
_, status = os.wait()
if status != 0:
    print("no overlay")
    sys.exit()
_, fds, _, _ = socket.recv_fds(here, 1, 1)
with Wire(sys.argv[1]) as wire:
    kind, answer = wire.ask(LOAD, load(int(sys.argv[3]), bytes.fromhex(sys.argv[4])), fds)
    print(kind, Wire.reason(answer) if kind == REFUSED else "")
"""


@scenario
def a_file_of_a_mount_that_only_the_user_has_is_refused(run):
    """What lies below it may be a FUSE of the user's, which the kernel would wait for."""
    asker = Asker(run)
    base = run.dir / "overlay"
    for name in ("", "lower", "upper", "work", "merged"):
        (base / name).mkdir()
        os.chown(base / name, ANNA, ANNA)
    (base / "lower/own.so").write_bytes(asker.library.read_bytes())
    os.chown(base / "lower/own.so", ANNA, ANNA)
    plan = wire.plan(asker.offset)
    check_equal(asker.ask(plan, file=base / "lower/own.so")[0][0], LOADED, "the file itself")
    out = as_client(run, ANNA, OVERLAY, asker.service.socket, base, asker.programs, plan.hex())
    if "no overlay" in out:
        raise Skip("this kernel lets nobody mount overlays in a user namespace")
    check(out.startswith(f"{REFUSED} ") and "file system" in out, out)


@scenario
def what_the_verifier_says_has_no_address_of_the_kernel(run):
    """It writes those of maps into its log for whoever has CAP_PERFMON, as the broker has."""
    asker = Asker(run)
    out = as_client(run, ANNA, """
fd = os.open(sys.argv[4], os.O_RDONLY)
with Wire(sys.argv[1]) as wire:
    sizes = [("usdt_blank", VALUE_SIZE, 8), ("usdt_open_calls", VALUE_SIZE, 96)]  # less than programs copy from there
    kind, answer = wire.ask(LOAD, load(int(sys.argv[2]), bytes.fromhex(sys.argv[3]), sizes=sizes, program="usdt_trace_call"), [fd])
    print(kind, answer.decode(errors="replace"))
""", asker.service.socket, asker.programs, wire.plan(asker.offset, asker.semaphore).hex(), asker.library)
    check(out.startswith(f"{REFUSED} "), out)
    check("map=usdt.rodata" in out and "verifier" in out, f"no log:\n{out}")
    check_equal(re.findall("0x[89a-f][0-9a-f]{15}", out), [], "addresses")


@scenario
def nothing_behind_a_key_or_a_value_on_a_programs_stack_is_copied(run):
    """There may be anything of the kernel's, which the verifier lets programs of CAP_PERFMON read."""
    asker = Asker(run)
    sizes = [(name, wire.KEY_SIZE, size) for name, size in (("usdt_open_calls", 32), ("usdt_rows", 512), ("usdt_row_keys", 512),
                                                            ("usdt_descendants", 16), ("usdt_interpreters", 8))]
    sizes += [(name, wire.VALUE_SIZE, size) for name, size in (("usdt_rows", 56), ("usdt_row_keys", 16), ("usdt_stats", 8))]
    for each in sizes:
        out = as_client(run, ANNA, """
fd = os.open(sys.argv[4], os.O_RDONLY)
name, what, size = sys.argv[5].split(",")
with Wire(sys.argv[1]) as wire:
    sizes = [(name, int(what), int(size))]
    kind, answer = wire.ask(LOAD, load(int(sys.argv[2]), bytes.fromhex(sys.argv[3]), sizes=sizes), [fd])
    print(kind, Wire.reason(answer) if kind == REFUSED else "")
""", asker.service.socket, asker.programs, wire.plan(asker.offset, asker.semaphore).hex(), asker.library,
                        ",".join(map(str, each)))
        check(out.startswith(f"{REFUSED} ") and ("larger than" in out or "as large as" in out), f"{each}: {out}")


@scenario
def maps_are_counted_at_what_the_kernel_keeps_for_them(run):
    """For an entry it keeps more than a key and a value."""
    asker = Asker(run, "--memory", "32")
    out = as_client(run, ANNA, """
fd = os.open(sys.argv[4], os.O_RDONLY)
for entries in (1 << 12, 1 << 20):
    sizes = [("usdt_descendants", ENTRIES, entries)]  # of nine bytes
    with Wire(sys.argv[1]) as wire:
        kind, answer = wire.ask(LOAD, load(int(sys.argv[2]), bytes.fromhex(sys.argv[3]), sizes=sizes), [fd])
        print(kind, Wire.reason(answer) if kind == REFUSED else "")
""", asker.service.socket, asker.programs, wire.plan(asker.offset, asker.semaphore).hex(), asker.library)
    few, many = out.splitlines()
    check_equal(few.strip(), str(LOADED), "the answer about few entries")
    check(many.startswith(f"{REFUSED} maps of "), many)


@scenario
def a_client_who_has_much_planned_and_loaded_takes_no_others_memory(run):
    """What libbpf keeps of programs is in the memory of the process that serves the client."""
    asker = Asker(run, "--memory", "8")
    out = as_client(run, ANNA, """
fd = os.open(sys.argv[4], os.O_RDONLY)
with Wire(sys.argv[1]) as wire:
    for n in range(64):
        kind, answer = wire.ask(LOAD, load(int(sys.argv[2]), bytes.fromhex(sys.argv[3])), [fd])
        if kind != LOADED: break
    print(n, Wire.reason(answer) if kind == REFUSED else kind)
""", asker.service.socket, asker.programs, wire.plan(asker.offset, asker.semaphore).hex(), asker.library)
    check(out.strip().endswith("out of memory"), out)
    check("ended by a signal" not in asker.service.said(), asker.service.said())
    check_equal([kind for kind, _ in asker.ask(wire.plan(asker.offset, asker.semaphore))], [LOADED], "another connection")


# Beyond what one user may have connections send a socket that nobody takes, and that lingers: it has unsent bytes.
LINGERS = """
import socket, threading
held = Wire(sys.argv[1])
peers = []
for _ in range(int(sys.argv[2])):
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    listener.listen()
    lingers = socket.create_connection(listener.getsockname())
    peers += [listener, listener.accept()[0]]
    lingers.setblocking(False)
    try:
        while True: lingers.send(bytes(65536))
    except BlockingIOError: pass
    lingers.setblocking(True)
    lingers.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    for _ in range(1000):  # until it is sent before the broker has said no
        with Wire(sys.argv[1], hello=False) as refused:
            try:
                refused.send_packet(b"junk", [lingers.fileno()])
                break
            except OSError: pass
    threading.Thread(target=lingers.close, daemon=True).start()  # lingers here where the message is gone by now
print("sent", flush=True)
sys.stdin.read()
"""


@scenario
def what_a_client_sends_takes_nobody_elses_time_to_be_closed(run):
    """close(2) of the last descriptor of a socket waits for as long as SO_LINGER says: it is 60 s here."""
    service = Service(run, "--connections-of-user", "1")
    here = run.dir / "client"
    here.mkdir()
    (here / "wire.py").write_text((pathlib.Path(__file__).parent / "wire.py").read_text())
    sender = run.start(*as_user(ANNA), sys.executable, "-B", "-c", CLIENT.format(here=str(here), body=LINGERS), service.socket,
                       8, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    check_equal(wait_line(sender, 60), "sent", "what the client says")
    out = as_client(run, BERT, """
import time
began = time.monotonic()
Wire(sys.argv[1])
print(time.monotonic() - began)
""", service.socket)
    check(float(out) < 10, f"another user was served after {out} s")
    wait_until(lambda: len(children_of(service.process.pid)) == 1, "nobody waits for these sockets any more")
    check("ended by a signal" not in service.said(), service.said())


@scenario
def who_numbers_users_otherwise_takes_no_connection(run):
    """Whoever has subordinate users (/etc/subuid) could come as thousands of them."""
    service = Service(run, "--connections", "1")
    out = as_client(run, ANNA, """
import ctypes
if ctypes.CDLL(None).unshare(0x10000000) != 0:
    print("no user namespace")
    sys.exit()
held = Wire(sys.argv[1], hello=False)
try:
    Wire(sys.argv[1])
except ConnectionError as error:
    print(error, flush=True)
if os.fork() == 0:
    os.setsid()
    for fd in (0, 1, 2): os.close(fd)
    import time
    time.sleep(60)
    os._exit(0)
""", service.socket)
    if "no user namespace" in out:
        raise Skip("nobody may make a user namespace here")
    check("user namespace" in out, out)
    check_equal(as_client(run, BERT, "Wire(sys.argv[1]); print('served')", service.socket).strip(), "served", "another user")


@scenario
def messages_that_cannot_be_end_their_connection_and_no_other(run):
    """3,000 of them; `./run long broker` sends a million, to a usdt-broker that is built with AddressSanitizer and
    UndefinedBehaviorSanitizer (USDT_BROKER_PROGRAM). Seeds are what usdt-trace sends for a probe, for calls that are asked
    about their texts, for a table by stacks and for spans."""
    asker = Asker(run, "--memory-of-user", "1000000", "--places-of-user", "1000000000")
    tries = 1_000_000 if LONG else 3000
    body = """
import random, socket
path, tries, seed, library = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
seeds = [(int(k), bytes.fromhex(b)) for k, b in (word.split(":") for word in sys.argv[5:])]
clients = 4  # each waits for answers most of the time
others = []
while len(others) < clients - 1:
    others.append(os.fork())
    if others[-1] == 0: break
random.seed(seed + len(others) * (others[-1] == 0))
tries //= clients
fd = os.open(library, os.O_RDONLY)
kinds = {}
def mutate(data):
    data = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4, 16))):
        if not data: return bytes(data)
        at = random.randrange(len(data))
        way = random.randrange(6)
        if way == 0: data[at] = random.randrange(256)
        elif way == 1: data[at] ^= 1 << random.randrange(8)
        elif way == 2: del data[at:at + random.randrange(1, 64)]
        elif way == 3: data[at:at] = bytes(random.randrange(256) for _ in range(random.randrange(1, 16)))
        elif way == 4: data[at:at] = b"\\xff" * random.randrange(1, 10)
        else: data[at] = random.choice((0, 1, 0x7f, 0x80, 0xff))
    return bytes(data)
sent = 0
while sent < tries:
    try:
        with Wire(path) as wire:
            for _ in range(random.randrange(1, 6)):
                kind, data = random.choice(seeds)
                if random.random() < 0.1: kind = random.randrange(256)
                fds = [fd] * random.choice((0, 1, 1, 1, 2, 60)) if kind == 4 or random.random() < 0.1 else []
                sent += 1
                if random.random() < 0.1:
                    wire.send_packet(mutate(struct.pack("=BBH", kind, random.randrange(2), 0) + data[:30000]), fds)
                    wire.socket.settimeout(0.05)
                else:
                    wire.send(kind, mutate(data), fds)
                if kind == 8: continue
                answer, got, descriptors = wire.receive()
                for each in descriptors: os.close(each)
                kinds[answer] = kinds.get(answer, 0) + 1
                if answer in (0, REFUSED) and not got: break
    except (BrokenPipeError, ConnectionError, socket.timeout): pass
print(sent, kinds, flush=True)
if others[-1] != 0 and any(os.waitpid(each, 0)[1] != 0 for each in others): sys.exit(1)
"""
    pass_function = f"{asker.library}:pass"
    messages = asker.messages[1:]
    for question in ([asker.name, "--by", "ustack, str(arg1)", "--sum", "arg0"],
                     [f"ucall:{pass_function}", "--where", "retval > 3 && duration > 0"],
                     [asker.name, "~~", f"uretprobe:{pass_function}", "--where", 'str(arg1) =~ "*hit*"']):
        messages += messages_of_a_trace(run, asker.service, asker.program, *question)[1:]
    seeds = [f"{kind}:{data.hex()}" for kind, data in messages]
    seed = random.randrange(2**31)
    out = as_client(run, ANNA, body, asker.service.socket, tries, seed, asker.library, *seeds)
    said = asker.service.said()
    check("ended by a signal" not in said, f"seed {seed}: a worker crashed\n{said[-2000:]}")
    ended = asker.service.process.poll()  # 0: somebody's SIGTERM or SIGINT, of which it says nothing
    check(ended is None, f"seed {seed}: the broker ended with {ended}\n{said[-2000:]}")
    check(f"{REFUSED}:" in out, f"seed {seed}: nothing was refused: {out}")
    traced = Changing(run, asker.program, ANNA)
    still = asker.service.start(ANNA, f"usdt:{asker.library}:shared:hit", "-p", traced.pid)
    traced.order("fire:3:0")
    still.signal(2)
    still.finish().check_accounted(3, lost=0)


@scenario
def programs_of_another_build_are_told_from_the_brokers_own(run):
    asker = Asker(run)
    asker.programs += 1
    asker.refuses(asker.ask(wire.plan(asker.offset, asker.semaphore)), "other programs", "restarted")


@scenario
def another_protocol_is_told_which_one_this_is(run):
    service = Service(run)
    out = as_client(run, ANNA, """
with Wire(sys.argv[1], hello=False) as wire:
    kind, body = wire.ask(HELLO, varint(99) + text("of the future"))
    print(kind, Wire.reason(body))
    print(wire.receive()[0])
""", service.socket)
    check(out.startswith(f"{REFUSED} ") and "protocol 1" in out and "99" in out, out)
    check_equal(out.splitlines()[-1], "0", "the connection is closed")


if __name__ == "__main__":
    main()
