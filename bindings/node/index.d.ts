// SPDX-License-Identifier: BSD-2-Clause
type OneOrMore<T> = T | readonly T[];

/** Integers of 8 bytes are bigint, shorter ones number; null: a null pointer where there should be text; Buffer: text that is
 * not UTF-8. */
export type Value = number | bigint | boolean | string | Buffer | null | {unreadable: string};

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
  /** An integer of which rows have the sum. */
  value?: string;
  /** And the smallest and the largest. */
  extremes?: boolean;
  /** An integer of which rows have how many were in each range. */
  histogram?: string;
  /** Ranges from one power of 2 to the next are divided in 2**detail, at most 2**4. */
  detail?: number;
  /** Ranges of equal width: from, to, step. */
  linear?: [number, number, number];
  maxRows?: number;
}

/** Hits with the same keys. Numbers of keys are bigint. */
export interface Row {
  keys: Value[];
  count: number;
  sum: bigint | null;
  average: number | null;
  minimum: bigint | null;
  maximum: bigint | null;
  /** Of the histogram: those that are not empty, in order, with both ends. */
  ranges: {first: bigint; last: bigint; count: number}[];
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
}

export interface Counts {
  hits: number;
  delivered: number;
  lost: number;
  discarded: number;
  unfinished: number;
  missed: number | null;
  rejected: number;
  unanswered: number;
  tableFull: number;
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
  readonly error: Error | null;
  probe(name: string, declared?: string | Record<string, Type>): Probe;
  batch<T>(make: () => T): T;
  span<T>(name: string, action: () => T): T;
  wrap<F extends (...values: any[]) => any>(method: F, name?: string): F;
  close(): void;
}
