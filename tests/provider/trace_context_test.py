#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""<usdt/trace_context.h>: what a program publishes by it is read as the specifications say (OTEP 4947, OTEP 4719)."""

import errno
import importlib
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

ROOM = pathlib.Path(__file__).resolve().parent
PROVIDER = ROOM.parents[1] / "provider"
INCLUDE = PROVIDER / "include"
WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
HOW = [["gcc", "-std=c11", "-Wpedantic"], ["gcc", "-std=gnu11", "-m32", "-O2"], ["g++", "-x", "c++", "-std=c++17", "-O2"],
       ["clang-14", "-std=gnu11", "-O2"], ["clang++-14", "-x", "c++", "-std=c++20"], ["gcc", "-std=gnu11", "-static-pie", "-fPIE"],
       ["gcc", "-std=c11", "-O2", "-DBY_FUNCTIONS"]]


class Program:
    def __init__(self, case, how):
        self.file = case.directory / "program"
        self.publisher = self.file  # which has the variable
        flags = ["-Wl,--export-dynamic-symbol=otel_thread_ctx_v1"]
        if "-DBY_FUNCTIONS" in how:
            self.publisher = case.directory / "libprovider.so"
            subprocess.run(["gcc", "-O2", "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{INCLUDE}",
                            *(PROVIDER / "src").glob("*.c"), f"-Wl,--version-script={PROVIDER / 'provider.map'}", "-o", self.publisher], check=True)
            flags = [self.publisher, f"-Wl,-rpath,{case.directory}"]
        subprocess.run([*how, *WARNINGS, f"-I{INCLUDE}", ROOM / "trace_context.c", "-o", self.file, *flags], check=True)
        self.process = subprocess.Popen([self.file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        case.addCleanup(self.process.communicate)
        self.memory = open(f"/proc/{self.process.pid}/mem", "rb", buffering=0)
        case.addCleanup(self.memory.close)

    def tell(self, line):
        """What the function returned, and where the thread's record is."""
        print(line, file=self.process.stdin)
        result, place = self.process.stdout.readline().split()
        return int(result), 0 if place == "(nil)" else int(place, 16)

    def read(self, address, size):
        self.memory.seek(address)
        return self.memory.read(size)

    def context_page(self):
        """(when it was published, its message) of the process."""
        names = ("[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX")
        lines = [line.split(maxsplit=5) for line in pathlib.Path(f"/proc/{self.process.pid}/maps").read_text().splitlines()]
        found = [int(line[0].split("-")[0], 16) for line in lines if len(line) > 5 and line[5].startswith(names)]
        if not found:
            return None
        assert len(found) == 1, found
        signature, version, size, published, payload = struct.unpack("<8sIIQQ", self.read(found[0], 32))
        assert (signature, version) == (b"OTEL_CTX", 2)
        return published, self.read(payload, size)


class TraceContext(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="usdt-context-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def each_way(self):
        for how in HOW:
            if shutil.which(how[0]) and ("-m32" not in how or self.builds(how)):
                print(" ".join(how))
                yield Program(self, how)

    @staticmethod
    def builds(how):
        return subprocess.run([*how, "-x", "c", "-", "-o", "/dev/null"], input="#include <stdio.h>\nint main(void) { return 0; }", text=True,
                              stderr=subprocess.DEVNULL).returncode == 0

    def test_a_thread_has_its_record_and_its_attributes(self):
        for program in self.each_way():
            self.assertEqual(program.tell("a0"), (-errno.EINVAL, 0))
            result, place = program.tell("set")
            self.assertEqual((result, place % 2), (0, 0))
            ids = bytes(range(1, 17)) + bytes(range(0xf1, 0xf9))
            self.assertEqual(program.read(place, 28), ids + struct.pack("<BBH", 1, 1, 0))
            self.assertEqual([program.tell(line)[0] for line in ("a0", "l", "a1", "t", "l", "l")],
                             [0, 0, 0, -errno.EINVAL, 0, -errno.ENOSPC])
            long = b"\0\xff" + b"x" * 255
            attributes = b"\0\5/cart" + long + b"\1\5/cart" + long
            self.assertEqual(program.read(place, 28 + len(attributes)), ids + struct.pack("<BBH", 1, 1, len(attributes)) + attributes)
            self.assertEqual(program.tell("set"), (0, place))
            self.assertEqual(program.read(place + 24, 4), struct.pack("<BBH", 1, 1, 0))
            self.assertEqual(program.tell("clear"), (0, 0))

    def test_a_process_has_what_is_true_of_all_its_threads(self):
        if not shutil.which("protoc"):
            self.skipTest("no protoc")
        subprocess.run(["protoc", f"-I{ROOM}", f"--python_out={self.directory}", "process_context.proto"], check=True)
        sys.path.insert(0, str(self.directory))
        message = importlib.import_module("process_context_pb2").ProcessContext
        for program in self.each_way():
            self.assertIsNone(program.context_page())
            before = 0
            for line, service, keys in (("p2", "shop", ["http.route", "user.id"]), ("p3", "shop", ["http.route", "user.id", "ä"]), ("none", None, [])):
                self.assertEqual(program.tell(line)[0], 0)
                published, payload = program.context_page()
                self.assertGreater(published, before)
                before = published
                read = message.FromString(payload)
                self.assertEqual([(each.key, each.value.string_value) for each in read.resource.attributes], [("service.name", service)] if service else [])
                attributes = {each.key: each.value for each in read.attributes}
                self.assertEqual(attributes["threadlocal.schema_version"].string_value, "tlsdesc_v1_dev")
                self.assertEqual([each.string_value for each in attributes["threadlocal.attribute_key_map"].array_value.values], keys)
                self.assertEqual(len(attributes), 2)
                self.assertEqual(read.SerializeToString(), payload)
            self.assertEqual(program.tell("wrong")[0], -errno.EINVAL)

    def test_the_variable_is_among_the_dynamic_symbols(self):
        for program in self.each_way():
            symbols = subprocess.run(["readelf", "-W", "--dyn-syms", program.publisher], capture_output=True, text=True, check=True).stdout
            self.assertTrue(re.search(r" TLS +\w+ +DEFAULT +\d+ otel_thread_ctx_v1", symbols), symbols)


if __name__ == "__main__":
    unittest.main()
