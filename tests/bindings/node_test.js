// SPDX-License-Identifier: BSD-2-Clause
// The Node.js package: lists probes, has probes, and traces a node that has some, against what its program says it did.
//
// Usage: node_test.js pure|live     USDT_NODE_ADDONS names the addons' directory; exit code 77: skipped
// USDT_LONG=1: 100,000 calls are traced for the account of spans, else 10,000
'use strict';

const assert = require('node:assert/strict');
const {execFileSync, spawn} = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');
const {test} = require('node:test');

const PACKAGE = path.resolve(__dirname, '../../bindings/node');
const usdt = require(PACKAGE);

const live = process.argv[2] === 'live';
if (live && process.geteuid() !== 0) {
  console.log('SKIP live: needs root (attaching uprobes)');
  process.exit(77);
}
const kind = (expected) => (error) => error instanceof usdt.UsdtError && error instanceof Error && error.name === 'UsdtError' &&
    error.kind === expected && Number.isInteger(error.errno) && error.errno < 0;

// A program that waits for a word before it does what it is for, and prints what it says of it as one line.
class Child {
  constructor(code, ...words) {
    this.process = spawn(process.execPath, ['-e', code, ...words], {
      stdio: ['pipe', 'pipe', 'inherit'], env: {...process.env, USDT_PACKAGE: PACKAGE}});
    this.lines = readline.createInterface({input: this.process.stdout})[Symbol.asyncIterator]();
    this.pid = this.process.pid;
  }
  async line() {
    return (await this.lines.next()).value;
  }
  async play() {
    this.process.stdin.end('go\n');
    return JSON.parse(await this.line());
  }
}

const WAIT = `
const usdt = require(process.env.USDT_PACKAGE);
function waitForWord(then) {
  process.stdin.once('data', () => Promise.resolve(then()).then((said) => console.log(JSON.stringify(said))));
  console.log('ready');
}`;

const SPANS = `${WAIT}
const provider = new usdt.Provider('jspans', {required: true});
const calls = Number(process.argv[1]), begins = [], ends = [];
let depth = 0;
function logged(name, action) {
  return provider.wrap((n) => {
    begins.push([name, ++depth]);
    let failed = true;
    try {
      action(n);
      failed = false;
    } finally {
      --depth;
      ends.push([name, failed]);
    }
  }, name);
}
const leaf = logged('leaf', (n) => { if (n % 10 === 3) throw new Error('three'); });
const branch = logged('branch', (n) => {
  for (let i = 0; i < n % 4; ++i) try { leaf(n + i); } catch {}
  if (n % 3 === 0 && begins.length < calls) branch(n + 1);
});
function cost(f) {
  const count = 200000;
  let best = Infinity;
  for (let round = 0; round < 5; ++round) {
    const start = process.hrtime.bigint();
    for (let i = 0; i < count; ++i) f(i);
    best = Math.min(best, Number(process.hrtime.bigint() - start) / count);
  }
  return best;
}
let sum = 0;
const plain = (i) => { sum += i; };
const costs = [cost(plain), cost(provider.wrap((i) => { sum += i; }, 'empty'))];
waitForWord(() => {
  for (let n = 1; begins.length < calls; ++n) branch(n);
  return {begins, ends, costs};
});`;

// Fifty tasks at once. Each knows where it is, which probe 'at' says right behind the beginning of a span.
const TASKS = `${WAIT}
const provider = new usdt.Provider('jtasks', {required: true});
const at = provider.probe('at', {task: 'i32', depth: 'i32'});
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const down = provider.wrap(async (task, depth) => {
  at(task, depth);
  await sleep(task % 7);
  if (depth === 4) { if (task % 2) throw new Error('odd'); return; }
  await down(task, depth + 1).catch(() => {});
  await provider.span('within', async () => { at(task, depth + 1); await sleep(0); });
  if (depth === 3) await Promise.allSettled([down(task, 4), down(task, 4)]);
}, 'down');
provider.span('within', () => {});
waitForWord(async () => {
  await Promise.all(Array.from({length: 50}, (_, task) => down(task, 1)));
  return 'done';
});`;

async function traced(patterns, child, options = {}) {
  assert.equal(await child.line(), 'ready');
  const tracer = await usdt.Tracer.start(patterns, {pids: child.pid, texts: null, ...options});
  const events = [];
  let said;
  child.play().then((answer) => { said = answer; tracer.stop(); });
  for await (const event of tracer) events.push(event);
  tracer.close();
  return {events, said, counts: tracer.counts()};
}

if (!live) {
  const python = '/usr/bin/python3.11';
  test('lists the probes that readelf sees', {skip: !fs.existsSync(python) && `${python} is not installed`}, () => {
    const notes = execFileSync('readelf', ['-nW', python], {encoding: 'utf8'});
    const expected = [...notes.matchAll(/Provider: (\S+)\s+Name: (\S+)\s+Location: (0x[0-9a-f]+),/g)].map(
        ([, provider, name, pc]) => `${provider}:${name} ${BigInt(pc)}`);
    assert.deepEqual(usdt.list(python).map((point) => `${point.provider}:${point.name} ${point.pc}`).sort(), expected.sort());
    assert.ok(expected.length > 5);
  });

  test('its own probes are listed with names and types', () => {
    const provider = new usdt.Provider('jtest', {required: true});
    provider.probe('typed', 'u8 small, i16 short, f64 whole, bool yes, str word');
    provider.probe('by_object', {item: 'str', price: 'f64'});
    const points = usdt.list([], {pids: process.pid, patterns: 'jtest:*'});
    const shown = (name) => points.find((point) => point.name === name).args.map(
        (arg) => `${arg.kind} ${arg.signed ? 'i' : 'u'}${8 * arg.bytes} ${arg.name}`);
    assert.deepEqual(shown('typed'), ['integer u8 small', 'integer i16 short', 'float u64 whole', 'boolean u8 yes', 'text u64 word']);
    assert.deepEqual(shown('by_object'), ['text u64 item', 'float u64 price']);
    provider.close();
  });

  test('says what is wrong', async () => {
    assert.throws(() => usdt.list('/no/such/file'), kind('not_found'));
    assert.throws(() => usdt.list([], {patterns: 'nonsense'}), kind('syntax'));
    assert.throws(() => usdt.list([], {patterns: 'apm:request ~~ apm:response'}), kind('not_supported'));
    await assert.rejects(usdt.Tracer.start('nobody:none', {targets: '/bin/true'}), kind('not_found'));
    await assert.rejects(usdt.Tracer.start('a:b', {texts: 'handwritten'}), TypeError);
    const provider = new usdt.Provider('jtest2', {required: true});
    provider.probe('twice');
    for (const [name, declared] of [['twice', ''], ['no space', ''], ['bad', 'float32 x']])
      assert.throws(() => provider.probe(name, declared), TypeError);
    assert.throws(() => provider.probe('one', 'i32 x')(1, 2), TypeError);
    // C would take what is before a NUL for all of it.
    for (const pid of [process.pid + 2 ** 32, process.pid + 0.5, -1, 0, NaN, String(process.pid)]) {
      assert.throws(() => usdt.list([], {pids: pid}), /pids: .* is no whole number/);
      await assert.rejects(usdt.Tracer.start('a:b', {family: [pid]}), /family: .* is no whole number/);
    }
    for (const [name, number] of [['stringSize', 2 ** 32 + 200], ['ringBytes', 2 ** 33], ['maxRate', 0.5]])
      await assert.rejects(usdt.Tracer.start('a:b', {[name]: number}), new RegExp(`${name}: .* is no whole number`));
    for (const program of [7, ['/bin/true'], Buffer.from('/bin/true')])
      assert.throws(() => usdt.list([], {program}), /program: no text/);
    assert.throws(() => usdt.list('/bin/true\0x'), TypeError);
    assert.throws(() => usdt.list([], {program: '/bin/true\0x'}), TypeError);
    assert.throws(() => new usdt.Recording('/no\0such'), TypeError);
    await assert.rejects(usdt.Tracer.start('a:b', {where: 'pid > 1\0 && x'}), TypeError);
    for (const make of [() => new usdt.Provider('a\0b'), () => provider.probe('a\0b'), () => provider.probe('a', 'i32 n\0')])
      assert.throws(make, TypeError);
    provider.close();
  });

  test('a question says what is wrong with it', async () => {
    await assert.rejects(usdt.ask('a:b', {wehre: 'arg0 > 1'}), kind('not_found'));
    await assert.rejects(usdt.ask('a:b', {maxEvents: 'many'}), kind('invalid_argument'));
    await assert.rejects(usdt.ask('a:b', {where: 'arg0 >'}), kind('syntax'));
    await assert.rejects(usdt.ask('a:b', {export: {xml: '/x'}}), kind('invalid_argument'));
    await assert.rejects(usdt.ask('a:b', {pids: -1}), TypeError);
    const answers = await usdt.ask([], {replay: '/no/such/recording'});
    await assert.rejects(answers[Symbol.asyncIterator]().next(), kind('not_found'));
    assert.ok(usdt.options()['max-events'].length > 0);
  });

  test('calls untraced do what they do without spans', async () => {
    const provider = new usdt.Provider('jtest3', {required: true});
    const probe = provider.probe('two', 'i32 a, str b');
    assert.equal(probe.enabled, false);
    probe(1, 'x');
    const owner = {base: 40, add: provider.wrap(function add(n) { return this.base + n; })};
    assert.equal(owner.add(2), 42);
    assert.deepEqual([owner.add.name, owner.add.length], ['add', 1]);
    assert.equal(await provider.span('later', async () => 7), 7);
    assert.throws(() => provider.span('now', () => { throw new RangeError('as it is'); }), RangeError);
    provider.close();
    probe(1, 'after the end');
  });
} else {
  test('values arrive as they were passed', async () => {
    const provider = new usdt.Provider('jlive', {required: true});
    const probe = provider.probe('values', 'i8 a, u64 b, f32 c, f64 d, bool e, str f, text g, bytes h');
    const passed = [[-128, 2n ** 64n - 1n, 1.5, -0.1, true, 'word', 't\u00e4xt', Buffer.from([1, 0, 255])],
                    [127, 0n, 0.25, 1e300, false, '', 'x'.repeat(50), Buffer.alloc(0)],
                    [0, 1n, -2, 0, true, null, 'last', Buffer.from('z')]];
    const tracer = await usdt.Tracer.start('jlive:values', {pids: process.pid, texts: 'described'});
    for (const values of passed) probe(...values);
    probe(128, 0, 0, 0, 0, '', '', null);
    probe('no number', 0, 0, 0, 0, '', '', null);
    assert.equal(probe.unfit, 2);
    const events = tracer.take();
    assert.deepEqual(events.map((event) => event.args.slice(0, 7)), passed.map((values) => values.slice(0, 7)));
    assert.deepEqual(events.map((event) => Number(event.args[7])), passed.map((values) => Buffer.byteLength(values[6])));
    assert.deepEqual(events.map((event) => Number(event.args[9])), passed.map((values) => values[7].length));
    assert.deepEqual(events[2].names, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'g_size', 'h', 'h_size']);
    for (let i = 0; i < 5; ++i) probe(...passed[0]);
    tracer.close();
    const {hits, delivered, discarded, lost} = tracer.counts();
    assert.deepEqual({hits, delivered, discarded, lost}, {hits: 8, delivered: 3, discarded: 5, lost: 5});
    assert.throws(() => tracer.take(), /closed/);
    provider.close();
  });

  // What passing n = -500 ... 499 comes to: remainders have the sign of n, as in C.
  const TABLE = {by: 'n % 3, str(word)', value: 'n', extremes: true, histogram: 'n'};
  function assertRows(rows) {
    const byKey = new Map();
    for (let n = -500; n < 500; ++n) {
      const key = `${(n % 3) + 0} ${n < 0 ? 'below' : 'above'}`;
      byKey.set(key, [...(byKey.get(key) ?? []), n]);
    }
    assert.deepEqual(rows.map(({keys}) => `${keys[0]} ${keys[1]}`).sort(), [...byKey.keys()].sort());
    for (const row of rows) {
      const numbers = byKey.get(`${row.keys[0]} ${row.keys[1]}`);
      assert.equal(row.count, numbers.length);
      assert.equal(row.sum, BigInt(numbers.reduce((sum, n) => sum + n, 0)));
      assert.equal(row.average, Number(row.sum) / row.count);
      assert.deepEqual([row.minimum, row.maximum], [BigInt(Math.min(...numbers)), BigInt(Math.max(...numbers))]);
      let counted = 0;
      for (const {first, last, count} of row.ranges) {
        assert.equal(count, numbers.filter((n) => first <= n && n <= last).length);
        counted += count;
      }
      assert.equal(counted, row.count);
    }
  }

  test('the kernel asks questions and fills tables', async () => {
    const provider = new usdt.Provider('jtable', {required: true});
    const probe = provider.probe('hit', 'i32 n, str word');
    const hit = () => { for (let n = -500; n < 500; ++n) probe(n, n < 0 ? 'below' : 'above'); };
    const tracer = await usdt.Tracer.start('jtable:hit', {pids: process.pid, table: TABLE});
    hit();
    assert.deepEqual(tracer.take(), []);
    assertRows(tracer.rows());
    tracer.close();
    assertRows(tracer.rows());  // outlive the trace
    assert.equal(tracer.counts().delivered, 1000);
    const asked = await usdt.Tracer.start('jtable:hit', {pids: process.pid, where: 'n >= 497'});
    hit();
    assert.deepEqual(asked.take().map(({args}) => args), [[497, 'above'], [498, 'above'], [499, 'above']]);
    asked.close();
    assert.deepEqual([asked.counts().hits, asked.counts().rejected], [1000, 997]);
    await assert.rejects(usdt.Tracer.start('jtable:hit', {pids: process.pid, where: 'n >'}), kind('syntax'));
    await assert.rejects(usdt.Tracer.start('jtable:hit', {pids: process.pid, table: {}}), kind('invalid_argument'));
    provider.close();
  });

  test('tables have floats', async () => {
    const prices = Array.from({length: 20}, (_, n) => 0.25 * (n - 8));
    const provider = new usdt.Provider('jreals', {required: true});
    const probe = provider.probe('sold', 'f64 price, f32 key');
    const table = {by: 'key', value: 'price', extremes: true, histogram: 'price', linear: [-1, 2, '0.5']};
    const tracer = await usdt.Tracer.start('jreals:sold', {pids: process.pid, table});
    prices.forEach((price) => probe(price, 1.5));
    tracer.close();
    const [{keys, count, sum, average, minimum, maximum, ranges}] = tracer.rows();
    const total = prices.reduce((a, b) => a + b);
    assert.deepEqual({keys, count, sum, average, minimum, maximum},
                     {keys: [1.5], count: 20, sum: total, average: total / 20, minimum: -2, maximum: 2.75});
    const bounds = [-Infinity, -1, -0.5, 0, 0.5, 1, 1.5, 2, Infinity];
    assert.deepEqual(ranges, bounds.slice(1).map((last, n) => (
        {first: bounds[n], last, count: prices.filter((price) => bounds[n] <= price && price < last).length})));
    for (const linear of [[0, 1, 0], [0, 1, NaN], [0, '1e3', 1], [0n, 2n ** 64n, 1n]])
      await assert.rejects(usdt.Tracer.start('jreals:sold', {table: {histogram: 'price', linear}}), TypeError);
    provider.close();
  });

  test('guards leave out what they count', async () => {
    const provider = new usdt.Provider('jguards', {required: true});
    const probe = provider.probe('hit', 'i32 n');
    const traced = async (options) => {
      const tracer = await usdt.Tracer.start('jguards:hit', {pids: process.pid, ...options});
      for (let n = 0; n < 2000; ++n) probe(n);
      const events = tracer.take();
      tracer.close();
      return {tracer, events, counts: tracer.counts()};
    };
    const sampled = await traced({sample: 5});
    assert.deepEqual(new Set(sampled.events.map(({weight}) => weight)), new Set([5]));
    assert.equal(sampled.counts.hits, 2000);
    assert.equal(sampled.counts.delivered + sampled.counts.notSampled, 2000);
    assert.ok(sampled.events.length > 280 && sampled.events.length < 520);  // six standard deviations around 400
    const held = await traced({maxRate: 10});
    assert.equal(held.counts.delivered + held.counts.heldBack, 2000);
    assert.ok(held.counts.heldBack > 0 && held.events.every(({weight}) => weight === 1));
    assert.equal(held.tracer.overhead(), null);
    const limited = await traced({maxOverhead: 0.1});
    const {allowed, ofHit, windows, lookedAt, ofProcessors} = limited.tracer.overhead();
    assert.ok(allowed === 0.1 && ofHit > 0 && windows >= 1 && lookedAt > 0 && lookedAt <= 1 && ofProcessors);
    await assert.rejects(usdt.Tracer.start('jguards:hit', {sample: 2, maxOverhead: 0.1}), kind('invalid_argument'));
    await assert.rejects(usdt.Tracer.start('jguards:hit', {sample: 2 ** 32 + 1}), TypeError);
    provider.close();
  });

  test('a recording has the events that were taken', async () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'usdt-node-'));
    const record = path.join(directory, 'hits.rec');
    const provider = new usdt.Provider('jrecord', {required: true});
    const probe = provider.probe('hit', 'i32 n, str word');
    const tracer = await usdt.Tracer.start('jrecord:hit', {pids: process.pid, record});
    for (let n = -500; n < 500; ++n) probe(n, n < 0 ? 'below' : 'above');
    const events = tracer.take();
    tracer.close();
    assert.equal(events.length, 1000);
    const recording = new usdt.Recording(record);
    // The file of the probes has a name in this process alone.
    const lasting = ({probe, ...event}) => event;
    assert.deepEqual([...recording].map(lasting), events.map(lasting));
    assert.deepEqual(recording.counts(), tracer.counts());
    assert.deepEqual([recording.info().kernel, recording.info().cut], [os.release(), null]);
    assert.ok(Math.abs(Number(events[0].wallTime / 1000000n) - Date.now()) < 60000);
    recording.close();
    assert.throws(() => recording.take(), /closed/);
    assertRows(new usdt.Recording(record, {table: TABLE}).rows());
    assert.equal(new usdt.Recording(record, {where: 'n < -490'}).take().length, 10);
    assert.throws(() => new usdt.Recording('/no/such/file'), kind('not_found'));
    await assert.rejects(usdt.Tracer.start('jrecord:hit', {record: '/no/such/directory/file'}), kind('not_found'));
    provider.close();
    fs.rmSync(directory, {recursive: true});
  });

  test('a loop that ends early leaves the rest to the next', async () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'usdt-node-'));
    const record = path.join(directory, 'early.rec');
    const provider = new usdt.Provider('jearly', {required: true});
    const probe = provider.probe('hit', 'i32 n');
    const tracer = await usdt.Tracer.start('jearly:hit', {pids: process.pid, record});
    const seen = [];
    const one = async (events) => { for await (const event of events) { seen.push(event.args[0]); break; } };
    for (let n = 0; n < 100; ++n) probe(n);
    await one(tracer);
    assert.equal(tracer.counts().delivered, 1);
    await one(tracer);
    seen.push(...tracer.take(3).map(({args}) => args[0]), ...tracer.take().map(({args}) => args[0]));
    assert.deepEqual(seen, Array.from({length: 100}, (_, n) => n));
    for (let n = 0; n < 50; ++n) probe(n);
    await one(tracer);
    tracer.close();
    const {hits, delivered, discarded} = tracer.counts();
    assert.deepEqual({hits, delivered, discarded}, {hits: 150, delivered: 101, discarded: 49});
    const recording = new usdt.Recording(record);
    seen.length = 0;
    await one(recording);
    await one(recording);
    seen.push(...recording.take(1).map(({args}) => args[0]), ...[...recording].map(({args}) => args[0]));
    assert.deepEqual(seen.slice(0, 100), Array.from({length: 100}, (_, n) => n));
    provider.close();
    fs.rmSync(directory, {recursive: true});
  });

  test('a worker that is ended in the midst of a trace leaves nothing', async () => {
    const {Worker} = require('node:worker_threads');
    const provider = new usdt.Provider('jworker', {required: true});
    const probe = provider.probe('beat', 'i32 n');
    const worker = new Worker(`
      const {parentPort} = require('node:worker_threads');
      require(${JSON.stringify(PACKAGE)}).Tracer.start('jworker:beat', {pids: process.pid}).then(async (tracer) => {
        parentPort.postMessage('traces');
        for await (const event of tracer) parentPort.postMessage(event.args[0]);
      });`, {eval: true});
    const message = () => new Promise((resolve) => worker.once('message', resolve));
    assert.equal(await message(), 'traces');
    assert.equal(probe.enabled, true);
    const heard = message();
    probe(7);
    assert.equal(await heard, 7);
    await worker.terminate();
    assert.equal(probe.enabled, false);
    provider.close();
  });

  test('spans are what the program says they were', async () => {
    const calls = process.env.USDT_LONG === '1' ? 100_000 : 10_000;
    const {events, said, counts} = await traced('jspans:*', new Child(SPANS, calls));
    assert.deepEqual([counts.hits, counts.delivered, counts.lost], [events.length, events.length, 0]);
    const depths = new Map([[0n, 0]]), begins = [], ends = [];
    for (const {name, args: [span, parent, failed]} of events) {
      if (name.endsWith('__begin')) {
        depths.set(span, depths.get(parent) + 1);
        begins.push([name.slice(0, -7), depths.get(span)]);
      } else {
        ends.push([name.slice(0, -5), failed]);
      }
    }
    assert.ok(begins.length >= calls);
    assert.deepEqual(begins, said.begins);
    assert.deepEqual(ends, said.ends);
    const [plain, wrapped] = said.costs.map((cost) => cost.toFixed(1));
    console.log(`${begins.length} wrapped calls traced; untraced, a wrapped function costs ${wrapped} ns, a plain one ${plain} ns`);
    assert.ok(said.costs[1] - said.costs[0] < 20000);
  });

  test('spans of fifty tasks nest within their own', async () => {
    const {events, said, counts} = await traced('jtasks:*', new Child(TASKS));
    assert.deepEqual([said, counts.lost], ['done', 0]);
    const places = new Map(), parents = new Map(), failed = new Map();
    events.forEach(({name, args}, i) => {
      if (name.endsWith('__begin')) {
        assert.equal(events[i + 1].name, 'at');
        places.set(args[0], events[i + 1].args);
        parents.set(args[0], args[1]);
      } else if (name.endsWith('__end')) {
        assert.ok(!failed.has(args[0]));
        failed.set(args[0], args[2]);
      }
    });
    assert.equal(places.size, 50 * (4 + 3 + 2));
    for (const [span, [task, depth]] of places) {
      assert.deepEqual(places.get(parents.get(span)) ?? [task, 0], [task, depth - 1], `parent of span ${span}`);
      assert.ok(failed.has(span), `span ${span} has an end`);
    }
    // Of an odd task the three at the bottom fail, and nothing else does.
    assert.equal([...failed.values()].filter(Boolean).length, 25 * 3);
  });
}
