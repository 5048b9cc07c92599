#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The packages of Debian, each scenario in a clean system of its own: installed, used, upgraded, removed.

./run package test builds them, and those of the commit before. Environment: USDT_PACKAGES, USDT_PACKAGES_BEFORE: their directories.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("tests/programs", "packaging", "tests/vm")]

import checks  # noqa: E402
import chroot  # noqa: E402
import debs  # noqa: E402
import in_guest  # noqa: E402
from harness import (Result, Run, Skip, Tracing, check, check_equal, main, require_program, require_root, scenario, wait_line,  # noqa: E402
                     wait_until)
from in_guest import CALLS, PROGRAM  # noqa: E402

NOW = pathlib.Path(os.environ.get("USDT_PACKAGES", chroot.HOME / "debs"))
BEFORE = pathlib.Path(os.environ.get("USDT_PACKAGES_BEFORE", chroot.HOME / "before"))
RUNS = ("usdt-tools", "usdt-agent", "usdt-broker", "usdt-heap", "libusdt1.0", "libusdt-c0", "libusdt-provider1", "python3-usdt", "node-usdt", "usdt-doc")
BUILDS = ("libusdt1.0", "libusdt-c0", "libusdt-provider1", "libusdt-dev", "libusdt-provider-dev")


def files_of(directory, packages):
    """Paths of packages; one that was not built is skipped with the scenario."""
    found = {name: list(directory.glob(f"{name}_*.deb")) for name in packages}
    missing = [name for name, files in found.items() if not files]
    if missing:
        raise Skip(f"{directory} has no {', '.join(missing)}")
    return [files[0] for files in found.values()]


class System:
    """A clean system. Packages of ours are seen there as /packages and /before."""

    def __init__(self, run, base=None, name="system"):
        require_root()
        self.here = (base or chroot.base("bookworm")).copy(run.dir / name)
        self.binds = ((NOW, "/packages"), *([(BEFORE, "/before")] if BEFORE.exists() else []))

    def __call__(self, command):
        return self.here.run("sh", "-ec", command, binds=self.binds)

    def install(self, *packages, directory=NOW):
        there = "/packages" if directory == NOW else "/before"
        self.here.run(*chroot.INSTALL, *(f"{there}/{file.name}" for file in files_of(directory, packages)), binds=self.binds)

    def tool(self, run, name):
        """A program here that runs the tool there, for the harness."""
        path = run.dir / pathlib.PurePath(name).name  # of what may be a path there
        path.write_text("#!/bin/sh\nexec " + shlex.join(self.here.argv(name, binds=self.binds)) + ' "$@"\n')
        path.chmod(0o755)
        return path

    def files(self):
        """Everything that is there, but for what belongs to apt's and dpkg's own records, and to no package."""
        root = self.here.root
        found = {str(path.relative_to(root)) for path in walk(root)}
        passing = r"var/(cache|log|lib/apt|lib/dpkg)/"
        return {path for path in found if not re.match(passing, path)}

    def records(self):
        """Packages that dpkg knows, also as removed."""
        return set(self("dpkg-query -W -f '${Package}\\n'").split())


def walk(root):
    for directory, names, files in os.walk(root):
        yield from (pathlib.Path(directory) / name for name in (*names, *files))


def check_they_work(run, system, lister, tracer):
    """Lists probes of processes of that system, and traces each call of a function there."""
    system("apt-get -qq -y --no-install-recommends install python3")
    said = system(f"{lister} -p $$ || test $? = 1")  # a shell, which has none there
    check(re.search(r"dash has no probes", said), said)
    listed = system(f"python3 -c 'import os; os.system(\"{lister} -p %d\" % os.getpid())'")
    check(":python:function__entry" in listed, listed[-500:])
    (system.here.root / "calls.py").write_text(PROGRAM)
    tracing = Run(system.tool(run, tracer))
    try:
        result = tracing.trace("python:function__return", "--where", 'str(arg1) == "called"', command=["python3", "/calls.py"])
    finally:
        tracing.close()
    result.check_code(0)
    check_equal(len(result.events), CALLS, "calls of the function")
    check_equal(sum(result.summary["lost"].values()), 0, f"lost {result.summary['lost']}")


@scenario
def the_tools_alone_list_and_trace_in_a_clean_system(run):
    system = System(run)
    system("apt-get -qq -y install /packages/usdt-tools_*.deb")  # its dependencies are the distribution's
    check_they_work(run, system, "usdt-list", "usdt-trace")


@scenario
def manual_pages_and_completions_are_where_their_readers_look(run):
    system = System(run)
    system("apt-get -qq -y --no-install-recommends install bash-completion zsh fish man-db groff-base")
    system.install("usdt-tools", "usdt-agent")
    for tool in ("usdt-list", "usdt-trace", "usdt-agent"):
        check("SYNOPSIS" in system(f"man -P cat {tool}"), f"man {tool}")
        bash = system(f"bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader {tool}; complete -p {tool}'")
        check(bash.startswith("complete"), bash)
        check_equal(system(f"zsh -c 'autoload -Uz compinit; compinit -u; echo $_comps[{tool}]'").strip(), f"_{tool}", "zsh")
        check("--help" in system(f"fish -c \"complete -C '{tool} --'\""), "fish")


@scenario
def the_documentation_is_a_whole_site_with_the_scripts_of_other_packages(run):
    system = System(run)
    system("apt-get -qq -y --no-install-recommends install doc-base")
    system.install("usdt-doc")
    check("No problems found" in (said := system("install-docs --verbose --check /usr/share/doc-base/usdt-doc.usdt")), said)
    site = system.here.root / "usr/share/doc/usdt-doc/html"
    for file in ("_static/jquery.js", "_static/searchtools.js", "_static/styles/normalize.css"):
        check((site / file).is_symlink() and (site / file).exists(), f"{file} is a copy, or leads nowhere")
    looks = ("each_link_and_anchor_leads_somewhere", "nothing_is_loaded_from_outside", "the_index_has_the_words_of_the_pages",
             "the_search_finds_them_in_a_browser_without_a_server")
    said = chroot.run(["/usr/bin/python3", "-B", ROOT / "tests/site/site_test.py", "--tool", "/bin/sh", *looks],
                      env={**os.environ, "USDT_SITE": str(site)})
    check_equal(re.findall(r"^(?:SKIP|FAIL) (\w+)", said, re.M), [], said)


@scenario
def programs_of_python_and_node_trace(run):
    system = System(run)
    system.install("libusdt-c0", "libusdt-provider1", "python3-usdt", "node-usdt")
    (system.here.root / "probes.py").write_text(
        "import usdt, threading\n"
        "sold = usdt.Provider('shop', required=True).probe('sold', item=str)\n"
        "with usdt.Tracer('shop:sold', pids=__import__('os').getpid()) as tracer:\n"
        "    sold('lamp')\n"
        "    [event] = tracer.take(10, 1)\n"
        "print(event.args[0], tracer.counts().lost)\n")
    check_equal(system("python3 /probes.py").strip(), "lamp 0", "what Python traces")
    (system.here.root / "probes.js").write_text(
        "const usdt = require('usdt');\n"
        "const sold = new usdt.Provider('shop', {required: true}).probe('sold', {item: 'str'});\n"
        "(async () => {\n"
        "  const tracer = await usdt.Tracer.start('shop:sold', {pids: process.pid});\n"
        "  sold('lamp');\n"
        "  for await (const event of tracer) { console.log(event.args[0]); break; }\n"
        "  tracer.close();\n"
        "})();\n")
    check_equal(system("nodejs /probes.js").strip(), "lamp", "what Node.js traces")


@scenario
def programs_are_built_with_the_development_packages(run):
    system = System(run, debs.builder((ROOT / "debian/control").read_text()))
    system.install(*BUILDS)
    shutil.copytree(ROOT / "tests/consumer", system.here.root / "consumer")
    system("g++ -std=c++20 /consumer/consumer.cpp -o /by_pkg_config $(pkg-config --cflags --libs usdt)")
    check("NEEDED" in (dynamic := system("readelf -d /by_pkg_config")) and "[libusdt.so.1.0]" in dynamic, dynamic)
    system("cmake -G Ninja -S /consumer/find_package -B /by_cmake && ninja -C /by_cmake")
    for program in ("/by_pkg_config", "/by_cmake/consumer"):
        check("libstdcxx:throw(" in system(f"{program} /usr/lib/*/libstdc++.so.6"), f"{program} lists the probes of libstdc++")


@scenario
def the_agent_reads_its_questions_and_is_not_started(run):
    system = System(run)
    system.install("usdt-agent")
    unit = system("cat /lib/systemd/system/usdt-agent.service")
    check("ExecStart=/usr/bin/usdt-agent " in unit, unit)
    check_equal(system("ls /etc/systemd/system/multi-user.target.wants 2>/dev/null || true").count("usdt-agent"), 0, "enabled")
    (system.here.root / "etc/usdt-agent/calls.toml").write_text('[question.calls]\nprobes = ["python:gc__start"]\nby = "comm"\n')
    said = system("usdt-agent check --listen 9435 /etc/usdt-agent")
    check("calls: metrics at 9435" in said, said)
    check_equal(system("dpkg-query -W -f '${Conffiles}' usdt-agent").split()[0], "/etc/default/usdt-agent", "conffiles")


@scenario
def an_upgrade_from_the_commit_before_keeps_settings(run):
    system = System(run)
    packages = [name for name in RUNS if list(BEFORE.glob(f"{name}_*.deb"))]
    if not packages:
        raise Skip("no packages of the commit before")
    system.install(*packages, directory=BEFORE)
    version = "dpkg-query -W -f '${Version}' usdt-tools"
    before = system(version)
    settings = system.here.root / "etc/default/usdt-agent"
    settings.write_text('USDT_AGENT_OPTIONS="--verbose"\n')
    system.install(*RUNS)
    check(system(f"dpkg --compare-versions {before} lt $({version}) && echo newer").strip() == "newer", f"{before} is not older")
    check_equal(settings.read_text(), 'USDT_AGENT_OPTIONS="--verbose"\n', "settings of the administrator")
    check("usdt-list" in system("usdt-list --version"), "it runs")
    system("dpkg --audit")


@scenario
def nothing_is_left_of_packages_that_are_purged(run):
    system = System(run)
    system("apt-get -qq -y --no-install-recommends install python3 nodejs")  # of which the packages of ours are users
    for name in ("usdt-tools", "usdt-doc"):
        system(f"apt-get -qq -y --no-install-recommends install $(dpkg-deb -f -- /packages/{name}_*.deb Depends | sed 's/([^)]*)//g; s/,/ /g')")
    files, records = system.files(), system.records()
    system.install(*RUNS)
    (system.here.root / "var/lib/private/usdt-agent").mkdir(parents=True)  # its state, as systemd has it
    check(len(system.files() - files) > 50, "nothing was installed")
    system("python3 -c 'import usdt; usdt.list(\"/bin/sh\")'")
    system("apt-get -qq -y remove " + " ".join(RUNS))
    check("etc/default/usdt-agent" in system.files(), "settings are kept when a package is removed")
    system("dpkg --purge " + " ".join(RUNS))
    check_equal(sorted(system.files() - files - {"var/lib/private"}), [], "files that are left")
    check_equal(sorted(files - system.files()), [], "files of others that are gone")
    check_equal(sorted(system.records() - records), [], "packages that dpkg still knows")


@scenario
def debug_packages_name_the_lines_of_the_tools(run):
    [symbols] = files_of(NOW, ["usdt-tools-dbgsym"])
    [tools] = files_of(NOW, ["usdt-tools"])
    for deb in (symbols, tools):
        subprocess.run(["dpkg-deb", "-x", deb, run.dir / "unpacked"], check=True)
    notes = subprocess.run(["readelf", "-n", run.dir / "unpacked/usr/bin/usdt-list"], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    check((run.dir / f"unpacked/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug").exists(), f"debug file of {build_id}")


@scenario
def every_program_and_library_is_hardened(run):
    for deb in files_of(NOW, RUNS):
        unpacked = run.dir / deb.name
        subprocess.run(["dpkg-deb", "-x", deb, unpacked], check=True)
        for path in walk(unpacked):
            if not path.is_file() or path.is_symlink() or path.open("rb").read(4) != b"\x7fELF":
                continue
            dynamic = subprocess.run(["readelf", "-dlW", path], capture_output=True, text=True, check=True).stdout
            check("BIND_NOW" in dynamic and "GNU_RELRO" in dynamic, f"{path.name} is bound lazily")
            check("DYN" in dynamic or path.suffix != "", f"{path.name} is not position independent")
            check("RUNPATH" not in dynamic and "RPATH" not in dynamic, f"{path.name} has a path for libraries")
            text = path.read_bytes()
            check(b"/build/" not in text, f"{path.name} names the directory that it was built in")


# --- a user without privileges ---------------------------------------------------------------------------------------

SERVER = """
#include <iostream>
#include <string>

struct Order {
  int number;
  std::string item;
};

class Shop {
 public:
  __attribute__((noinline)) long sell(const Order& order, long price) { return sum_ += price + order.number; }

 private:
  long sum_ = 0;
};

__attribute__((noinline)) long handle(Shop& shop, int number) {
  return shop.sell({number, "lamp"}, 10L * number) + 1;
}

int main() {
  Shop shop;
  std::cout << "ready" << std::endl;
  for (int orders; std::cin >> orders;) {
    long last = 0;
    for (int number = 0; number < orders; number++) last = handle(shop, number);
    std::cout << "sold " << last << std::endl;
  }
}
"""
COLLECTOR = """
import gc, sys
gc.disable()
print("ready", flush=True)
for line in sys.stdin:
    for number in range(int(line)):
        gc.collect(number % 2)
    print("collected", flush=True)
"""


class Session:
    """A system that somebody works in: a running broker, and what its users start beside it."""

    def __init__(self, run, system):
        self.run, self.system = run, system
        self.log = run.dir / "broker.log"
        start = '. /etc/default/usdt-broker; exec usdt-broker $USDT_BROKER_OPTIONS'  # as its unit does
        with self.log.open("w") as log:
            self.broker = run.start(*system.here.argv("sh", "-c", start), stdin=subprocess.DEVNULL, stderr=log)
        listening = system.here.root / "run/usdt-broker/socket"
        wait_until(lambda: listening.exists() or self.broker.poll() is not None, "the socket of the broker")
        if self.broker.poll() is not None and "6.10" in self.log.read_text():
            raise Skip(self.log.read_text())
        # Whoever is in this system sees its mounts.
        self.inside = run.start(*system.here.argv("sleep", "infinity"))
        wait_until(lambda: os.readlink(f"/proc/{self.inside.pid}/exe").endswith("/sleep"), "a process within the system")

    def argv(self, user, *words):
        who = () if user == "root" else ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--inh-caps=-all")
        home = "/root" if user == "root" else f"/home/{user}"
        environment = [f"{name}={value}" for name, value in {**chroot.ENVIRONMENT, "HOME": home}.items()]
        return ["nsenter", f"--target={self.inside.pid}", "--mount", "--root", "--wdns=/", "env", "-i", *environment, *who,
                "sh", "-c", 'cd && exec "$@"', "sh", *map(str, words)]

    def start(self, user, *words):
        """A program that reads orders, once it is ready."""
        process = self.run.start(*self.argv(user, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        check_equal(wait_line(process), "ready", "a program's first line")
        return process

    def says(self, user, *words):
        done = subprocess.run(self.argv(user, *words), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        return Result(done.returncode, done.stdout, done.stderr)

    def trace(self, user, process, orders, *words):
        """What usdt-trace says of a process that is given orders once it is traced, and is interrupted then; and the answer."""
        tracing = Tracing(self.argv(user, "usdt-trace", "--format", "json", "-p", process.pid, *words), self.run.dir)
        self.run.adopt(tracing.process)
        wait_until(lambda: "attached " in tracing.stderr() or not tracing.alive(), "the trace is attached", timeout=60)
        process.stdin.write(f"{orders}\n".encode())
        answer = wait_line(process)
        tracing.signal(signal.SIGINT)
        return tracing.finish(), answer


def refuses(result, *words):
    check_equal((result.code, result.events), (1, []), f"what is refused: {result.describe()}")
    for word in words:
        check(word in result.stderr, f"{word!r} is not said: {result.describe()}")


@scenario
def a_user_without_privileges_traces_what_is_hers(run):
    system = System(run)
    system.install("usdt-tools", "usdt-broker")
    system("apt-get -qq -y --no-install-recommends install python3.11 g++ && useradd --create-home --uid 61001 anna")
    home = system.here.root / "home/anna"
    (home / "server.cpp").write_text(SERVER)
    (home / "collector.py").write_text(COLLECTOR)
    session = Session(run, system)
    check("CapEff:\t0000000000000000" in session.says("anna", "cat", "/proc/self/status").stdout, "she has capabilities")
    built = session.says("anna", "g++", "-g", "-O1", "server.cpp", "-o", "server")
    check_equal(built.code, 0, built.stderr)
    python, server = session.start("anna", "python3.11", "collector.py"), session.start("anna", "./server")

    listed = session.says("anna", "usdt-list", "-p", python.pid)
    check("usdt:/usr/bin/python3.11:python:gc__start" in listed.stdout, listed.describe())
    listed = session.says("anna", "usdt-list", "-p", server.pid, "uprobe:*:*sell*")
    check("/home/anna/server:Shop::sell(Order const&, long)" in listed.stdout, listed.describe())

    result, _ = session.trace("anna", python, 100, "python:gc__start")
    result.check_code(0)
    result.check_accounted(100, lost=0)
    check_equal([event["args"] for event in result.events], [[number % 2] for number in range(100)], "generations")

    result, _ = session.trace("anna", server, 100, "uprobe:server:Shop::sell", "--print", "price, order.number", "--ustack")
    result.check_accounted(100, lost=0)
    check_equal([event["args"] for event in result.events], [[10 * number, number] for number in range(100)], "values")
    for event in result.events:
        names = [frame.get("function") for frame in event["ustack"]]
        check_equal(names[:3], ["Shop::sell(Order const&, long)", "handle(Shop&, int)", "main"], "functions of the stack")
    result, answer = session.trace("anna", server, 10, "ucall:server:handle", "--print", "number, retval")
    check_equal(result.events[-1]["args"], [9, int(answer.split()[1])], "the last call, and the program's own word of it")
    check("uid 61001" in session.log.read_text(), "the broker's log names who traced")

    roots = session.start("root", "python3.11", "/home/anna/collector.py")
    refuses(session.says("anna", "usdt-trace", "-p", roots.pid, "python:gc__start"), f"process {roots.pid} is another user's")
    refuses(session.says("anna", "usdt-trace", "kprobe:vfs_read"), "of the kernel, which are everybody's, take privileges")
    session.broker.terminate()
    session.broker.wait()
    alone = session.says("anna", "usdt-trace", "-p", python.pid, "python:gc__start")
    refuses(alone, "CAP_BPF and CAP_PERFMON", "have an administrator enable usdt-broker")


# --- what is for no distribution --------------------------------------------------------------------------------------


def static_tools(system):
    """Unpacks the tarball; the directory of its programs, as the system sees it."""
    [made] = list((chroot.HOME / "static").glob("*.tar.xz")) or [None]
    if made is None:
        raise Skip("no tarball: ./run package static")
    with tarfile.open(made) as files:
        files.extractall(system.here.root / "opt")
        return "/opt/" + files.getnames()[0].split("/")[0]


def check_agent_finds_its_server(run, system, tools):
    """It sends what it knows to a host that has a name in that system; its question is about a point that is always there."""
    asked = '[question.q]\\nprobes = ["raw_tp:sched_process_exec"]\\n'
    system(f"mkdir -p /etc /q; echo 127.0.0.1 collector >/etc/hosts; printf '{asked}' >/q/q.toml")
    with socket.create_server(("127.0.0.1", 0)) as server, (run.dir / "agent.log").open("w+") as log:
        place = f"otlp=http://collector:{server.getsockname()[1]}"
        agent = run.start(*system.here.argv(f"{tools}/usdt-agent", "--export", place, "/q"), stdin=subprocess.DEVNULL, stderr=log)
        server.settimeout(30)
        try:
            connection, _ = server.accept()
        except TimeoutError:
            log.seek(0)
            check(False, f"nobody comes: {agent.poll()}, {log.read()}")
        with connection:
            asked = connection.recv(100)
            check(re.match(rb"POST /v1/(logs|metrics) HTTP/1\.1\r\n", asked), f"{asked}")


@scenario
def static_tools_run_on_debian_11(run):
    system = System(run, chroot.base("bullseye"))
    top = static_tools(system)
    check_they_work(run, system, f"{top}/bin/usdt-list", f"{top}/bin/usdt-trace")
    check_agent_finds_its_server(run, system, f"{top}/bin")


@scenario
def static_tools_trace_programs_of_debian_11_on_its_kernel(run):
    """Linux 5.10, in a guest that has nothing but BusyBox and what is traced."""
    kernel = in_guest.kernel("5.10", "amd64", "bullseye", "cloud-amd64")
    system = System(run, chroot.base("bullseye"))
    tools = system.here.root / static_tools(system)[1:] / "bin"
    probes = in_guest.build_static_probes(debs.builder((ROOT / "debian/control").read_text()), run.dir)
    shutil.copy(tools / "usdt-trace", probes.parent)
    traces = [in_guest.Python(run, system, tools), checks.StaticProbes(probes.parent)]
    in_guest.check_traces(kernel, "amd64", traces, run.dir / "out")


SHOP = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>

__attribute__((noinline)) int sell(int number, const char *item)
{
	DTRACE_PROBE2(shop, sold, number, item);
	return 2 * number;
}

int main(int argc, char **argv)
{
	int sum = 0;

	for (int number = 0; number < atoi(argv[1]); number++)
		sum += sell(number, "lamp");
	printf("sum %d\\n", sum);
	return 0;
}
"""
# A system of its own in /musl: BusyBox, which is linked statically, the loader of musl, and a program that needs it.
MUSL = """
apt-get -qq -y --no-install-recommends install busybox-static gcc libc6-dev musl-tools systemtap-sdt-dev
mkdir -p /headers/sys /musl/bin /musl/lib /musl/proc /musl/sys /musl/dev /musl/tmp
cp /usr/include/*-linux-gnu/sys/sdt*.h /headers/sys
musl-gcc -O2 -g -I/headers /shop.c -o /musl/shop
cp /bin/busybox /musl/bin
cp -L /lib/ld-musl-*.so.1 /musl/lib
chroot /musl /bin/busybox --install -s /bin
"""


@scenario
def static_tools_list_and_trace_where_there_is_no_glibc(run):
    builder = System(run, name="builder")
    (builder.here.root / "shop.c").write_text(SHOP)
    builder(MUSL)
    system = System(run, chroot.Chroot(builder.here.root / "musl"))
    tools = static_tools(system) + "/bin"
    check("/lib/ld-musl" in chroot.run(["readelf", "-lW", system.here.root / "shop"]), "the program is not linked with musl")
    check_equal(system(f"{tools}/usdt-list /shop").split()[0], "usdt:/shop:shop:sold", "its probe")
    check("int (int number, const char *item)" in system(f"{tools}/usdt-list uprobe:/shop:sell"), "its function")
    tracer = Run(system.tool(run, f"{tools}/usdt-trace"))
    try:
        events = tracer.trace("shop:sold", "--print", "arg0, str(arg1)", "--ustack", command=["/shop", CALLS])
        calls = tracer.trace("ucall:/shop:sell", "--ret-probes", "--print", "retval", command=["/shop", CALLS])
    finally:
        tracer.close()
    events.check_accounted(CALLS, lost=0)
    check_equal([event["args"] for event in events.events], [[number, "lamp"] for number in range(CALLS)], "values")
    for event in events.events:
        check_equal([frame.get("function") for frame in event["ustack"]][:2], ["sell", "main"], "functions of the stack")
    check_equal(sum(event["args"][0] for event in calls.events), int(re.search(r"sum (\d+)", calls.stdout)[1]), "sum of returns")
    check_agent_finds_its_server(run, system, tools)


@scenario
def the_list_of_what_is_in_static_tools_is_complete(run):
    system = System(run, chroot.base("bullseye"))
    top = system.here.root / static_tools(system)[1:]
    listed = json.loads((top / "usdt.spdx.json").read_text())
    check_equal(listed["spdxVersion"], "SPDX-2.3", "version")
    names = {package["name"] for package in listed["packages"]}
    check({"libbpf-dev", "libelf-dev", "libdw-dev", "libc6-dev", "zlib1g-dev"} <= names, f"{sorted(names)}")
    ids = {package["SPDXID"] for package in listed["packages"]} | {"SPDXRef-DOCUMENT"}
    for relation in listed["relationships"]:
        check({relation["spdxElementId"], relation["relatedSpdxElement"]} <= ids, f"{relation}")
    for name in names - {"usdt-tools"}:
        check((top / f"LICENSES/{name}.txt").exists(), f"the licence of {name}")


@scenario
def static_tools_load_nothing_and_name_no_directory_of_their_building(run):
    system = System(run, chroot.base("bullseye"))
    tools = sorted((system.here.root / static_tools(system)[1:] / "bin").iterdir())
    check_equal([tool.name for tool in tools], ["usdt-agent", "usdt-broker", "usdt-list", "usdt-trace"], "programs")
    for tool in tools:
        headers = chroot.run(["readelf", "-ldW", tool])
        check("INTERP" not in headers and "NEEDED" not in headers, f"{tool.name} is linked with something: {headers}")
        check(debs.PLACE not in chroot.run(["strings", "-a", tool]), f"{tool.name} names the directory that it was built in")
        check(tool.name in system(f"/{tool.relative_to(system.here.root)} --version"), f"{tool.name} --version")


USER = """import usdt

def first(target: str) -> str:
    for point in usdt.list(target):
        return point.full_name
    raise LookupError(target)

def watch(pid: int) -> list[int]:
    with usdt.Tracer("shop:sold", pids=pid) as tracer:
        return [event.pid for event in tracer.take(1.0, 1)]

print(first("/usr/lib/*/libstdc++.so.6"))
sold = usdt.Provider("shop", required=True).probe("sold", item=str)
"""


@scenario
def a_wheel_has_what_it_needs_and_types(run):
    [wheel] = list((chroot.HOME / "python").glob("*.whl")) or [None]
    if wheel is None:
        raise Skip("no wheel: ./run package wheel")
    system = System(run)
    system("apt-get -qq -y --no-install-recommends install python3-venv mypy")
    shutil.copy(wheel, system.here.root)
    system(f"python3 -m venv /venv && /venv/bin/pip install -q --no-index /{wheel.name}")
    (system.here.root / "user.py").write_text(USER)
    check(":libstdcxx:" in system("/venv/bin/python /user.py"), "the probes of libstdc++")
    check("Success" in system("mypy --strict --python-executable /venv/bin/python /user.py"), "types")
    (system.here.root / "wrong.py").write_text(USER + "first(1)\n")
    check('incompatible type "int"' in system("mypy --strict --python-executable /venv/bin/python /wrong.py || true"), "a wrong type")


@scenario
def a_package_of_npm_has_what_it_needs_and_types(run):
    [made] = list((chroot.HOME / "node").glob("*.tgz")) or [None]
    if made is None:
        raise Skip("no tarball: ./run package npm")
    require_program("npm")
    project = run.dir / "project"
    project.mkdir()
    chroot.run(["npm", "init", "-y"], cwd=project)
    chroot.run(["npm", "install", "--no-audit", "--no-fund", made, "typescript@5", "@types/node@18"], cwd=project)
    uses = "new usdt.Provider('shop', {required: true}).probe('sold', {item: 'str'});\nconsole.log(usdt.list('/usr/lib/*/libstdc++.so.6').length);\n"
    (project / "common.cjs").write_text("const usdt = require('usdt');\n" + uses)
    (project / "module.mjs").write_text("import usdt, {list} from 'usdt';\nif (usdt.list !== list) throw new Error();\n" + uses)
    (project / "user.ts").write_text("import * as usdt from 'usdt';\nconst points: usdt.Point[] = usdt.list('/bin/sh');\n"
                                     "const name: string | undefined = points[0]?.fullName;\nconsole.log(name);\n")
    (project / "wrong.ts").write_text("import * as usdt from 'usdt';\nusdt.list(1);\n")
    system = System(run)
    system("apt-get -qq -y --no-install-recommends install nodejs")
    shutil.copytree(project, system.here.root / "project", symlinks=True)
    for program in ("common.cjs", "module.mjs"):
        check(int(system(f"cd /project && nodejs {program}")) >= 3, f"{program} lists the probes of libstdc++")
    compiler = "cd /project && nodejs node_modules/typescript/bin/tsc --strict --noEmit --types node"
    system(f"{compiler} user.ts")
    check("TS2345" in system(f"{compiler} wrong.ts || true"), "a wrong type")


if __name__ == "__main__":
    main()
