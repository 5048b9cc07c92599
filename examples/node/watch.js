#!/usr/bin/env node
// SPDX-License-Identifier: BSD-2-Clause
// Shows the spans of a running program as they end, each with those within it; as root:  watch.js PID PROVIDER
//
// Spans are pairs of probes, NAME__begin and NAME__end, which usdt.Provider makes. Those that ran at once are told apart by their
// numbers.
'use strict';

const fs = require('node:fs');
const usdt = require('usdt');

class Spans {
  ended = 0;
  failed = 0;
  #open = new Map();  // span: {name, began, within: lines of what ended within it}

  see({name: probe, names, args, time}) {
    const {span, parent, failed} = Object.fromEntries(names.map((name, n) => [name, args[n]]));
    if (span === undefined) return;
    const [name, moment] = probe.split(/__(?=[a-z]+$)/);
    if (moment === 'begin') {
      this.#open.set(span, {name, began: time, within: []});
      return;
    }
    const ending = this.#open.get(span);
    if (!ending) return;  // it was under way when the trace began
    this.#open.delete(span);
    this.ended += 1;
    this.failed += failed;
    const took = `${(Number(time - ending.began) / 1e6).toFixed(2)} ms`;
    const lines = [`${name} ${took}${failed ? ' failed' : ''}`, ...ending.within.map((line) => `  ${line}`)];
    const around = this.#open.get(parent);
    if (around) around.within.push(...lines);
    else console.log(lines.join('\n'));
  }
}

const isRunning = (pid) => {
  try {
    return fs.readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)[0] !== 'Z';
  } catch {
    return false;
  }
};

async function main(pid, provider) {
  const spans = new Spans();
  const tracer = await usdt.Tracer.start(`${provider}:*`, {pids: pid});
  console.log('watching');
  const looking = setInterval(() => isRunning(pid) || tracer.stop(), 200);
  process.once('SIGINT', () => tracer.stop());
  for await (const event of tracer) spans.see(event);
  clearInterval(looking);
  tracer.close();
  console.log(`${spans.ended} spans, ${spans.failed} failed; ${tracer.counts().lost} hits lost`);
}

const [pid, provider] = process.argv.slice(2);
if (!provider) {
  console.error('usage: watch.js PID PROVIDER');
  process.exit(2);
}
main(Number(pid), provider).catch((error) => {
  console.error(`watch.js: ${error.message}`);
  process.exitCode = 1;
});
