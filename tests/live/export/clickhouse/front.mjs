// SPDX-License-Identifier: BSD-2-Clause
// A ClickHouse server for tests: chdb's engine (npm's `chdb`) behind HTTP as ClickHouse's own interface has it, as far as
// the sink and the queries need that. node front.mjs DIRECTORY [PORT]; says its port on a line.
import http from "node:http";
import { promises as fs } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

// NODE_PATH says where chdb is, which import does not look at.
const { Session } = createRequire(import.meta.url)("chdb");
const session = new Session(process.argv[2]);
const kOwn = new Set(["query", "database", "wait_end_of_query", "default_format"]);
let bodies = 0;

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function codeOf(error) {
  const found = /Code: (\d+)/.exec(String(error.message));
  return Number(error.clickhouseCode || (found ? found[1] : 1002));
}

function settingsOf(parameters) {
  const own = [...parameters].filter(([name]) => !kOwn.has(name) && /^\w+$/.test(name));
  return own.map(([name, value]) => `${name} = ${/^\d+$/.test(value) ? value : `'${value.replace(/[\\']/g, "\\$&")}'`}`).join(", ");
}

// The engine reads a file faster than what it is handed: it is the parser that a server has.
async function insert(parameters, table, format, body, packed) {
  const file = path.join(os.tmpdir(), `front-${process.pid}-${++bodies}.${packed ? "gz" : "rows"}`);
  await fs.writeFile(file, body);
  try {
    const database = parameters.get("database");
    await session.queryAsync(`INSERT INTO ${database ? `${database}.` : ""}${table} FROM INFILE '${file}' SETTINGS ${settingsOf(parameters)}
      FORMAT ${format}`);
  } finally {
    await fs.unlink(file);
  }
}

async function run(parameters, body, packed) {
  const query = parameters.get("query") ?? body.toString();
  const insertion = /^INSERT INTO (\w+) FORMAT (\w+)$/.exec(query);
  if (!insertion) return session.queryAsync(query, { format: parameters.get("default_format") ?? "TabSeparated" });
  await insert(parameters, insertion[1], insertion[2], body, packed);
  return null;
}

async function answer(request, response) {
  try {
    const { searchParams } = new URL(request.url, "http://front");
    const result = await run(searchParams, await bodyOf(request), request.headers["content-encoding"] === "gzip");
    response.end(result === null ? "" : Buffer.from(result.bytes()));
  } catch (error) {
    const code = codeOf(error);
    response.writeHead(code === 60 ? 404 : 500, { "X-ClickHouse-Exception-Code": String(code) });
    response.end(`${String(error.message).replace(/^.*?Code:/s, "Code:")}\n`);
  }
}

const server = http.createServer(answer);
server.listen(Number(process.argv[3] ?? 0), "127.0.0.1", () => console.log(server.address().port));
