#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The library's own users: the examples that trace, run on the demo program."""

import pathlib
import re
import subprocess

import puppet  # finds the harness
from harness import check, check_equal, main, scenario


def beside_tool(run, name):
    path = pathlib.Path(run.tool).parent / name
    check(path.exists(), f"{path} is not built")
    return str(path)


def trace_orders(run, example, probe, *words):
    """What `example` prints of an order service that takes 20 orders a second, by lines."""
    puppet.require_root()
    service = beside_tool(run, "order-service")
    orders = run.start(service, "4", "20")
    done = subprocess.run([beside_tool(run, example), f"usdt:{service}:orders:{probe}", *words], capture_output=True,
                          text=True, timeout=30, stdin=subprocess.DEVNULL)
    orders.wait(timeout=30)
    check_equal(done.returncode, 0, f"exit code of {example}\n{done.stderr}")
    return done.stdout.splitlines(), done.stderr


@scenario
def a_bpf_program_of_ones_own_reads_arguments_and_the_user_cookie(run):
    lines, _ = trace_orders(run, "example_04_own_program", "received")
    check(len(lines) > 10, f"only {len(lines)} records")
    names = ["Ada", "Grace", "Edsger", "Barbara"]
    previous = None
    for line in lines:
        match = re.fullmatch(r"order (\d+) by (\w+) in process (\d+) \(cookie 7\)", line)
        check(match is not None, f"unexpected record: {line}")
        order = int(match[1])
        check_equal(match[2], names[order % 4], f"customer of order {order}")
        check(previous in (None, order - 1), f"order {order} follows {previous}")
        previous = order


@scenario
def the_stock_program_hands_typed_values_to_a_callback(run):
    lines, account = trace_orders(run, "example_03_trace", "priced", "1")
    check(len(lines) > 5, f"only {len(lines)} events")
    for line in lines:
        _, name, order, total, discount = line.split()
        check_equal(name, "priced", "probe")
        items = 1 + int(order) % 3
        price = [49.90, 319.00, 129.50][int(order) % 3]
        check_equal(float(discount), 0.125 if items > 2 else 0.0, f"discount of order {order}")
        check(abs(float(total) - price * items * (1 - float(discount))) < 0.01, f"total of order {order}: {total}")
    check_equal(account.strip(), f"priced: {len(lines)} hits, 0 lost", "account")


if __name__ == "__main__":
    main()
