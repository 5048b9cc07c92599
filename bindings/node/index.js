// SPDX-License-Identifier: BSD-2-Clause
// Lists and traces USDT probes of any process, functions of programs and of the kernel (docs/node.md), and makes probes of
// this process. The addons are beside this file, in build/Release, or where USDT_NODE_ADDONS says.
'use strict';

const {AsyncLocalStorage} = require('node:async_hooks');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const util = require('node:util');

const addons = {};
const built = path.join(__dirname, 'build/Release');
const directory = process.env.USDT_NODE_ADDONS || (fs.existsSync(built) ? built : __dirname);
// Each is loaded when it is first needed: to have probes takes no tracer.
const addon = (name) => (addons[name] ??= typed(require(path.join(directory, `${name}.node`))));
const tracing = () => addon('usdt_tracing');

/** What libusdt-c or libusdt-provider could not do. `kind` says what kind of failure it is ("not_found"), `errno` is that kind's
 * number, negative; of a syntax error `column` is the position in the text, and `log` all that the kernel's verifier said. */
class UsdtError extends Error {
  get name() { return 'UsdtError'; }
}

// Of errors that native code has only a number for.
const KIND_OF_ERRNO = {EPERM: 'no_permission', EACCES: 'no_permission', ENOENT: 'not_found', ENOMEM: 'no_memory', EMFILE: 'limit',
                       ENFILE: 'limit', ENOSPC: 'limit', EINVAL: 'invalid_argument', E2BIG: 'invalid_argument',
                       EEXIST: 'invalid_argument', ENOSYS: 'not_supported'};

/** Makes a UsdtError of an error of native code; a TypeError, the caller's mistake, stays one. */
function typedError(error) {
  if (!(error instanceof Error) || error instanceof UsdtError || error.constructor !== Error) return error;
  Object.setPrototypeOf(error, UsdtError.prototype);
  error.errno ??= error.message === 'usdt: no memory' ? -os.constants.errno.ENOMEM : -os.constants.errno.EINVAL;
  error.kind ??= KIND_OF_ERRNO[util.getSystemErrorName(error.errno)] ?? 'io';
  return error;
}

/** The functions of an addon, whose errors are UsdtError. `fire` has none, and has no time. */
function typed(native) {
  const wrapped = (call) => (...words) => {
    try {
      const result = call(...words);
      return result instanceof Promise ? result.catch((error) => { throw typedError(error); }) : result;
    } catch (error) {
      throw typedError(error);
    }
  };
  return Object.fromEntries(Object.entries(native).map(([name, call]) => [name, name === 'fire' ? call : wrapped(call)]));
}

const listOf = (oneOrMore) => (oneOrMore === undefined || oneOrMore === null ? [] : Array.isArray(oneOrMore) ? oneOrMore : [oneOrMore]);

/** Native code would take others modulo 2^32: those of another process. */
function whole(name, number, least = 0, most = 2 ** 32 - 1) {
  if (!Number.isInteger(number) || number < least || number > most)
    throw new TypeError(`${name}: ${number} is no whole number from ${least} to ${most}`);
  return number;
}

const processes = (name, numbers) => listOf(numbers).map((pid) => whole(name, pid, 1, 2 ** 31 - 1));

// --- finding and tracing ----------------------------------------------------------------------------------------------

function searchOf({patterns, targets, pids, family, program} = {}) {
  const only = processes('pids', pids), related = processes('family', family);
  if (typeof (program ?? '') !== 'string') throw new TypeError('program: no text');
  return {patterns: listOf(patterns), targets: listOf(targets), searched: [...only, ...related], program, pids: only,
          family: related};
}

/** The probes of files, processes or a program; with `patterns` what those mean. */
function list(targets, options = {}) {
  return tracing().list(searchOf({...options, targets}));
}

const TEXTS = {described: 1, typed: 2, likely: 4};
const OPEN = 1;
const COUNT_ONLY = 1;
const DESCENDANTS = 2;

function textBits(texts) {
  if (texts === 'auto') return 7;
  return listOf(texts).reduce((bits, word) => {
    if (!(word in TEXTS)) throw new TypeError(`texts: '${word}' is none of: auto, ${Object.keys(TEXTS).join(', ')}`);
    return bits | TEXTS[word];
  }, 0);
}

const EXTREMES = 1;
const REALS = 2;

/** Integers, and how many of their digits are behind the decimal point: [0.5, 2, 0.05] is [50, 200, 5] and 2. */
function decimalOf(bounds) {
  const texts = bounds.map(String);
  if (!texts.every((text) => /^-?\d+(\.\d+)?$/.test(text)))
    throw new TypeError(`linear: ${texts.join(', ')} are not three decimal numbers`);
  const digits = Math.max(...texts.map((text) => text.split('.')[1]?.length ?? 0));
  const numbers = texts.map((text) => {
    const [whole, behind = ''] = text.split('.');
    return BigInt(whole + behind.padEnd(digits, '0'));
  });
  if (numbers.some((number) => BigInt.asIntN(64, number) !== number))
    throw new TypeError(`linear: ${texts.join(', ')} have more digits than there is room for`);
  return {numbers, digits};
}

/** What native code takes of {where, table}. */
function questionOf({where = null, table = null}) {
  if (!table) return {where, table: null};
  const {by = null, value = null, extremes = false, histogram = null, detail = 0, linear, maxRows = 4096} = table;
  const {numbers: [from, to, step], digits} = decimalOf(linear ?? [0, 0, 0]);
  if (linear && !step) throw new TypeError('linear: ranges of the width 0');
  const flags = REALS | (extremes ? EXTREMES : 0);
  return {where, table: {by, value, flags, histogram, detail: whole('detail', detail), maxRows: whole('maxRows', maxRows), digits,
                         from, to, step}};
}

/** Rows with what the table asks for, and no more. */
function rowsOf(rows, {value = null, extremes = false}) {
  return rows.map(({keys, count, sum, minimum, maximum, ranges}) => ({
    keys, count, ranges, sum: value ? sum : null, average: value ? Number(sum) / count : null,
    minimum: extremes ? minimum : null, maximum: extremes ? maximum : null}));
}

/** Traces probes, functions and points of the kernel: `for await (const event of tracer)` until stop(). */
class Tracer {
  #handle = null;
  #left = [];  // of iterations that ended early: who asks next has them
  #names = new Map();  // of arguments, by site
  #stopping = false;
  #detached = false;
  #counts = null;
  #notices = [];
  #table;
  #rows = [];
  #limited;
  #overhead = null;

  constructor(handle, table, limited) {
    this.#handle = handle;
    this.#table = table;
    this.#limited = limited;
  }

  /** Attaches. Errors: UsdtError. */
  static async start(patterns, options = {}) {
    const {texts = 'auto', textArgs, values, openStructs = false, stringSize = 200, ringBytes = 32 << 20, countOnly = false,
           descendants = false, record = null, sample = 1, maxRate = 0, maxOverhead = 0} = options;
    for (const [name, number] of Object.entries({sample, maxRate, stringSize, ringBytes})) whole(name, number);
    if (sample < 1) throw new TypeError('sample: one in how many hits');
    return new Tracer(await tracing().start({
      ...questionOf(options), record,
      ...searchOf({...options, patterns}), texts: textBits(texts), textArgs: listOf(textArgs), values: listOf(values),
      planFlags: openStructs ? OPEN : 0, traceFlags: (countOnly ? COUNT_ONLY : 0) | (descendants ? DESCENDANTS : 0),
      stringSize, ringBytes, sample, maxRate, maxOverhead}), options.table, maxOverhead !== 0);
  }

  /** The events that are there, at most `limit` (0: all), without waiting. */
  take(limit = 0) {
    const handle = this.#open();
    if (this.#left.length > 0) return this.#left.splice(0, limit || this.#left.length);
    const events = tracing().take(handle, limit);
    for (const event of events) {
      if (event.names) this.#names.set(event.site, event.names);
      else event.names = this.#names.get(event.site);
    }
    return events;
  }

  async *[Symbol.asyncIterator]() {
    while (this.#handle) {
      this.#left = this.take(1024);
      const none = this.#left.length === 0;
      while (this.#left.length > 0) yield this.#left.shift();
      if (this.#stopping && this.#detached && none) return;
      if (this.#stopping && !this.#detached) this.detach();
      else if (none) await tracing().readable(this.#open());
      else await new Promise(setImmediate);  // others have their turn
    }
  }

  /** Ends iterations, once the events that were recorded before are out. */
  stop() {
    this.#stopping = true;
    if (this.#handle) tracing().wake(this.#handle);
  }

  /** No hit from here on; events that were recorded can still be taken. */
  detach() {
    tracing().detach(this.#open());
    this.#detached = true;
  }

  /** Detaches; what nobody took counts as discarded. counts(), rows() and notices() stay. Throws what went wrong with
   * `record`. */
  close() {
    const handle = this.#handle;
    if (!handle) return;
    tracing().discard(handle);
    this.#notices = this.notices();
    this.#counts = this.counts();
    this.#counts.discarded += this.#left.length;
    this.#counts.lost += this.#left.length;
    this.#left = [];
    this.#overhead = this.overhead();
    if (this.#table) this.#rows = this.rows();
    this.#handle = null;
    tracing().close(handle);
  }

  /** Those of `table` as they are now, in the order of their keys; exact once the trace is over. */
  rows() {
    return this.#handle ? rowsOf(tracing().rows(this.#handle), this.#table ?? {}) : this.#rows;
  }

  /** What `maxOverhead` came to; null: none was given. */
  overhead() {
    return this.#handle && this.#limited ? tracing().overhead(this.#handle) : this.#overhead;
  }

  /** hits === delivered + lost + rejected + undecided + notSampled + heldBack, once the trace is over. */
  counts() {
    if (!this.#handle) return this.#counts;
    const counts = tracing().counts(this.#handle);
    counts.delivered -= this.#left.length;  // nobody was handed them yet
    return counts;
  }

  /** Points that were not attached, and files that changed meanwhile, in words. */
  notices() {
    return this.#handle ? tracing().notices(this.#handle) : this.#notices;
  }

  #open() {
    if (!this.#handle) throw typedError(new Error('usdt: the tracer is closed'));
    return this.#handle;
  }
}

/** Events of a trace that was recorded (`usdt-trace --record`, or `record` of a Tracer): `for (const event of recording)`. */
class Recording {
  #handle;
  #table;
  #left = [];  // of iterations that ended early

  /** `where`: only events for which it holds; `table`: rows() instead of events. */
  constructor(file, options = {}) {
    this.#table = options.table;
    this.#handle = tracing().openRecording(String(file), questionOf(options));
  }

  /** The next events, at most `limit` (0: all that are left); none: there are no more. */
  take(limit = 0) {
    if (this.#left.length > 0) return this.#left.splice(0, limit || this.#left.length);
    return tracing().recordingTake(this.#handle, limit);
  }

  *[Symbol.iterator]() {
    while ((this.#left = this.take(1024)).length > 0)
      while (this.#left.length > 0) yield this.#left.shift();
  }

  /** Those of `table`, over all events of the file. */
  rows() {
    return rowsOf(tracing().recordingRows(this.#handle), this.#table ?? {});
  }

  /** What became of all hits when it was recorded. */
  counts() {
    return tracing().recordingCounts(this.#handle);
  }

  /** Who made it, where, and whether it is `cut`. */
  info() {
    return tracing().recordingInfo(this.#handle);
  }

  close() {
    this.#left = [];
    tracing().recordingClose(this.#handle);
  }
}

/** The answers to a question, each an object as docs/json.md describes it: `for await (const answer of answers)` gives them as they
 * come; the last one is the account of all hits (type 'summary'). */
class Answers {
  #handle;
  #rest = '';
  #left = [];
  #over = false;
  #notices = [];

  constructor(handle) {
    this.#handle = handle;
  }

  async *[Symbol.asyncIterator]() {
    while (!this.#over || this.#left.length > 0) {
      while (this.#left.length > 0) yield JSON.parse(this.#left.shift());
      if (!this.#over) await this.#step();
    }
  }

  /** Asks for the end: what has come by then, and the account, are still answers. */
  stop() {
    if (!this.#over) tracing().askStop(this.#handle);
  }

  /** Ends it; the files of `export` and `record` get all that has come. Not while an iteration waits: stop() ends that. */
  async close() {
    if (this.#over) return;
    await this.#finish();
    this.#left = [];
  }

  /** What there was to say beside the answers: what was attached, what is followed or waited for. */
  notices() {
    return this.#over ? this.#notices : tracing().askNotices(this.#handle);
  }

  async #step() {
    const {text, more} = await tracing().askStep(this.#handle);
    this.#keep(text);
    if (!more) await this.#finish();
  }

  async #finish() {
    this.#over = true;
    try {
      this.#keep((await tracing().askFinish(this.#handle)).text);
    } finally {
      this.#notices = tracing().askNotices(this.#handle);
      tracing().askClose(this.#handle);
    }
  }

  #keep(text) {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop();
    this.#left.push(...lines);
  }
}

/** "maxEvents" is the option "max-events". */
const optionName = (name) => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** Options as [name, value] pairs, a value for each time the option is given. */
function settingsOf(options) {
  return Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined || value === null || value === false) return [];
    if (value === true) return [[optionName(name), null]];
    return listOf(value).map((each) => [optionName(name), String(each)]);
  });
}

/** Asks what usdt-trace is asked, by the same names: `usdt-trace 'python:gc__*' --by pid --max-rows 9` is
 * `await usdt.ask('python:gc__*', {by: 'pid', maxRows: 9})`. Flags are true; what may be given again is an array. `pids`: only hits
 * of these processes. `export`: {json: 'a.json', csv: 'a.csv'} are files that get the answers, too. `listen`: a port, or
 * 'ADDRESS:PORT', where metrics are served meanwhile, as /metrics. Returns when it is attached. */
async function ask(points, {pids, export: files = {}, listen, ...options} = {}) {
  const numbers = processes('pids', pids);
  const settings = settingsOf(numbers.length > 0 ? {...options, pid: numbers.join(',')} : options);
  const handle = tracing().ask(listOf(points).map((point) => [String(point), null]), settings,
                               Object.entries(files).map(([format, file]) => [format, String(file)]),
                               listen === undefined ? [] : [[String(listen), null]]);
  await tracing().askBegin(handle);
  return new Answers(handle);
}

/** What ask() takes, by the names that usdt-trace has for it, and what each does. */
const options = () => tracing().askOptions();

/** Throws, naming what this process lacks to trace. */
const checkPrivilege = () => tracing().checkPrivilege();

// --- probes of this process -------------------------------------------------------------------------------------------

// In the order of src/provider.c.
const KINDS = ['i8', 'i16', 'i32', 'i64', 'u8', 'u16', 'u32', 'u64', 'bool', 'f32', 'f64', 'ptr', 'str', 'text', 'bytes'];
const CLOSE_FILES = 1;
const USAGE = new Set([-22, -7, -17]);  // EINVAL, E2BIG, EEXIST: the caller's mistakes

const kindsOf = (declaration) => Uint8Array.from(
    declaration.split(',').filter((part) => part.trim()), (part) => Math.max(0, KINDS.indexOf(part.trim().split(/\s/)[0])));

const declarationOf = (declared) => (typeof declared === 'string' ? declared :
    Object.entries(declared).map(([name, type]) => `${type} ${name}`).join(', '));

/** Makes the function that fires a probe. */
function probeOf(name, declaration, handle, semaphore) {
  const kinds = kindsOf(declaration);
  const probe = (...values) => {
    if (values.length !== kinds.length) throw new TypeError(`${name} takes ${kinds.length} arguments, not ${values.length}`);
    if (semaphore[0] !== 0) fire(values);
  };
  const fire = (values) => {
    if (!handle || addon('usdt_provider').fire(handle, ...values)) return;
    // Tracing is not to change what a program does: no exception.
    if (probe.unfit++ === 0) process.emitWarning(`${name}(${declaration}) was not fired: a value does not fit`);
  };
  Object.defineProperty(probe, 'enabled', {get: () => semaphore[0] !== 0});
  Object.defineProperty(probe, 'name', {value: name});
  return Object.assign(probe, {unfit: 0, fire, semaphore});
}

const current = new AsyncLocalStorage();
let spans = 0;

/** Probes of this process under one provider name, which every tool sees by the process's number. */
class Provider {
  #handle = null;
  #required;
  #pairs = new Map();
  #batches = 0;

  constructor(name, {required = false, keepFiles = true} = {}) {
    this.name = name;
    this.error = null;  // why there are no probes; null: there are
    this.#required = required;
    this.#attempt(name, () => { this.#handle = addon('usdt_provider').create(name, keepFiles ? 0 : CLOSE_FILES); });
  }

  /** A function that fires the probe: `probe("sold", "str item, f64 price")` or `probe("sold", {item: "str", price: "f64"})`. */
  probe(name, declared = '') {
    const declaration = declarationOf(declared);
    const full = `${this.name}:${name}`;
    let made = [null, new Uint16Array(1)];
    if (this.#handle) {
      this.#attempt(`${full}(${declaration})`, () => {
        made = addon('usdt_provider').add(this.#handle, name, declaration, kindsOf(declaration));
        if (this.#batches === 0) addon('usdt_provider').publish(this.#handle);
      });
    }
    return probeOf(full, declaration, ...made);
  }

  /** Tools see the probes that `make` makes when it returns: many are cheaper together, in one file. */
  batch(make) {
    this.#batches++;
    try {
      return make();
    } finally {
      if (--this.#batches === 0 && this.#handle)
        this.#attempt(this.name, () => addon('usdt_provider').publish(this.#handle));
    }
  }

  /**
   * `action` in a span: NAME__begin (u64 span, u64 parent) before it, NAME__end (u64 span, u64 parent, bool failed) when it
   * returns, or when the promise it returns is settled. `parent` is the span around it, by AsyncLocalStorage; 0: none.
   */
  span(name, action) {
    const pair = this.#pair(name);
    return pair.begin.semaphore[0] === 0 && pair.end.semaphore[0] === 0 ? action() : inSpan(pair, action);
  }

  /** A function that does what `method` does, each call in a span; its name is the function's unless one is given. */
  wrap(method, name = method.name) {
    const pair = this.#pair(name);
    const begun = pair.begin.semaphore, ended = pair.end.semaphore;
    const wrapped = function(...values) {
      if (begun[0] === 0 && ended[0] === 0) return method.apply(this, values);
      return inSpan(pair, () => method.apply(this, values));
    };
    return Object.defineProperties(wrapped, {name: {value: method.name}, length: {value: method.length}});
  }

  /** Ends all probes: firing them does nothing from now on. */
  close() {
    if (this.#handle) addon('usdt_provider').retire(this.#handle);
    this.#handle = null;
  }

  #pair(name) {
    let pair = this.#pairs.get(name);
    if (!pair) {
      pair = this.batch(() => ({begin: this.probe(`${name}__begin`, 'u64 span, u64 parent'),
                                end: this.probe(`${name}__end`, 'u64 span, u64 parent, bool failed')}));
      this.#pairs.set(name, pair);
    }
    return pair;
  }

  // Where the library is not there or the system refuses, nothing is traced and nothing else changes.
  #attempt(what, action) {
    try {
      action();
    } catch (error) {
      if (USAGE.has(error.errno)) throw new TypeError(`${what}: no name or declaration of a probe, or there is one: ${error.message}`);
      this.error = error;
      if (this.#required) throw error;
    }
  }
}

function inSpan(pair, action) {
  const span = ++spans, parent = current.getStore() ?? 0;
  const end = (failed) => pair.end.fire([span, parent, failed]);
  pair.begin.fire([span, parent]);
  let result;
  try {
    result = current.run(span, action);
  } catch (error) {
    end(true);
    throw error;
  }
  if (typeof result?.then !== 'function') {
    end(false);
    return result;
  }
  return result.then((value) => (end(false), value), (error) => { end(true); throw error; });
}

module.exports = {ask, options, Answers, list, Tracer, Recording, checkPrivilege, Provider, UsdtError};
