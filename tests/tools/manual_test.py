#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages, completions and the examples of --help: each tool makes them of its own options."""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import tool

TOOLS = {"usdt-list": os.environ["USDT_LIST"], "usdt-trace": os.environ["USDT_TRACE"], "usdt-agent": os.environ["USDT_AGENT"],
         "usdt-broker": os.environ["USDT_BROKER_PROGRAM"]}


def said_by(name, *arguments, **options):
    done = subprocess.run([TOOLS[name], *arguments], capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, f"{name} {arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout


def options_of(name):
    """{"--format": (["-f"], whether it takes a value)} by --help."""
    found = {}
    for line in said_by(name, "--help", "all").splitlines():
        match = re.match(r"  (?:(-\w),)?(--[\w-]+)(?: (\S+))?(?:  |$| \.\.\.)", line)
        if match:
            found[match[2]] = ([match[1]] if match[1] else [], match[3] is not None and match[3] != "")
    return found


class Manual(unittest.TestCase):
    def test_it_has_every_option_and_everything_else_of_the_help(self):
        for name in TOOLS:
            page = said_by(name, "--manual")
            text = re.sub(r"\\f[BIR]", "", page).replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
            for long, (short, _) in options_of(name).items():
                for option in [long, *short]:
                    self.assertRegex(text, rf"(?m)^(.*, )?{re.escape(option)}\b", f"{name} {option}")
            words = re.sub(r"\s+", " ", text)
            for paragraph in re.sub(r"(?m)^  -.*\n( {4,}.*\n)*|^Usage.*\n|^  (probe|what) .*\n", "", said_by(name, "--help", "all")).splitlines():
                if paragraph.strip() and not re.fullmatch(r"\w[\w ]+:", paragraph.strip()):
                    self.assertIn(re.sub(r"\s+", " ", paragraph.removeprefix("Exit code: ").strip()), words, name)

    def test_a_reader_of_manuals_has_nothing_to_complain_of(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not installed")
        for name in TOOLS:
            page = said_by(name, "--manual")
            shown = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-cbou"], input=page, capture_output=True, text=True)
            self.assertEqual(shown.stderr, "", name)
            others = [f"{other}({8 if other == 'usdt-broker' else 1})" for other in TOOLS if other != name]
            referred_to = re.findall(r"usdt-\w+\(\d\)", shown.stdout.split("\nSEE ALSO\n")[1])
            self.assertEqual(sorted(referred_to), sorted(others), name)
            for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"):
                self.assertRegex(shown.stdout, rf"(?m)^{heading}$", name)


class Help(unittest.TestCase):
    def test_it_fits_a_terminal_of_80_columns(self):
        for name in TOOLS:
            for words in (["--help"], ["--help", "all"]):
                self.assertEqual([line for line in said_by(name, *words).splitlines() if len(line) > 80], [], name)


class Completion(unittest.TestCase):
    def bash(self, name, *words):
        """What it offers for the last word."""
        script = f'source /dev/stdin <<< "$SCRIPT"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _{name.replace("-", "_")}; printf "%s\\n" "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", script, "bash", TOOLS[name], *words], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "SCRIPT": said_by(name, "--completion", "bash"), "USDT_PRESETS": self.presets()})
        self.assertEqual(done.stderr, "", words)
        return done.stdout.split()

    def test_bash_is_offered_every_option_and_the_values_there_are(self):
        for name in TOOLS:
            self.assertEqual(set(self.bash(name, "--")), set(options_of(name)), name)
            self.assertEqual(self.bash(name, "--versi"), ["--version"])
        for name in ("usdt-list", "usdt-trace"):
            self.assertIn("--format", self.bash(name, "--form"))
            self.assertEqual(self.bash(name, "--format", ""), ["text", "json"] + (["csv", "folded", "prometheus"] if name == "usdt-trace" else []))
            self.assertEqual(self.bash(name, "--format", "=", "j"), ["json"])
            self.assertEqual(self.bash(name, "-f", "t"), ["text"])
            self.assertIn(str(os.getpid()), self.bash(name, "-p", ""))
            self.assertEqual(self.bash(name, "--args", ""), [], "anything")
        self.assertIn("per-link", self.bash("usdt-trace", "--carrier", "p"))
        self.assertIn("bash", self.bash("usdt-trace", "probe", "--", "bas"), "the command")
        self.assertIn("/usr/bin", self.bash("usdt-list", "/usr/b"), "files")

    def presets(self):
        """A directory with a preset that is called shop."""
        with tempfile.NamedTemporaryFile("w") as made:
            folder = pathlib.Path(made.name + ".d")
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        (folder / "shop.toml").write_text("".join(f"[question.{name}]\ntitle = '{name} here'\nprobes = ['a:b']\n" for name in ("orders", "prices", "stock"))
                                          + "known-as = ['shopsnoop']\n")
        return str(folder)

    # Beginnings of the word behind usdt-trace --preset, and the words that shells propose.
    PRESETS = [("sho", ["shop", "shop.orders", "shop.prices", "shop.stock", "shopsnoop"]), ("shop.", ["shop.orders", "shop.prices", "shop.stock"]),
               ("shop.orders,", ["shop.orders,prices", "shop.orders,stock"]), ("shop.orders,s", ["shop.orders,stock"]),
               ("bashr", ["bashreadline"]), ("shop,", []), ("nobody", [])]

    def test_bash_is_offered_presets_and_their_questions(self):
        for written, offered in self.PRESETS:
            self.assertEqual(sorted(self.bash("usdt-trace", "--preset", written)), offered)
        self.assertEqual(self.bash("usdt-trace", "--preset", "=", "shop.o"), ["shop.orders"])
        everything = self.bash("usdt-trace", "--preset", "")
        self.assertEqual([word for word in everything if not re.fullmatch(r"[\w+-]+", word)], [], "names alone, which fit a screen")
        self.assertLessEqual({"shop", "python", "libc"}, set(everything))

    def test_bash_is_offered_formats_and_files_behind_them(self):
        formats = re.search(r"--export .*?: ([a-z, ]+)\.", re.sub(r"\s+", " ", said_by("usdt-trace", "--help", "files")))[1].split(", ")
        self.assertEqual(self.bash("usdt-trace", "--export", ""), [f"{name}=" for name in formats])
        self.assertEqual(self.bash("usdt-trace", "--export", "=", "fl"), ["flame="])
        for before in (["--export"], ["--export", "="]):
            self.assertEqual(self.bash("usdt-trace", *before, "csv", "=", "/usr/b"), ["/usr/bin"])
        self.assertEqual(sorted(self.bash("usdt-agent", "--export", "")), ["clickhouse=", "otlp=", "prometheus="])

    def test_bash_is_offered_words_that_values_may_be_among_others(self):
        self.assertEqual(self.bash("usdt-trace", "--ustack", "="), ["dwarf", "fp"])
        self.assertEqual(self.bash("usdt-trace", "--dump-on", "s"), ["signal"])
        self.assertEqual(self.bash("usdt-trace", "--disable-feature", "uprobe_m"), ["uprobe_multi", "uprobe_multi_pid"])
        self.assertEqual(self.bash("usdt-trace", "--backend", "perf_u"), ["perf_uprobe"])
        self.assertEqual(self.bash("usdt-trace", "--help", "t"), ["tables"])
        self.assertIn("/usr/bin", self.bash("usdt-trace", "--cgroup", "/usr/b"))
        self.assertIn("/usr/bin", self.bash("usdt-agent", "--spool", "/usr/b"))

    def test_fish_is_offered_the_same(self):
        if not shutil.which("fish"):
            self.skipTest("fish is not installed")
        environment = {**os.environ, "USDT_PRESETS": self.presets(), "SCRIPT": said_by("usdt-trace", "--completion", "fish")}

        def fish(line):
            done = subprocess.run(["fish", "--no-config", "-c", f"echo $SCRIPT | source; complete -C'{TOOLS['usdt-trace']} {line}'"],
                                  capture_output=True, text=True, timeout=60, env=environment)
            self.assertEqual(done.stderr, "", line)
            return dict((*line.split("\t"), "")[:2] for line in done.stdout.splitlines())

        for written, offered in self.PRESETS:
            self.assertEqual(sorted(fish(f"--preset {written}")), offered)
        self.assertEqual(fish("--preset shop.o"), {"shop.orders": "orders here"})
        self.assertEqual(list(fish("--preset=shop.o")), ["--preset=shop.orders"])
        self.assertIn("csv=", fish("--export c"))
        self.assertIn("csv=/usr/bin/", fish("--export csv=/usr/b"))
        self.assertIn("tables", fish("--help t"))

    def test_zsh_is_offered_the_same(self):
        if not shutil.which("zsh"):
            self.skipTest("zsh is not installed")
        folder = self.presets()
        pathlib.Path(folder, "_usdt-trace").write_text(said_by("usdt-trace", "--completion", "zsh"))
        for line, offered in (("--preset shop", "shop.orders  -- orders here"), ("--preset=shop.orders,s", "shop.orders,stock  -- stock here"),
                              ("--export c", "csv="), ("--export csv=/usr/b", "bin/"), ("--disable-feature=kprobe_s", "kprobe_session")):
            self.zsh_shows(f"usdt-trace {line}", offered, folder)

    def zsh_shows(self, line, offered, folder):
        """Types a line into zsh and asks for what may follow (^D). `folder`: presets, and the function of the completion."""
        shell, terminal = pty.fork()
        if shell == 0:
            tools = os.path.dirname(TOOLS["usdt-trace"])
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**os.environ, "USDT_PRESETS": folder, "PATH": f"{tools}:{os.environ['PATH']}", "TERM": "xterm"})
        said = ""

        def wait(text):
            nonlocal said
            until = time.monotonic() + 30
            while text not in said and time.monotonic() < until:
                if select.select([terminal], [], [], 1)[0]:
                    said += re.sub(r"\x1b\[[\d?;]*[A-Za-z]", "", os.read(terminal, 65536).decode(errors="replace"))
            self.assertIn(text, said, line)

        try:
            os.write(terminal, f"PROMPT='REA''DY '; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; LISTMAX=9999\n".encode())
            wait("READY ")
            os.write(terminal, line.encode())
            wait(line)
            os.write(terminal, b"\x04")
            wait(offered)
        finally:
            os.kill(shell, signal.SIGKILL)
            os.close(terminal)
            os.waitpid(shell, 0)


    def test_the_scripts_are_what_their_shells_take(self):
        for shell in ("bash", "zsh", "fish"):
            for name in TOOLS:
                script = said_by(name, "--completion", shell)
                for long in options_of(name):
                    self.assertIn(long if shell != "fish" else f" -l {long[2:]} ", script, f"{shell} {name}")
                if shutil.which(shell):
                    judged = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=60)
                    self.assertEqual((judged.returncode, judged.stderr), (0, ""), f"{shell} {name}")

    def test_what_a_shell_says_of_an_option_is_more_than_what_it_goes_with(self):
        script = said_by("usdt-trace", "--completion", "fish")
        self.assertIn("-d 'With --record: keep only the events of the last while (10s)'", script)
        self.assertNotIn("-d 'Of spans and calls'", script)

    def test_other_shells_are_refused(self):
        for name in TOOLS:
            done = subprocess.run([TOOLS[name], "--completion", "csh"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2)
            self.assertIn("bash, zsh, fish", done.stderr)


if __name__ == "__main__":
    unittest.main()
