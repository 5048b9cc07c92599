#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The library's own users: the examples that trace, run on the demo program."""

import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import puppet  # finds the harness  # noqa: E402
from harness import check, check_equal, main, scenario  # noqa: E402


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


def ask_about_orders(run, example, *words, seconds=4):
    """What `example` prints, by lines, while an order service takes 20 orders a second."""
    puppet.require_root()
    orders = run.start(beside_tool(run, "order-service"), str(seconds), "20", stdout=subprocess.DEVNULL)
    done = run_example(run, example, *words)
    orders.wait(timeout=30)
    return done.stdout.splitlines(), done.stderr


def run_example(run, example, *words):
    done = subprocess.run([beside_tool(run, example), *words], capture_output=True, text=True, timeout=30, cwd=run.dir,
                          stdin=subprocess.DEVNULL)
    check_equal(done.returncode, 0, f"exit code of {example}\n{done.stderr}")
    return done


def order_probe(run, name):
    return f"usdt:{beside_tool(run, 'order-service')}:orders:{name}"


@scenario
def a_histogram_has_every_hit(run):
    lines, _ = ask_about_orders(run, "example_06_histogram", order_probe(run, "priced"), "arg1", "2")
    bars = [int(found[1]) for line in lines if (found := re.match(r"\[\d+, \d+K?\) +(\d+)", line))]
    check(sum(bars) > 10, f"hits in the ranges: {lines}")


@scenario
def latencies_of_a_span_are_by_its_keys(run):
    span = f"{order_probe(run, 'received')} ~~ {order_probe(run, 'stock')}"
    lines, account = ask_about_orders(run, "example_07_latency", span, "str(arg1)", "2")
    check(lines[0].split()[:2] == ["COUNT", "P50"], lines)
    check({"Ada", "Grace", "Edsger", "Barbara"} <= {line.split()[-1].strip('"') for line in lines}, lines)
    check(re.search(r"^\d+ hits, 0 lost$", account, re.M), account)


@scenario
def a_recording_answers_another_question(run):
    lines, _ = ask_about_orders(run, "example_08_record_and_replay", order_probe(run, "*"), "orders.rec", "2")
    shown = sum(" orders:received " in line for line in lines)
    check(shown > 10, lines)
    replayed = run_example(run, "example_08_record_and_replay", "orders.rec").stdout.splitlines()
    check(any(re.match(rf" *{shown} +\S*:orders:received$", line) for line in replayed), f"{shown} orders: {replayed}")
    check(lines[-len(replayed):] == replayed, f"{lines[-len(replayed):]} and again {replayed}")


@scenario
def a_program_that_starts_later_is_traced(run):
    puppet.require_root()
    service = shutil.copy(beside_tool(run, "order-service"), run.dir / "later-service")
    asking = run.start(beside_tool(run, "example_09_follow"), f"usdt:{service}:orders:received", "6", stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    for _ in range(2):
        subprocess.run([service, "1", "20"], check=True, stdout=subprocess.DEVNULL)
    said, arrivals = asking.communicate(timeout=30)
    check_equal(asking.returncode, 0, arrivals)
    check(len({line.split()[2] for line in said.splitlines() if " orders:received " in line}) == 2, f"of both: {said}\n{arrivals}")


@scenario
def stacks_lead_to_the_probe(run):
    lines, _ = ask_about_orders(run, "example_10_stacks", order_probe(run, "received"), "1")
    check(any(re.match(r" +main\+0x", line) for line in lines), lines)
    lines, _ = ask_about_orders(run, "example_10_stacks", order_probe(run, "received"), "1", "count")
    check(lines[0].startswith("COUNT") and int(lines[1].split()[0]) > 5, lines)


if __name__ == "__main__":
    main()
