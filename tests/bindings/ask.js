// SPDX-License-Identifier: BSD-2-Clause
// Asks a question in JavaScript: node ask.js POINTS OPTIONS, both JSON; the answers are what the file of OPTIONS.export gets.
'use strict';
const usdt = require('../../bindings/node');

async function main() {
  const answers = await usdt.ask(JSON.parse(process.argv[2]), JSON.parse(process.argv[3]));
  let last;
  for await (const answer of answers) last = answer;
  if (last.type !== 'summary') throw new Error(`the last answer is ${JSON.stringify(last)}`);
}

main().catch((error) => {
  console.error(`ask.js: ${error.message}`);
  process.exit(1);
});
