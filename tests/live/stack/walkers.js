// SPDX-License-Identifier: BSD-2-Clause
// Runs functions of JavaScript in each way there is, up to a place that a tracer looks at, and writes down what V8's
// own stack traces say there: [function, file, line] from the innermost on, without native functions. In the end it
// writes where V8 says that each function of this file is defined. argv: FILE ROUNDS. It begins once a line came on
// stdin, and ends once another one did.
"use strict";
const fs = require("node:fs");
const vm = require("node:vm");
const inspector = require("node:inspector");

const record = fs.openSync(process.argv[2], "a");
const rounds = Number(process.argv[3]);
const line = Buffer.alloc(1);
const sink = [];

function waitForLine() {
  while (fs.readSync(0, line) === 1 && line[0] !== 10);
}

let seed = 20261130;
function random(below) {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >> 8) % below;
}

Error.stackTraceLimit = 300;
function structured(_, sites) {
  return sites.filter((site) => !site.isAsync() && (site.getFileName() || site.isEval()))
      .map((site) => [nameOf(site), site.getFileName() ?? null, site.getLineNumber()]);
}
// What has no name and was made of a text is called "eval" there.
function nameOf(site) {
  const name = site.getFunctionName();
  return site.isEval() && name === "eval" ? null : name;
}

// Views are written behind the round, so that a round has nothing of theirs on its stack.
let views = [];
function look() {
  const trace = {};
  const before = Error.prepareStackTrace;
  Error.prepareStackTrace = structured;
  Error.captureStackTrace(trace, look);
  views.push(trace.stack);
  Error.prepareStackTrace = before;
  return process.ppid;
}
function place() {
  return look();
}
function pass(value) {
  return value;
}

class Ways {
  #hidden = 0;
  constructor() {
    this.names = Object.getOwnPropertyNames(Ways.prototype).filter((name) => name.startsWith("by")).sort();
  }
  step(depth) {
    if (depth <= 0) return place();
    return this[this.names[random(this.names.length)]](depth - 1);
  }
  byCall(depth) { return this.step(depth); }
  byRecursion(depth) { return depth > 0 ? this.byRecursion(depth - 1) : place(); }
  byMap(depth) { return [depth].map((each) => this.step(each)); }
  bySort(depth) {
    let first = true;
    return [2, 1].sort((a, b) => {
      if (first) this.step(depth);
      first = false;
      return a - b;
    });
  }
  byReplace(depth) { return "a".replace(/a/, () => String(this.step(depth))); }
  byReviver(depth) { return JSON.parse("1", (key, value) => this.step(depth) ?? value); }
  byGetter(depth) { return new Holder(this, depth).inner; }
  bySetter(depth) { new Holder(this, depth).outer = depth; }
  byConstructor(depth) { return new Maker(this, depth); }
  byStatic(depth) { return Maker.make(this, depth); }
  byGenerator(depth) { return [...numbers(this, depth)]; }
  byProxy(depth) {
    return new Proxy({}, { get: (target, key) => this.step(depth) }).anything;
  }
  byReflect(depth) { return Reflect.apply(this.step, this, [depth]); }
  byBound(depth) { return this.step.bind(this, depth)(); }
  byEval(depth) { return eval("(function evaluated(ways) { return ways.step(depth); })")(this); }
  byMadeFunction(depth) { return new Function("ways", "depth", "return ways.step(depth);")(this, depth); }
  byContext(depth) {
    return vm.runInThisContext("(function inContext(ways, depth) { return ways.step(depth); })",
                               { filename: "/srv/made up.js" })(this, depth);
  }
  byPrivate(depth) { return this.#secret(depth); }
  #secret(depth) {
    this.#hidden++;
    return this.step(depth);
  }
  byDefault(depth) { return ((value = this.step(depth)) => value)(); }
  byHot(depth) { return this.hot(depth, random(2) ? 30000 : 300); }
  hot(depth, times) {
    let sum = 0;
    for (let i = 0; i <= times; i++) sum += Number(warm(i === times ? this.step.bind(this, depth) : pass, i)) || 0;
    return sum;
  }
}

class Holder {
  constructor(ways, depth) {
    this.ways = ways;
    this.depth = depth;
  }
  get inner() { return this.ways.step(this.depth); }
  set outer(depth) { this.ways.step(depth); }
}
class Maker {
  constructor(ways, depth) { this.made = ways.step(depth); }
  static make(ways, depth) { return ways.step(depth); }
}
function* numbers(ways, depth) {
  yield 1;
  yield ways.step(depth);
}
// What it calls differs from call to call, so that code that was optimized for one of them stays in use.
function warm(callee, value) {
  return warmer(callee, value) + 1;
}
function warmer(callee, value) {
  const found = callee(value);
  return found === undefined ? 0 : 1;
}

function definitions() {
  const session = new inspector.Session();
  session.connect();
  session.post("Profiler.enable");
  const text = fs.readFileSync(__filename, "utf8");
  let found = [];
  session.post("Profiler.getBestEffortCoverage", (error, { result }) => {
    const own = result.find((script) => script.url.endsWith(__filename));
    const lineAt = (offset) => text.slice(0, offset).split("\n").length;
    found = own.functions.map((each) => [each.functionName, lineAt(each.ranges[0].startOffset)]);
  });
  session.disconnect();
  return found;
}

function write() {
  for (const view of views) fs.writeSync(record, JSON.stringify([process.pid, view]) + "\n");
  views = [];
}

const ways = new Ways();
async function later() {
  await null;
  return ways.step(2);
}
async function run() {
  for (let round = 0; round < rounds; round++) {
    if (round % 10 === 9)
      await later();
    else
      ways.step(3 + random(6));
    write();
    if (round % 50 === 49) await new Promise((resolve) => setImmediate(resolve));
  }
  fs.writeFileSync(process.argv[2] + ".definitions", JSON.stringify(definitions()));
  fs.writeSync(1, "\n");
  waitForLine();
}

fs.writeSync(1, "\n");
waitForLine();
run();
