// SPDX-License-Identifier: BSD-2-Clause
type OneOrMore<T> = T | readonly T[];

/** Integers of 8 bytes are bigint, shorter ones number; null: a null pointer where there should be text; Buffer: text that is
 * not UTF-8. */
export type Value = number | bigint | boolean | string | Buffer | null | {unreadable: string};

export type ErrorKind =
    'invalid_argument' | 'syntax' | 'not_found' | 'no_permission' | 'not_supported' | 'malformed' | 'changed' | 'limit' | 'io' |
    'type_mismatch' | 'stopped' | 'verifier' | 'no_memory' | 'internal';

/** What the libraries could not do. The caller's mistakes in JavaScript (a number that is none) are TypeError. */
export class UsdtError extends Error {
  readonly name: 'UsdtError';
  readonly kind: ErrorKind;
  /** That kind's number, negative, as of other errors of the system. */
  readonly errno: number;
  /** Of 'syntax': the position in the text. */
  readonly column?: number;
  /** Of 'verifier': all that the kernel's verifier said. */
  readonly log?: string;
}

export interface Arg {
  kind: 'integer' | 'float' | 'boolean' | 'enum' | 'pointer' | 'text' | 'struct' | 'array' | 'unknown';
  bytes: number;
  signed: boolean;
  result: boolean;
  name: string | null;
  type: string | null;
  source: string | null;
  /** Why no value of it can be had; null: one can. */
  refused: string | null;
}

export interface Point {
  kind: 'probe' | 'function' | 'kernel' | 'unknown';
  /** As a pattern it means exactly this probe or function. */
  fullName: string;
  provider: string;
  name: string;
  file: string | null;
  machine: string;
  pc: bigint;
  hasSemaphore: boolean;
  refused: string | null;
  args: Arg[];
}

export interface Search {
  patterns?: OneOrMore<string>;
  pids?: OneOrMore<number>;
  program?: string;
}

export function list(targets?: OneOrMore<string>, options?: Search): Point[];

export interface Event {
  probe: string;
  provider: string;
  name: string;
  args: Value[];
  names: (string | null)[];
  /** The return value, where the point has one. */
  result?: Value;
  /** What TraceOptions.values asked for, by its text. */
  values?: Record<string, Value>;
  /** Positions of arguments whose texts were cut. */
  truncated?: number[];
  /** CLOCK_MONOTONIC, ns: that of process.hrtime.bigint(). */
  time: bigint;
  /** The time of day, ns since 1970. */
  wallTime: bigint;
  /** Of calls, ns. */
  duration?: bigint;
  /** How many hits it stands for: 1, unless there is `sample` or `maxOverhead`. */
  weight: number;
  pid: number;
  tid: number;
  cpu: number;
  comm: string;
  site: number;
}

/** Rows instead of events: the kernel adds hits up whose keys are equal (docs/tables.md). */
export interface Table {
  /** Expressions with commas between them: "comm, arg0 % 16"; none: one row for all hits. */
  by?: string;
  /** A number of which rows have the sum. */
  value?: string;
  /** And the smallest and the largest. */
  extremes?: boolean;
  /** A number of which rows have how many were in each range. */
  histogram?: string;
  /** Ranges from one power of 2 to the next are divided in 2**detail, at most 2**4. */
  detail?: number;
  /** Ranges of equal width: from, to, step; of floats with decimals, too, which texts have all of: ['0', '1', '0.1']. */
  linear?: [number | bigint | string, number | bigint | string, number | bigint | string];
  maxRows?: number;
}

/** Hits with the same keys. Integers are bigint, floats number. */
export interface Row {
  keys: Value[];
  /** With `sample` or `maxOverhead` estimated, as are sum and ranges. */
  count: number;
  sum: bigint | number | null;
  average: number | null;
  minimum: bigint | number | null;
  maximum: bigint | number | null;
  /** Of the histogram: those that are not empty, in order, with both ends; of floats those below `last`, which is itself in
   * the next range (of negative ones in ranges of powers of 2 the other way round; both the same: that alone). */
  ranges: {first: bigint | number; last: bigint | number; count: number}[];
}

export interface Question {
  /** Only hits for which it holds: 'rows > 10 && comm != "cat"'. */
  where?: string;
  table?: Table;
}

export interface TraceOptions extends Question {
  /** Events that are taken are written to this file as well. */
  record?: string;
  targets?: OneOrMore<string>;
  pids?: OneOrMore<number>;
  family?: OneOrMore<number>;
  program?: string;
  texts?: 'auto' | OneOrMore<'described' | 'typed' | 'likely'> | null;
  textArgs?: OneOrMore<string>;
  values?: OneOrMore<string>;
  openStructs?: boolean;
  stringSize?: number;
  ringBytes?: number;
  countOnly?: boolean;
  descendants?: boolean;
  /** Of so many hits one is looked at, chosen by chance (docs/guards.md). */
  sample?: number;
  /** At most so many events a second. */
  maxRate?: number;
  /** 0.05 makes what is traced at most 5 % slower. */
  maxOverhead?: number;
}

/** What `maxOverhead` came to. */
export interface Overhead {
  allowed: number;
  /** What hits cost, as a share of what the processes did besides, in the mean. */
  caused: number;
  /** The share of what they did in which hits were looked at; 1: always. */
  lookedAt: number;
  /** How often the sites were attached. */
  windows: number;
  /** What one hit costs, ns. */
  ofHit: number;
  /** Times, ns. */
  lookedFor: number;
  lasted: number;
  /** Shares are of processor time; else of one processor's, all the time. */
  ofProcessors: boolean;
  /** How long programs run was measured; else it is a rule of thumb. */
  clocked: boolean;
  /** Why the sites could not be attached again; null: they could. */
  trouble: string | null;
}

/** The numbers of the library, by their names there: "ring_full" is `ringFull`. */
export interface Counts {
  hits: number;
  delivered: number;
  /** The sum of ringFull, callsFull, tableFull, unfinished, abandoned, discarded, notWritten and foldedFull. */
  lost: number;
  /** Null: the kernel does not count them. */
  missed: number | null;
  /** Of which it could not be told whose descendants made them; in no other number. */
  unattributed: number;
  notSampled: number;
  /** With `maxOverhead` how many hits there were, as far as can be told; in no other number. */
  estimated: number;
  heldBack: number;
  /** Of recordings of usdt-trace that have spans, or the slowest calls. */
  faster: number;
  rejected: number;
  /** The question has no answer, since something could not be read. */
  undecided: number;
  ringFull: number;
  discarded: number;
  notWritten: number;
  foldedFull: number;
  tableFull: number;
  callsFull: number;
  paired: number;
  unfinished: number;
  /** Calls and spans that had not ended when others needed their room; among `lost`. */
  abandoned: number;
  unmatched: number;
  unpaired: number;
}

export class Tracer implements AsyncIterable<Event> {
  private constructor();
  static start(patterns: OneOrMore<string>, options?: TraceOptions): Promise<Tracer>;
  take(limit?: number): Event[];
  [Symbol.asyncIterator](): AsyncIterator<Event>;
  stop(): void;
  detach(): void;
  close(): void;
  counts(): Counts;
  overhead(): Overhead | null;
  rows(): Row[];
  notices(): string[];
}

export class Recording implements Iterable<Event> {
  constructor(file: string, options?: Question);
  take(limit?: number): Event[];
  [Symbol.iterator](): Iterator<Event>;
  rows(): Row[];
  counts(): Counts;
  info(): {madeBy: string; kernel: string; machine: string; cut: string | null};
  close(): void;
}

/** One answer, as docs/json.md describes it. */
export interface Answer {
  v: 1;
  type: 'event' | 'span' | 'table' | 'heat' | 'slowest' | 'in_flight' | 'followed' | 'summary';
  [key: string]: unknown;
}

export class Answers implements AsyncIterable<Answer> {
  private constructor();
  [Symbol.asyncIterator](): AsyncIterator<Answer>;
  stop(): void;
  close(): Promise<void>;
  notices(): string[];
}

/** The options of usdt-trace by their names: `maxEvents` is --max-events. */
export interface AskOptions {
  /** Only hits of these processes. */
  pids?: OneOrMore<number>;
  /** Files that get the answers, too, by their form: json, csv, text. */
  export?: Record<string, string>;
  /** A port, or 'ADDRESS:PORT', where metrics are served meanwhile, as /metrics. */
  listen?: string | number;
  [option: string]: boolean | OneOrMore<string | number> | Record<string, string> | null | undefined;
}

export function ask(points: OneOrMore<string>, options?: AskOptions): Promise<Answers>;
/** What ask() takes, by the names that usdt-trace has for it, and what each does. */
export function options(): Record<string, string>;

export function checkPrivilege(): void;

export type Type = 'i8' | 'i16' | 'i32' | 'i64' | 'u8' | 'u16' | 'u32' | 'u64' | 'bool' | 'f32' | 'f64' | 'ptr' | 'str' |
    'text' | 'bytes';

export interface Probe {
  (...values: (number | bigint | boolean | string | Buffer | null | undefined)[]): void;
  readonly enabled: boolean;
  /** How often it was not fired because a value did not fit its declared type. */
  unfit: number;
}

export class Provider {
  constructor(name: string, options?: {required?: boolean; keepFiles?: boolean});
  readonly name: string;
  readonly error: UsdtError | null;
  probe(name: string, declared?: string | Record<string, Type>): Probe;
  batch<T>(make: () => T): T;
  span<T>(name: string, action: () => T): T;
  wrap<F extends (...values: any[]) => any>(method: F, name?: string): F;
  close(): void;
}
