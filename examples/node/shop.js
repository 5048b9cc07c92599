#!/usr/bin/env node
// SPDX-License-Identifier: BSD-2-Clause
// A shop with probes and spans, for watch.js, usdt-trace, bpftrace ...:  shop.js [ORDERS]
//
// It waits for Enter, so that there is time to attach:  usdt-trace -p PID 'shop:*'
'use strict';

const {once} = require('node:events');
const {setTimeout: sleep} = require('node:timers/promises');
const usdt = require('usdt');

const shop = new usdt.Provider('shop');
const sold = shop.probe('sold', {item: 'str', price: 'f64', count: 'i32'});
const ITEMS = Object.entries({lamp: 49.9, table: 230.0, chair: 79.5});

class OutOfStock extends Error {}

const pay = shop.wrap(async function pay(_price) {
  await sleep(1 + Math.random() * 4);
});

const pack = shop.wrap(async function pack(item, count) {
  if (count > 8) throw new OutOfStock(item);
  await sleep(count / 2);
});

const order = shop.wrap(async function order(number) {
  const [item, price] = ITEMS[Math.floor(Math.random() * ITEMS.length)], count = number % 9 + 1;
  await pay(price * count);
  await pack(item, count);
  sold(item, price, count);
});

async function main(orders) {
  console.log(`pid ${process.pid}; Enter to open`);
  await once(process.stdin, 'data');
  process.stdin.unref();
  const done = await Promise.allSettled(Array.from({length: orders}, (_, number) => order(number)));
  const failed = done.filter(({reason}) => reason instanceof OutOfStock).length;
  console.log(`${done.length - failed} orders sold, ${failed} failed`);
}

main(Number(process.argv[2] ?? 20));
