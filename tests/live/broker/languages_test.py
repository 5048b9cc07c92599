#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Users without privileges ask by the library for other languages: usdt-broker attaches, as it does for usdt-trace."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from support import ANNA, BERT, HERE, Service, as_user, own_program  # noqa: E402
from harness import Skip, check, check_equal, main, scenario, wait_line  # noqa: E402
from puppet import Puppet, probe_of  # noqa: E402

# Says "asked" once it has been attached, then the answers, and at the end what was said beside them.
PROGRAM = """
import json, sys, usdt
try:
    with usdt.ask(sys.argv[1], **json.loads(sys.argv[2])) as answers:
        print("asked", flush=True)
        for answer in answers:
            print(json.dumps(answer), flush=True)
except usdt.Error as error:
    sys.exit(f"{type(error).__name__}: {error}")
print(json.dumps([notice.message for notice in answers.notices()]))
"""


class Asker:
    """Python programs of users, with the package and the library where everybody may read them."""

    def __init__(self, run):
        self.run, self.library = run, run.dir / "libusdt-c.so"
        built = run.tool.parents[1] / "bindings/c/libusdt-c.so"
        if not built.exists():
            raise Skip("libusdt-c.so is not built")
        shutil.copy(built, self.library)
        shutil.copytree(HERE.parents[2] / "bindings/python/usdt", run.dir / "python/usdt", ignore=shutil.ignore_patterns("__pycache__"))
        run.dir.chmod(0o755)

    def start(self, uid, socket, probe, **options):
        environment = {**os.environ, "USDT_LIBRARY": self.library, "PYTHONPATH": self.run.dir / "python", "USDT_BROKER": socket}
        return self.run.start(*as_user(uid), sys.executable, "-B", "-c", PROGRAM, probe, json.dumps(options), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd="/", env={key: str(value) for key, value in environment.items()})


def has_failed(process, *words):
    said, why = process.communicate(timeout=60)
    check_equal((process.returncode, said), (1, ""), why)
    for word in words:
        check(word in why, why)


@scenario
def an_own_process_is_traced_with_true_values_and_it_is_said_by_whom(run):
    service, asker = Service(run), Asker(run)
    program = own_program(run, ANNA)
    traced = Puppet(run, program, argv=[*as_user(ANNA), program])
    asking = asker.start(ANNA, service.socket, probe_of(program), pids=traced.pid, print="arg0, str(arg1), arg2", max_events=300)
    check_equal(wait_line(asking).strip(), "asked", "the question")
    traced.wait_attached()
    traced.order("fire:300")
    said, why = asking.communicate(timeout=60)
    check_equal(asking.returncode, 0, why)
    *answers, notices = map(json.loads, said.splitlines())
    events = [answer["args"] for answer in answers if answer["type"] == "event"]
    check_equal([[n, last] for n, _, last in events], [[n, 3 * n] for n in range(300)], "values")
    check_equal(sum("through usdt-broker" in notice for notice in notices), 1, notices)
    check(f"uid {ANNA}" in service.said(), service.said())
    traced.wait_clean()


@scenario
def another_users_process_is_refused(run):
    service, asker = Service(run), Asker(run)
    program = own_program(run, BERT)
    traced = Puppet(run, program, argv=[*as_user(BERT), program])
    has_failed(asker.start(ANNA, service.socket, probe_of(program), pids=traced.pid), "NoPermission")
    check(not traced.attached(), "a breakpoint in another user's memory")


@scenario
def without_a_service_it_is_said_what_is_missing(run):
    service, asker = Service(run), Asker(run)  # it skips where there could be none
    program = own_program(run, ANNA)
    traced = Puppet(run, program, argv=[*as_user(ANNA), program])
    has_failed(asker.start(ANNA, run.dir / "nobody-is-here", probe_of(program), pids=traced.pid), "NoPermission", "CAP_BPF")
    check("puppet:beat" not in service.said(), service.said())


@scenario
def who_has_the_rights_does_not_ask_it(run):
    service, asker = Service(run), Asker(run)
    program = own_program(run, ANNA)
    traced = Puppet(run, program, argv=[*as_user(ANNA), program])
    environment = {**os.environ, "USDT_LIBRARY": str(asker.library), "PYTHONPATH": str(run.dir / "python"), "USDT_BROKER": str(service.socket)}
    asking = run.start(sys.executable, "-B", "-c", PROGRAM, probe_of(program), json.dumps({"pids": traced.pid, "max_events": 5}),
                       stdout=subprocess.PIPE, text=True, env=environment)
    check_equal(wait_line(asking).strip(), "asked", "the question")
    traced.order("fire:5")
    said, _ = asking.communicate(timeout=60)
    check("through usdt-broker" not in said and "puppet:beat" not in service.said(), said + service.said())


if __name__ == "__main__":
    main()
