#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The recipes about PHP: what they tell is what the scripts themselves time and count."""

import json
import re
import socket
import subprocess
import urllib.request

from recipes import Recipe, check_near
from harness import check, check_equal, free_port, main, require_file, scenario, wait_until

PHP = "/usr/bin/php8.2"
SERVED = '<?php usleep(1000 * $_GET["ms"]); echo json_encode(microtime(true) - $_SERVER["REQUEST_TIME_FLOAT"]);\n'


def answers(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@scenario
def requests_take_as_long_as_the_script_says(run):
    require_file(PHP)
    (run.dir / "index.php").write_text(SERVED)
    port = free_port()
    server = run.start(PHP, "-n", "-S", f"127.0.0.1:{port}", "-t", run.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: answers(port), "the server answers")
    recipe = Recipe(run, "Which PHP requests are slow?").start(server.pid)
    said = []
    for ms in (1, 40, 0, 90, 25):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/index.php?ms={ms}", timeout=30) as answer:
            said.append((f"/index.php?ms={ms}", json.loads(answer.read())))
    result = recipe.stop()
    slow = [(uri, took) for uri, took in said if took > 0.02]
    check_equal([span["args"] for span in result.spans], [["GET", uri] for uri, _ in slow], "slow requests")
    check(len(slow) >= 3, f"those that sleep are among them: {slow}")
    for span, (uri, took) in zip(result.spans, slow):
        check_near(span["duration_ns"] / 1e9, took, uri)


FUNCTIONS = """\
<?php
function parse($n) { usleep(300); return render($n); }
function render($n) { usleep(500); return $n; }
$took = ["parse" => 0, "render" => 0];
for ($i = 0; $i < 20; $i++) {
    $begin = hrtime(true);
    parse($i);
    $middle = hrtime(true);
    render($i);
    $took["parse"] += $middle - $begin;
    $took["render"] += hrtime(true) - $middle;
}
echo json_encode([$took]), "\\n";
"""


@scenario
def functions_take_as_long_as_the_script_says(run):
    require_file(PHP)
    (run.dir / "app.php").write_text(FUNCTIONS)
    result = Recipe(run, "In which PHP functions does the time go?").start().finish()
    [took] = json.loads(result.program_said()[-1])
    check_equal((result.counts()[("parse",)], result.counts()[("render",)]), (20, 40), "calls")
    # render is called by parse, too: there its own clock does not see it.
    check_near(result.rows[("parse",)]["sum"] / 1e9, took["parse"] / 1e9, "parse")
    check(took["render"] < result.rows[("render",)]["sum"] < took["parse"] + took["render"], f"render: {result.rows}, {took}")


EXCEPTIONS = """\
<?php
class NotFound extends RuntimeException {}
function fail($n) { if ($n % 5 == 0) throw new NotFound("a"); if ($n % 3 == 0) throw new LogicException("b"); return intdiv(1, $n % 2); }
$caught = [];
for ($i = 0; $i < 120; $i++) {
    try { fail($i); } catch (Throwable $e) { $caught[get_class($e)] = ($caught[get_class($e)] ?? 0) + 1; }
}
echo json_encode([$caught]), "\\n";
"""


@scenario
def exceptions_are_those_the_script_caught(run):
    require_file(PHP)
    (run.dir / "app.php").write_text(EXCEPTIONS)
    result = Recipe(run, "Which exceptions does a PHP program throw?").start().finish()
    [caught] = json.loads(result.program_said()[-1])
    check_equal({key[0]: count for key, count in result.counts().items()}, caught, "exceptions by class")
    check_equal(len(caught), 3, "classes")


if __name__ == "__main__":
    main()
