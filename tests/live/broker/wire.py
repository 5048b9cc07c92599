# SPDX-License-Identifier: BSD-2-Clause
"""The messages of usdt-broker, written and read by docs/broker.md alone: for requests that no client of the library's makes.
A recorder between a client and the broker tells what a client sends."""

import array
import contextlib
import os
import socket
import struct
import threading

HELLO, WELCOME, REFUSED, LOAD, LOADED, ATTACH, ATTACHED, FORGET, MISSES, MISSED = range(1, 11)
MOST_OF_PACKET = 32 << 10
PROTOCOL = 1


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(words):
    words = words.encode() if isinstance(words, str) else words
    return varint(len(words)) + words


def read_varint(data, at=0):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def read_text(data, at):
    size, at = read_varint(data, at)
    return data[at:at + size].decode(errors="replace"), at + size


def node(operator, kind=0, bits=0, words="", of=()):
    """A node of a question's tree: numbers of Operator and ExpressionType (sdk/include/usdt/expression.hpp)."""
    return bytes([operator, kind]) + varint(bits) + text(words) + varint(len(of)) + b"".join(of)


INTEGER, VALUE, TEXT_OF, FIELD, MATCHES, PART, ROW = 0, 3, 4, 5, 22, 35, 36
OF_TEXT, OF_STACK = 4, 5


def question(root, values=0, kept=()):
    """A question about the first so many arguments; those of `kept` are texts in slots of records, read whole."""
    return b"".join([varint(values), bytes(range(values)), varint(0), varint(len(kept)),
                     *(bytes([value, slot, 1]) for value, slot in kept), root])


def plan(offset, semaphore=0, machine=None, function=0, name=("shared", "hit"), asked=None, moment=1):
    """The plan of one place in one file, with a question about it or none."""
    machine = machine or os.uname().machine
    return b"".join([
        varint(0),                                       # processes: all
        varint(1), text(machine),                        # a file
        varint(1), varint(0), text(name[0]), text(name[1]), bytes([function]), varint(0),  # a probe of it
        varint(1), varint(0), varint(0), varint(0),      # a spec: cookie, no arguments, no steps
        varint(0),                                       # spans: none
        b"".join(map(varint, (4, 4, 0, 4) if asked else (0, 0, 0, 0))),  # sizes
        varint(1) + asked if asked else varint(0),       # filters
        varint(0),                                       # programs: that of the request
        varint(1), varint(0), bytes([moment, 0, 0]), varint(0),  # a group: automatic, of the file
        # A site: probe, group, spec, filter, pair, program; its place.
        varint(1), varint(0), varint(0), varint(0), varint(1 if asked else 0), varint(0), varint(0),
        varint(offset), varint(semaphore), bytes([0]), varint(0),
    ])


CONSTANTS = 568  # bytes of struct usdt_stock_constants


ENTRIES, KEY_SIZE, VALUE_SIZE = 0, 3, 4  # of a map


def load(programs, of_plan, constants=None, program="usdt_trace_count", sizes=()):
    """`sizes`: of maps, each a name, what is set of it, and a number."""
    constants = constants if constants is not None else bytes(CONSTANTS)
    return b"".join([varint(programs), varint(len(constants)), constants, varint(len(sizes)),
                     *(text(name) + varint(what) + varint(size) for name, what, size in sizes), varint(0), varint(0),
                     text(program), varint(0), bytes([0]),
                     varint(64), of_plan])


def packets(kind, body, fds=()):
    """The packets of a message: a head of four bytes, and what there is room for."""
    room = MOST_OF_PACKET - 4
    parts = [body[at:at + room] for at in range(0, len(body), room)] or [b""]
    for number, part in enumerate(parts):
        more = number + 1 < len(parts)
        yield struct.pack("=BBH", kind, more, number) + part, fds if number == 0 else ()


class Wire:
    """A connection to the broker."""

    def __init__(self, path, hello=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(30)
        self.socket.connect(str(path))
        if hello:
            try:
                self.send(HELLO, varint(PROTOCOL) + text("a test"))
            except BrokenPipeError:  # it was refused before
                pass
            kind, body, _ = self.receive()
            if kind != WELCOME:
                raise ConnectionError(self.reason(body))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send_packet(self, packet, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([packet], control)

    def send(self, kind, body, fds=()):
        for packet, with_fds in packets(kind, body, fds):
            self.send_packet(packet, with_fds)

    def receive(self):
        """Kind, body and descriptors of the next message; kind 0: the broker has closed the connection."""
        body, fds = b"", []
        while True:
            packet, control, _, _ = self.socket.recvmsg(MOST_OF_PACKET, socket.CMSG_SPACE(64 * 4))
            for level, kind, data in control:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    fds += array.array("i", data[:len(data) // 4 * 4])
            if not packet:
                return 0, b"", []
            head, more, _ = struct.unpack("=BBH", packet[:4])
            body += packet[4:]
            if not more:
                return head, body, fds

    def ask(self, kind, body, fds=()):
        self.send(kind, body, fds)
        answer, got, descriptors = self.receive()
        for fd in descriptors:
            os.close(fd)
        return answer, got

    @staticmethod
    def reason(body):
        """The words of a refusal."""
        _, at = read_varint(body)
        _, at = read_varint(body, at)
        return read_text(body, at)[0]


class Recorder:
    """Stands between clients and the broker, and keeps what clients send: (kind, body), whole messages."""

    def __init__(self, path, broker):
        self.path, self.broker, self.messages = path, broker, []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(str(path))
        os.chmod(path, 0o666)
        self.socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            client, _ = self.socket.accept()
            to_broker = Wire(self.broker, hello=False)
            threading.Thread(target=self._pass_on, args=(to_broker.socket, client, None), daemon=True).start()
            self._pass_on(client, to_broker.socket, self.messages)

    @staticmethod
    def _pass_on(source, to, kept):
        body = b""
        with contextlib.suppress(OSError):
            while True:
                packet, control, _, _ = source.recvmsg(MOST_OF_PACKET, socket.CMSG_SPACE(64 * 4))
                if not packet:
                    break
                to.sendmsg([packet], control)
                for _, _, data in control:
                    for fd in array.array("i", data[:len(data) // 4 * 4]):
                        os.close(fd)
                if kept is not None:
                    kind, more, _ = struct.unpack("=BBH", packet[:4])
                    body += packet[4:]
                    if not more:
                        kept.append((kind, body))
                        body = b""
        with contextlib.suppress(OSError):
            to.shutdown(socket.SHUT_RDWR)
