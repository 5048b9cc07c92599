#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A shop with probes and spans, for `watch.py`, usdt-trace, bpftrace ...:  shop.py [ORDERS]

It waits for Enter, so that there is time to attach:  usdt-trace -p PID 'shop:*'
"""

import asyncio
import os
import random
import sys

import usdt

shop = usdt.Provider("shop")
sold = shop.probe("sold", item=str, price=float, count=int)
ITEMS = {"lamp": 49.9, "table": 230.0, "chair": 79.5}


class OutOfStock(Exception):
    pass


@shop.span("pay")
async def pay(price):
    await asyncio.sleep(random.uniform(0.001, 0.005))


@shop.span("pack")
async def pack(item, count):
    if count > 8:
        raise OutOfStock(item)
    await asyncio.sleep(0.0005 * count)


@shop.span("order")
async def order(number):
    item, count = random.choice(list(ITEMS)), number % 9 + 1
    await pay(ITEMS[item] * count)
    await pack(item, count)
    sold(item, ITEMS[item], count)


async def main(orders):
    done = await asyncio.gather(*(order(number) for number in range(orders)), return_exceptions=True)
    failed = sum(isinstance(outcome, OutOfStock) for outcome in done)
    print(f"{len(done) - failed} orders sold, {failed} failed")


if __name__ == "__main__":
    print(f"pid {os.getpid()}; Enter to open", flush=True)
    sys.stdin.readline()
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20))
