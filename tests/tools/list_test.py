# SPDX-License-Identifier: BSD-2-Clause
"""usdt-list on files: what it prints, how it understands its command line, and what it answers to odd input."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import time
import termios
import unittest

import tool
from tool import usdt_list, usdt_list_json

SITES = [
    ("app", "start", "-4@%edi 8@%rsi"),
    ("app", "start", "8@%rdi 8@%rsi"),
    ("app", "stop", "", True),
    ("db", "query", "8@%rax -4@$-1 8f@-16(%rbp) 4@no_such_symbol(%rip)", True),
]


def masked(text, directory):
    """Without what the linker chose."""
    text = text.replace(directory, "DIR")
    text = re.sub(r"(file offset|semaphore ) 0x[0-9a-f]+", r"\1 ADDR", text)
    return re.sub(r"pc 0x[0-9a-f]+", "pc ADDR", text)


class Text(tool.TempDirCase):
    maxDiff = None

    def test_one_line_a_probe_separated_by_tabs(self):
        app = self.binary("app", SITES)
        self.assertEqual(usdt_list(app, check=0).stdout, "".join(f"usdt:{app}:{line}\n" for line in (
            "app:start\t2 signatures\t-\t2 sites",
            "app:stop\t()\tsemaphore\t1 site",
            "db:query\t(u64, i32, f64, u32)\tsemaphore\t1 site\t1 unreadable")))

    def test_v_adds_what_the_sites_of_a_probe_share(self):
        app = self.binary("app", SITES)
        self.assertEqual(masked(usdt_list("-v", app, check=0).stdout, self.dir), """\
usdt:DIR/app:app:start\t2 signatures\t-\t2 sites
  build id   c0ffee
  signature  (i32, u64)  -4@%edi 8@%rsi  1 site
  signature  (u64, u64)  8@%rdi 8@%rsi  1 site
  cost       trap: breakpoint, nop emulated  2 sites
usdt:DIR/app:app:stop\t()\tsemaphore\t1 site
  build id   c0ffee
  semaphore  ADDR, file offset ADDR
  signature  ()  no arguments  1 site
  cost       trap: breakpoint, nop emulated  1 site
usdt:DIR/app:db:query\t(u64, i32, f64, u32)\tsemaphore\t1 site\t1 unreadable
  build id   c0ffee
  semaphore  ADDR, file offset ADDR
  signature  (u64, i32, f64, u32)  8@%rax -4@$-1 8f@-16(%rbp) 4@no_such_symbol(%rip)  1 site
  cost       trap: breakpoint, nop emulated  1 site
""")

    def test_vv_adds_every_site_and_a_caret_below_what_cannot_be_read(self):
        app = self.binary("app", SITES)
        self.assertEqual(masked(usdt_list("-vv", app, "db:query", check=0).stdout, self.dir), """\
usdt:DIR/app:db:query\t(u64, i32, f64, u32)\tsemaphore\t1 site\t1 unreadable
  build id   c0ffee
  semaphore  ADDR, file offset ADDR
  signature  (u64, i32, f64, u32)  8@%rax -4@$-1 8f@-16(%rbp) 4@no_such_symbol(%rip)  1 site
  cost       trap: breakpoint, nop emulated  1 site
  site       pc ADDR  file offset ADDR  90  nop  (trap)
    args     8@%rax -4@$-1 8f@-16(%rbp) 4@no_such_symbol(%rip)
    arg0     u64  8@%rax                  register rax
    arg1     i32  -4@$-1                  constant -1
    arg2     f64  8f@-16(%rbp)            memory at rbp-16
    arg3     u32  4@no_such_symbol(%rip)  unreadable: symbol 'no_such_symbol' is in neither .symtab nor .dynsym nor a debug file
             8@%rax -4@$-1 8f@-16(%rbp) 4@no_such_symbol(%rip)
                                          ^
""")

    def test_a_terminal_gets_aligned_columns_and_colour_unless_told_not_to(self):
        app = self.binary("app", SITES)
        for environment, escapes in (({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                                     ({"TERM": "dumb"}, False)):
            heading, *lines = self.on_terminal(environment, app).splitlines()
            self.assertRegex(re.sub(r"\x1b\[[0-9;]*m", "", heading), r"^PROBE +ARGUMENTS +SEMAPHORE +SITES$")
            self.assertEqual(any("\x1b[" in line for line in lines), escapes, environment)
            plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
            self.assertEqual(len({line.index("  ") for line in plain if "start" in line or "query" in line}), 2)
            self.assertEqual(len({re.search(r"[0-9] sites?\b", line).start() for line in plain}), 1, plain)
            self.assertNotIn("\t", "".join(plain))

    def test_what_does_not_fit_a_narrow_terminal_goes_below_its_name(self):
        long = ("provider_with_a_long_name", "probe__with__a__long__name", "8@%rdi -4@%esi", True)
        app = self.binary("app", [*SITES, long])
        for columns in (60, 80, 200):
            with self.subTest(columns):
                lines = self.on_terminal({"NO_COLOR": "1"}, app, columns=columns).splitlines()
                for line in lines:
                    self.assertTrue(len(line) <= columns or line.startswith("usdt:") and " " not in line, line)
                self.assertEqual(len({line.index("site") for line in lines if "site" in line}), 1, lines)
                names = [line.split()[0] for line in lines if line.startswith("usdt:")]
                self.assertEqual(len(names), 4, lines)

    def on_terminal(self, environment, *arguments, columns=160):
        try:
            leader, follower = pty.openpty()
        except OSError as error:  # a bare chroot
            self.skipTest(f"no pseudo terminals (mount -t devpts): {error}")
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 40, columns, 0, 0))
        clean = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        with subprocess.Popen([tool.USDT_LIST, *arguments], stdout=follower, stdin=subprocess.DEVNULL,
                              env={**clean, **environment}) as process:
            os.close(follower)
            output = b""
            try:
                while block := os.read(leader, 65536):
                    output += block
            except OSError:
                pass  # EIO: the other end is closed
        os.close(leader)
        assert process.returncode == 0
        return output.decode()

    def test_names_of_hostile_files_cannot_write_to_the_terminal(self):
        app = self.binary("app", [("evil\x1b[2J", "x\ty\nz", "8@%rax\x07")])
        text = usdt_list("-vv", app, check=0).stdout
        self.assertTrue(text.startswith(f"usdt:{app}:evil\\x1b\\[2J:x\\ty\\nz\t(u64)"), text)
        self.assertNotRegex(text, "[\x00-\x08\x0b-\x1f]")


class Names(tool.TempDirCase):
    def test_every_name_pastes_back(self):
        app = self.binary("my app:1[2]*.so", SITES + [("odd*", "na[m]e?", ""), ("a\\b", "c", "")])
        for line in usdt_list(app, check=0).stdout.splitlines():
            name = line.split("\t")[0]
            again = usdt_list(name, check=0).stdout
            self.assertEqual(again, line + "\n", name)

    def test_a_probe_may_be_named_in_every_usual_way(self):
        app = self.binary("app", SITES)
        for word in (f"usdt:{app}:app:stop", f"{app}:app:stop", f"u:{app}:stop", f"U:{app}:app:stop",
                     f"usdt:{self.dir}/*:a??:sto[p]", f"{self.dir}:app:stop"):
            with self.subTest(word):
                self.assertEqual([site["name"] for site in usdt_list_json(word, check=0)], ["stop"])

    def test_provider_and_name_choose_among_the_other_targets(self):
        app, other = self.binary("app", SITES), self.binary("other", [("db", "close", "")])
        names = [(site["file"], site["name"]) for site in usdt_list_json(app, other, "db:*", check=0)]
        self.assertEqual(names, [(app, "query"), (other, "close")])

    def test_a_pattern_and_its_file_do_not_list_a_probe_twice(self):
        app = self.binary("app", SITES)
        os.link(app, self.path("again"))
        self.assertEqual(len(usdt_list_json(app, f"{app}:db:*", self.path("again"), check=0)), len(SITES))

    def test_usdt_before_a_path_means_the_file(self):
        app = self.binary("app", SITES)
        self.assertEqual(len(usdt_list_json(f"usdt:{app}", check=0)), len(SITES))

    def test_a_library_is_found_by_soname_and_by_lib(self):
        self.binary("libthing.so.3", SITES, "-shared", "-Wl,-soname,libthing.so.3")
        environment = {"LD_LIBRARY_PATH": self.dir}
        for arguments in (["libthing.so.3"], ["libthing"], ["-l", "thing"], ["libthing.so.3:db:query"]):
            with self.subTest(arguments):
                sites = usdt_list_json(*arguments, env=environment, check=0)
                self.assertEqual({site["file"] for site in sites}, {self.path("libthing.so.3")})

    def test_a_program_is_found_on_path(self):
        self.binary("thing-of-test", SITES)
        sites = usdt_list_json("thing-of-test", env={"PATH": f"{self.dir}:{os.environ['PATH']}"}, check=0)
        self.assertEqual({site["file"] for site in sites}, {self.path("thing-of-test")})

    def test_a_directory_is_walked_and_other_files_are_passed_over(self):
        self.binary("a/app", SITES)
        self.binary("b/c/lib.so", [("lib", "call", "")], "-shared")
        self.write("b/script", "#!/bin/sh\n")
        self.write("b/cut-off", b"\x7fELF\x02\x01\x01")
        os.symlink(self.dir, self.path("b/loop"))
        result = usdt_list("-f", "json", self.dir, check=0)
        files = {json.loads(line)["file"] for line in result.stdout.splitlines()}
        self.assertEqual(files, {self.path("a/app"), self.path("b/c/lib.so")})
        self.assertRegex(result.stderr, "^usdt-list: passed over 1 unreadable file")


class Json(tool.TempDirCase):
    def test_a_site_has_the_keys_of_the_contract(self):
        app = self.binary("app", SITES)
        site = usdt_list_json(app, "app:stop", check=0)[0]
        self.assertEqual({key: site[key] for key in ("v", "file", "arch", "provider", "name", "args_text", "args")},
                         {"v": 1, "file": app, "arch": "x86_64", "provider": "app", "name": "stop", "args_text": "",
                          "args": []})
        for key in ("pc", "base", "semaphore", "offset"):
            self.assertRegex(site[key], "^0x[0-9a-f]+$", key)
        self.assertEqual(site["site"]["class"], "nop")
        self.assertRegex(site["site"]["bytes"], "^90")

    def test_a_site_says_what_a_hit_costs_and_why_it_is_refused(self):
        app = self.binary("app", SITES)
        self.assertEqual({site["site"]["cost"] for site in usdt_list_json(app, check=0)}, {"trap"})
        refused = usdt_list_json(self.member_of_an_archive(), check=0)[0]["site"]
        self.assertEqual(refused["cost"], "refused")
        self.assertIn("archive member a.o", refused["cost_reason"])

    def test_the_cost_of_another_machines_file_is_not_known_here(self):
        foreign = self.path("arm64")
        with open(self.binary("app", SITES), "rb") as file:
            data = bytearray(file.read())
        data[18:20] = (183).to_bytes(2, "little")  # e_machine: EM_AARCH64
        self.write("arm64", bytes(data))
        self.assertNotIn("cost", usdt_list_json(foreign, "app:stop", check=0)[0]["site"])
        self.assertIn("  cost       not known here", usdt_list("-v", foreign, "app:stop", check=0).stdout)

    def test_words_and_strings_are_those_of_readelf(self):
        app = self.binary("app", SITES)
        output = subprocess.run(["readelf", "-nW", app], capture_output=True, text=True, check=True,
                                env={**os.environ, "LC_ALL": "C"}).stdout
        note = re.compile(r"Provider: (.*)\n\s*Name: (.*)\n\s*Location: 0x0*([0-9a-f]+), Base: 0x0*([0-9a-f]+), "
                          r"Semaphore: 0x0*([0-9a-f]+)\n\s*Arguments: ?(.*)")
        expected = [(m[1], m[2], int(m[3], 16), int(m[4], 16), int(m[5], 16), m[6]) for m in note.finditer(output)]
        listed = [(s["provider"], s["name"], int(s["pc"], 16), int(s["base"], 16), int(s["semaphore"] or "0", 16),
                   s["args_text"]) for s in usdt_list_json(app, check=0)]
        self.assertEqual(len(expected), len(SITES))
        self.assertEqual(listed, expected)

    def test_an_operand_that_does_not_parse_keeps_its_place(self):
        app = self.binary("app", [("p", "n", "8@%rax 4@@!? -2@%cx")])
        arguments = usdt_list_json(app, check=0)[0]["args"]
        self.assertEqual([a["kind"] for a in arguments], ["reg", None, "reg"])
        self.assertEqual([a["readable"] for a in arguments], [True, False, True])
        self.assertTrue(arguments[1]["reason"])

    def test_constants_are_exact_to_64_bits(self):
        app = self.binary("app", [("p", "n", "8@$18446744073709551614 -8@$-9223372036854775808 1@$-1 -1@$255 4@$0x10")])
        arguments = usdt_list_json(app, check=0)[0]["args"]
        self.assertEqual([(a["value"], a["typed"]) for a in arguments],
                         [(18446744073709551614, 18446744073709551614), (-9223372036854775808, -9223372036854775808),
                          (-1, 255), (255, -1), (16, 16)])

    def test_bytes_that_are_not_utf8_still_make_valid_json(self):
        app = self.binary("app", [("p\udcff", "n", "")])
        raw = subprocess.run([tool.USDT_LIST, "-f", "json", app], capture_output=True, check=True).stdout
        self.assertEqual(json.loads(raw.decode("utf-8", "strict"))["provider"], "p\ufffd")

    def member_of_an_archive(self):
        source = tool.Binary.source(SITES)
        subprocess.run(["gcc", "-x", "assembler", "-", "-c", "-o", self.path("a.o")], input=source, text=True, check=True)
        subprocess.run(["ar", "rc", self.path("lib.a"), self.path("a.o")], check=True)
        return self.path("lib.a")

    def test_a_member_of_an_archive_is_named_behind_its_file(self):
        sites = usdt_list_json(self.member_of_an_archive(), check=0)
        self.assertEqual({site["file"] for site in sites}, {self.path("lib.a") + "(a.o)"})
        self.assertEqual({site["offset"] for site in sites}, {None})


class Hints(tool.TempDirCase):
    """What is said where nothing matches, but something may have been meant."""

    def program_of_library(self, library):
        """A program without probes that loads `library` from its own directory."""
        self.write("main.c", "int main(void) { return 0; }")
        program = self.path("program")
        subprocess.run(["gcc", "-o", program, self.path("main.c"), "-Wl,--no-as-needed", library,
                        f"-Wl,-rpath,{os.path.dirname(library)}"], check=True)
        return program

    def test_a_mistyped_probe_is_answered_by_those_near_it(self):
        app = self.binary("app", [("python", "gc__start", ""), ("python", "gc__done", ""), ("python", "line", "")])
        for word in ("python:gc_start", "python:gc-start", "pyhton:gc__start", "python:gc__strat", "python:gc_st*t",
                     "Python:gc-start"):
            with self.subTest(word):
                errors = usdt_list(f"{app}:{word}", check=1).stderr
                self.assertIn(f"did you mean usdt:{app}:python:gc__start?\n", errors)
        self.assertNotIn("did you mean", usdt_list(f"{app}:python:function__entry", check=1).stderr)

    def test_a_program_without_probes_names_those_of_its_libraries(self):
        library = self.binary("libruby.so.3", SITES, "-shared", "-Wl,-soname,libruby.so.3")
        program = self.program_of_library(library)
        for words in ([program], [f"{program}:app:start"], [program, "app:*"]):
            with self.subTest(words):
                errors = usdt_list(*words, check=1).stderr
                self.assertIn(f"{library}, which program loads, has 3 probes of providers app, db\n", errors)
                self.assertNotIn("libc.so.6", errors)

    def java(self):
        """The layout of a JDK: the launcher's library opens the virtual machine, no file's table names it."""
        os.makedirs(self.path("jdk/lib/server"))
        launcher = self.binary("jdk/lib/libjli.so", [], "-shared", "-Wl,-soname,libjli.so")
        program = self.program_of_library(launcher)
        os.makedirs(self.path("bin"))
        os.rename(program, self.path("bin/java"))
        return self.binary("jdk/lib/server/libjvm.so", [("hotspot", "gc__begin", "1@%dil")], "-shared")

    def test_the_virtual_machine_is_found_beside_the_java_command(self):
        machine = self.java()
        environment = {"PATH": f"{self.path('bin')}:{os.environ['PATH']}"}
        name = f"usdt:{machine}:hotspot:gc__begin"
        self.assertIn(name, usdt_list("libjvm.so", env=environment, check=0).stdout)
        self.assertIn(name, usdt_list("libjvm:hotspot:gc*", env=environment, check=0).stdout)
        self.assertIn(f"{machine}, which java loads, has 1 probe of provider hotspot",
                      usdt_list("java", env=environment, check=1).stderr)

    def test_a_mistyped_program_is_answered_by_those_on_path(self):
        self.binary("sqlited", SITES)
        errors = usdt_list("slqited", env={"PATH": self.dir}, check=2).stderr
        self.assertIn("'slqited'", errors)
        self.assertIn("did you mean sqlited?", errors)

    def test_a_file_at_no_usual_place_is_found_where_a_process_runs_it(self):
        notes = self.write("notes.s", tool.Binary.source(SITES).replace(".globl _start\n_start:", "notes:"))
        main = self.write("main.c", "#include <unistd.h>\nint main(void) { pause(); }")
        program = self.path("server-of-this-test")
        subprocess.run(["gcc", "-o", program, main, notes], check=True)
        self.assertIn("no running process maps one", usdt_list("server-of-this-test", check=2).stderr)
        with subprocess.Popen([program]) as process:
            try:
                while os.path.realpath(f"/proc/{process.pid}/exe") != program:
                    time.sleep(0.01)
                self.assertEqual(len(usdt_list_json("server-of-this-test", check=0)), len(SITES))
            finally:
                process.kill()

    def test_prefixes_of_other_tracers_are_answered_by_what_there_is(self):
        for word, answer in (("tracepoint:sched:sched_switch", "raw_tp:NAME"), ("profile:hz:99", "no timed samples")):
            with self.subTest(word):
                self.assertIn(answer, usdt_list(word, check=2).stderr)
        app = self.binary("app", [("profile", "n", "")])
        self.assertEqual(len(usdt_list_json(app, "profile:n", check=0)), 1)


class ExitCodes(tool.TempDirCase):
    def test_1_when_nothing_matches_and_says_what_is_there(self):
        app = self.binary("app", SITES)
        result = usdt_list(app, "app:strat", check=1)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr, f"usdt-list: no probe matches app:strat; {app} has 3 probes of providers app, db\n"
                                        f"usdt-list: did you mean usdt:{app}:app:start?\n")

    def test_1_for_a_file_without_probes(self):
        plain = self.binary("plain", [])
        self.assertEqual(usdt_list(plain, check=1).stderr,
                         f"usdt-list: {plain} has no probes; usdt-list 'uprobe:{plain}:*' lists its functions\n")

    def test_1_for_many_files_without_probes(self):
        plain = [self.binary(f"plain{n}", []) for n in range(6)]
        self.assertEqual(usdt_list(*plain, check=1).stderr,
                         "usdt-list: no probes in 6 files; usdt-list 'uprobe:FILE:*' lists functions of one\n")

    def test_1_for_a_glob_or_directory_without_binaries(self):
        self.write("text", "hello")
        for target in (self.dir, self.path("*.so")):
            self.assertIn(target, usdt_list(target, check=1).stderr)

    def test_2_for_what_cannot_be_read_while_the_rest_is_listed(self):
        app, text = self.binary("app", SITES), self.write("notes.txt", "hello")
        for bad in (self.path("missing"), text, "no-such-thing-at-all", "/dev/null"):
            with self.subTest(bad):
                result = usdt_list(bad, app, check=2)
                self.assertEqual(len(result.stdout.splitlines()), 3)
                self.assertIn(bad, result.stderr)

    def test_2_for_wrong_usage(self):
        for arguments in ([], ["--no-such-flag"], ["-f", "xml", "/"], ["-p", "x"], ["-p", "0"], ["-p"], ["-l"]):
            with self.subTest(arguments):
                result = usdt_list(*arguments, check=2)
                self.assertEqual(result.stdout, "")
                self.assertNotEqual(result.stderr, "")

    def test_wrong_usage_is_said_in_words_of_this_program(self):
        for arguments, words in ((["--no-such-flag"], "there is no option --no-such-flag"), (["-p"], "--pid takes one PID[,PID]"),
                                 (["--verb"], "there is no option --verb, but --verbose"),
                                 (["--fromat", "json"], "there is no option --fromat, but --format"),
                                 (["--verbose=x"], "--verbose takes no value")):
            with self.subTest(arguments):
                self.assertIn(words + "; see --help\n", usdt_list(*arguments, check=2).stderr)

    def test_a_syntax_error_in_a_probe_has_a_caret(self):
        lines = usdt_list("provider:", check=2).stderr.splitlines()
        self.assertEqual(lines[1:], ["  provider:", "           ^"])

    def test_help_and_version_are_no_errors(self):
        self.assertIn("usdt-trace", usdt_list("-h", check=0).stdout)
        self.assertRegex(usdt_list("-V", check=0).stdout, r"^usdt-list \d+\.\d+\.\d+\nbuilt with .*libbpf \d.*\n$")

    def test_a_reader_that_goes_away_is_no_news(self):
        app = self.binary("app", [("p", f"n{number}", "8@%rax") for number in range(3000)])
        for ignore_sigpipe in (False, True):
            with subprocess.Popen([tool.USDT_LIST, "-vv", app], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  restore_signals=not ignore_sigpipe) as process:
                process.stdout.readline()
                process.stdout.close()
                self.assertEqual(process.stderr.read(), b"")

    def test_a_full_disk_is_an_error(self):
        app = self.binary("app", SITES)
        with open("/dev/full", "wb") as full:
            result = subprocess.run([tool.USDT_LIST, app], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("No space left on device", result.stderr)


class OddFiles(tool.TempDirCase):
    def test_a_malformed_note_is_a_warning_and_its_neighbours_are_listed(self):
        app = self.binary("app", SITES)
        with open(app, "rb") as file:
            data = file.read()
        # The second note claims more bytes of description than its section has.
        second = data.index(b"stapsdt\0", data.index(b"stapsdt\0") + 1)
        broken = data[:second - 8] + (0x7fffffff).to_bytes(4, "little") + data[second - 4:]
        result = usdt_list(self.write("broken", broken), check=0)
        self.assertIn(":app:start\t(i32, u64)\t", result.stdout)
        self.assertIn(f"{self.path('broken')}: warning: ", result.stderr)

    def test_every_truncation_ends_with_an_answer(self):
        app = self.binary("app", SITES)
        with open(app, "rb") as file:
            data = file.read()
        for size in [*range(0, 200, 7), *range(200, len(data), 211)]:
            result = usdt_list("-vv", self.write("cut", data[:size]))
            self.assertIn(result.returncode, (0, 1, 2), f"cut to {size} bytes")
            self.assertTrue(result.stdout or result.stderr, f"cut to {size} bytes")


if __name__ == "__main__":
    tool.require_x86_64()
    unittest.main()
