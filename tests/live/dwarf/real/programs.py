# SPDX-License-Identifier: BSD-2-Clause
"""Programs of Debian's with debug information: as Debian ships it where its archive has it, else built from Debian's sources
with the flags that its packages are built with (dpkg-buildflags).

PROGRAMS maps a name to a function (run, directory) -> Program. What cannot be had raises Absent, with the reason."""

import glob
import os
import pathlib
import shlex
import shutil
import subprocess

from .against_gdb import Program

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3.11"
WORK = HERE / "work.py"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
MINUTES = 60


class Absent(Exception):
    """There is no such program to be had here."""


def done(argv, directory, minutes=20, **options):
    """Its output."""
    try:
        result = subprocess.run(argv, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                timeout=minutes * MINUTES, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Absent(str(error)) from error
    if result.returncode != 0:
        raise Absent(f"{shlex.join(map(str, argv))[:200]}: {result.stdout.strip()[-500:]}")
    return result.stdout


# What Debian's archive has.

def package(name, directory):
    """The files of a binary package, below `directory`, which it is unpacked to and not installed."""
    if not shutil.which("apt-get"):
        raise Absent("no apt-get")
    fetched = directory / "packages" / name
    if not fetched.exists():
        fetched.mkdir(parents=True)
        done(["apt-get", "-q", "download", name], fetched)
    files = list(fetched.glob("*.deb"))
    if not files:
        raise Absent(f"no package {name}")
    done(["dpkg-deb", "-x", files[0], directory / "root"], directory)
    return directory / "root"


def debug_file(program, root="/"):
    """Where Debian puts what a -dbg or -dbgsym package has of a program."""
    build = done(["readelf", "-n", program], "/").split("Build ID: ")[1].split()[0]
    return pathlib.Path(root) / "usr/lib/debug/.build-id" / build[:2] / f"{build[2:]}.debug"


def installed(file):
    """A file of this machine's whose debug information is installed, too."""
    if not os.path.exists(file):
        raise Absent(f"no {file}")
    if not debug_file(file).exists():
        raise Absent(f"no debug information of {file} is installed (its -dbgsym package, which is in an archive of its own)")
    return pathlib.Path(file)


def source_lists(directory):
    """Options with which apt-get knows Debian's sources: in lists of our own, of the archives that this machine uses, but for the
    security one, whose sources not every mirror has."""
    formatted = done(["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages"], directory)
    signed = f"[signed-by={KEYRING}] " if os.path.exists(KEYRING) else ""
    lines = {f"deb-src {signed}{' '.join(words[1:])}" for words in map(str.split, formatted.splitlines()) if words[0] == "Debian" and len(words) == 4 and "security" not in words[2]}
    if not lines:
        raise Absent("no archive of Debian's")
    (directory / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (directory / "sources.list").write_text("\n".join(sorted(lines)) + "\n")
    options = ["-q", "-o", f"Dir::State::lists={directory}/lists", "-o", f"Dir::Etc::sourcelist={directory}/sources.list", "-o", "Dir::Etc::sourceparts=/nonexistent"]
    if not any((directory / "lists").glob("*Sources*")):
        done(["apt-get", *options, "update"], directory)
    return options


def source(name, directory):
    """The unpacked sources of a package, with Debian's patches; of any version of a name that ends in '*'."""
    tree = directory / name
    if not tree.exists():
        options = source_lists(directory)
        fetched = directory / f"{name}.fetched"
        fetched.mkdir(exist_ok=True)
        done(["apt-get", *options, "source", "--download-only", "--only-source", name], fetched)
        description, = fetched.glob("*.dsc")
        done(["dpkg-source", "--no-check", "-x", description, tree], fetched)
    return tree


def flags():
    words = done(["dpkg-buildflags", "--export=cmdline"], "/")
    return dict(word.split("=", 1) for word in shlex.split(words))


def built(name, directory, commands, result):
    """The file that `commands`, a shell's, make of a package's sources."""
    tree = source(name, directory)
    if not glob.glob(str(tree / result)):
        done(["sh", "-ec", commands], tree, minutes=30, env={**os.environ, **flags(), "DEB_BUILD_OPTIONS": "nocheck"})
    found = sorted(glob.glob(str(tree / result)), key=len)
    if not found:
        raise Absent(f"no {result} was built of {name}")
    return pathlib.Path(found[-1])


# The programs.

def glibc(*_):
    return Program("glibc", installed("/lib/x86_64-linux-gnu/libc.so.6"), [PYTHON, WORK], {"PYTHONHASHSEED": "0"})


def python(_, directory):
    """The interpreter that Debian ships, with what its -dbg package has of it."""
    package("python3.11-minimal", directory)
    root = package("python3.11-dbg", directory)
    program = root / "usr/bin/python3.11"
    debug = debug_file(program, root)
    if not debug.exists():
        raise Absent(f"python3.11-dbg has no {debug.name}")
    beside = program.parent / ".debug"
    beside.mkdir(exist_ok=True)
    if not (beside / debug.name).exists():
        shutil.copy(debug, beside / debug.name)
    return Program("Python", program, [program, WORK], {"PYTHONHASHSEED": "0", "PYTHONHOME": "/usr"})


STREAMS = """
#include <fstream>
#include <iostream>
#include <iomanip>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <map>
#include <thread>
#include <filesystem>
int main() {
  std::unordered_map<std::string, double> numbers;
  std::map<int, std::string> names;
  double sum = 0;
  for (int round = 1; round < 30; ++round) {
    std::stringstream text;
    text << std::setw(round) << round << ' ' << round * 0.25 << ' ' << std::hex << round * 77 << ' ' << std::boolalpha << (round % 2 == 0)
         << ' ' << static_cast<const void*>(&sum) << ' ' << "word" << 'c' << ' ' << std::string(static_cast<std::size_t>(round), 'x') << '\\n';
    int whole = 0;
    double real = 0;
    std::string rest, line;
    text >> whole >> real >> rest;
    std::getline(text, line);
    numbers[rest + line] += real;
    names[round % 7] = line.substr(0, 3);
    sum += real + std::stod("1.5") + static_cast<double>(line.find("word"));
    try {
      static_cast<void>(line.at(static_cast<std::size_t>(round) + 1000));
    } catch (const std::out_of_range& error) {
      sum += static_cast<double>(std::string(error.what()).size());
    }
    std::ofstream("/dev/null") << line << std::flush;
    std::ifstream in("/etc/passwd");
    while (std::getline(in, line) && line.size() < 20) sum += 1;
    sum += static_cast<double>(std::filesystem::path("/usr/lib/../bin").lexically_normal().string().size());
    std::wostringstream wide;
    wide << L"wide " << round << std::locale::classic().name().c_str();
  }
  std::thread([&sum] { sum += 1; }).join();
  std::cout << sum << ' ' << numbers.size() << ' ' << names.size() << std::endl;
}
"""


def libstdcxx(run, directory):
    """The library that Debian ships for debugging, without optimisation."""
    root = package("libstdc++6-12-dbg", directory)
    library, = root.glob("usr/lib/*/debug/libstdc++.so.6")
    text = run.dir / "streams.cpp"
    text.write_text(STREAMS)
    program = run.build("streams", [text], ["-O1", "-std=c++17"], compiler="g++")
    return Program("libstdc++", library, [program], {"LD_LIBRARY_PATH": str(library.parent)})


ZIP = """
import zlib, gzip, io
for level in range(1, 10):
    data = bytes((i * i * level) % 251 for i in range(3000)) * 3
    packed = zlib.compress(data, level)
    assert zlib.decompress(packed) == data and zlib.crc32(data) and zlib.adler32(data)
    stream = zlib.compressobj(level, zlib.DEFLATED, -15, 8, level % 4)
    text = stream.compress(data[:100]) + stream.flush(zlib.Z_SYNC_FLUSH) + stream.compress(data[100:]) + stream.flush()
    assert zlib.decompressobj(-15).decompress(text, 1000)
"""


def zlib(_, directory):
    library = built("zlib", directory, "./configure --prefix=/usr && make -j2 shared", "libz.so.1.*")
    return Program("zlib", library, [PYTHON, "-c", ZIP], {"LD_LIBRARY_PATH": str(library.parent)})


XML = """
import xml.etree.ElementTree as tree
for n in range(1, 40):
    text = "<?xml version='1.0' encoding='utf-8'?><!DOCTYPE a [<!ENTITY e 'x&#233;y'><!ATTLIST b c CDATA 'd'>]><a xmlns:q='urn:q'>" + "<q:b one='1' two='&lt;&e;'>t&e;<!-- c --><?p i?><![CDATA[<>]]></q:b>" * n + "<b/></a>"
    assert len(tree.fromstring(text)) == n + 1
    try: tree.fromstring(text[:-n])
    except tree.ParseError: pass
"""


def expat(_, directory):
    library = built("expat", directory, "cd expat/lib && : > expat_config.h && cc $CFLAGS $CPPFLAGS -fPIC -shared -Wl,-soname,libexpat.so.1 -I. -DXML_NS=1 -DXML_DTD=1 -DXML_GE=1"
                    " -DXML_CONTEXT_BYTES=1024 -DHAVE_GETRANDOM=1 -DXML_DEV_URANDOM=1 -DBYTEORDER=1234 xmlparse.c xmlrole.c xmltok.c -o libexpat.so.1 $LDFLAGS", "expat/lib/libexpat.so.1")
    return Program("Expat", library, [PYTHON, "-c", XML], {"LD_LIBRARY_PATH": str(library.parent)})


LUA = """
local words = setmetatable({}, {__index = function(t, k) return k .. "!" end})
for i = 1, 60 do
  words[i] = ("%5.2f %s %d"):format(i / 3, string.rep("x", i), i):gsub("x+", function(s) return #s end)
  local ok, why = pcall(error, {code = i})
  local routine = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end)
  assert(routine(i) == i + 1 and routine(i) == 2 * i and not ok and why.code == i)
  table.sort({i, 3, i % 7, 2.5}, function(a, b) return a > b end)
  assert(load("return " .. i .. " + 0x10 // 3, #'abc'")() == i + 5)
  local packed = string.pack("<i4z", i, tostring(i))
  assert(string.unpack("<i4", packed) == i and utf8.char(i + 200) ~= "" and os.time() > 0)
end
collectgarbage()
print(#words, words.none, table.concat({1, 2, 3}, ","), math.floor(2.5), tostring(nil))
"""


def lua(run, directory):
    program = built("lua5.4", directory, "rm -f src/luac.c && cc $CFLAGS $CPPFLAGS -DLUA_USE_LINUX src/*.c -o made-lua $LDFLAGS -Wl,-E -lm -ldl", "made-lua")
    script = run.dir / "work.lua"
    script.write_text(LUA)
    return Program("Lua", program, [program, script])


BZIP = """
import bz2
for level in range(1, 10):
    data = bytes((i * level) % 251 for i in range(4000)) + b"z" * 500 * level
    assert bz2.decompress(bz2.compress(data, level)) == data
"""


def bzip2(_, directory):
    library = built("bzip2", directory, "cc $CFLAGS $CPPFLAGS -fPIC -D_FILE_OFFSET_BITS=64 -shared -Wl,-soname,libbz2.so.1.0 blocksort.c huffman.c crctable.c"
                    " randtable.c compress.c decompress.c bzlib.c -o libbz2.so.1.0 $LDFLAGS", "libbz2.so.1.0")
    return Program("bzip2", library, [PYTHON, "-c", BZIP], {"LD_PRELOAD": str(library)})


NINJA = """
flags = -a $
  -b
rule made
  command = touch $out $flags
  depfile = $out.d
  description = making $out
pool few
  depth = 2
"""


def ninja(run, directory):
    program = built("ninja-build", directory, "cmake -S . -B made -DCMAKE_BUILD_TYPE=None -DBUILD_TESTING=OFF >/dev/null && cmake --build made -j2 --target ninja", "made/ninja")
    plan = run.dir / "build.ninja"
    plan.write_text(NINJA + "".join(f"build out{i}: made out{i - 1} | in$ {i} || order\n  flags = -n{i}\n  pool = few\n" for i in range(1, 40)) + "build out0: phony\nbuild order: phony\n")
    return Program("ninja", program, [program, "-C", run.dir, "-n", "-d", "explain", "-d", "stats"])


def openssl(*_):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "/dev/null", "-subj", "/CN=x/O=y", "-text",
               "-addext", "subjectAltName=DNS:a.b"]
    return Program("OpenSSL", installed("/usr/lib/x86_64-linux-gnu/libcrypto.so.3"), command)


PHP = """
<?php
class Point implements JsonSerializable { function __construct(public int $x, public ?string $name = null) {} function jsonSerialize(): mixed { return [$this->x, $this->name]; } }
for ($i = 1; $i < 60; $i++) {
  $points = array_map(fn($n) => new Point($n, "p$n"), range(1, $i));
  usort($points, fn($a, $b) => $b->x <=> $a->x);
  $text = json_encode(["points" => $points, "half" => $i / 2]);
  $back = json_decode($text, true);
  preg_match_all("/p(\\\\d+)/", $text, $found);
  $s = sprintf("%05d %.3f %s", $i, sqrt($i), str_replace("p", "q", strtoupper($text)));
  $d = date("Y-m-d", $i * 86400) . md5($s) . implode(",", array_keys($back)) . substr($s, -3) . ucfirst(trim(" a "));
  try { intdiv($i, 0); } catch (DivisionByZeroError $e) { $d .= $e->getMessage(); }
  foreach (explode(",", $d) as $k => $v) { $seen[$v] = ($seen[$v] ?? 0) + $k; }
  $u = unserialize(serialize($seen));
}
echo strlen($d), count($u), "\\n";
"""


def php(run, _):
    program = installed("/usr/bin/php8.2")
    script = run.dir / "work.php"
    script.write_text(PHP.lstrip())
    return Program("PHP", program, [program, "-n", script])


NOT_ROOT = "#include <unistd.h>\nuid_t geteuid(void) { return getuid(); }\nuid_t getuid(void) { return 65534; }\n"


def postgresql(run, _):
    """The server as a single process, which begins, recovers nothing, and ends. It refuses to run as root; GDB is root."""
    program = installed("/usr/lib/postgresql/15/bin/postgres")
    shim = run.dir / "not_root.c"
    shim.write_text(NOT_ROOT)
    library = run.build("not_root.so", [shim], ["-shared", "-fPIC"])
    data = run.dir / "data"
    data.mkdir()
    os.chown(data, 65534, -1)
    done([program.with_name("initdb"), "-D", data, "-A", "trust", "--no-sync"], run.dir, env={**os.environ, "LD_PRELOAD": str(library), "LC_ALL": "C"})
    return Program("PostgreSQL", program, [program, "--single", "-D", data, "postgres"], {"LD_PRELOAD": str(library), "LC_ALL": "C"})


PROGRAMS = {"glibc": glibc, "Python": python, "libstdc++": libstdcxx, "PostgreSQL": postgresql, "PHP": php, "OpenSSL": openssl, "zlib": zlib, "Expat": expat, "Lua": lua,
            "bzip2": bzip2, "ninja": ninja}
