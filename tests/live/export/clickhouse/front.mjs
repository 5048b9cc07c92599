// SPDX-License-Identifier: BSD-2-Clause
// A ClickHouse server for tests: chdb's engine (npm's `chdb`) behind HTTP as ClickHouse's own interface has it, as far as
// the sink and the queries need that. node front.mjs DIRECTORY [PORT]; says its port on a line.
import http from "node:http";
import { createRequire } from "node:module";
import { promisify } from "node:util";
import zlib from "node:zlib";

// NODE_PATH says where chdb is, which import does not look at.
const { Session } = createRequire(import.meta.url)("chdb");
const session = new Session(process.argv[2]);
const gunzip = promisify(zlib.gunzip);
const kOwn = new Set(["query", "database", "wait_end_of_query", "default_format"]);

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  return request.headers["content-encoding"] === "gzip" ? gunzip(body) : body;
}

function codeOf(error) {
  const found = /Code: (\d+)/.exec(String(error.message));
  return Number(error.clickhouseCode || (found ? found[1] : 1002));
}

async function run(parameters, body) {
  const settings = {};
  for (const [name, value] of parameters) if (!kOwn.has(name)) settings[name] = /^\d+$/.test(value) ? Number(value) : value;
  const query = parameters.get("query") ?? body.toString();
  const insertion = /^INSERT INTO (\S+) FORMAT (\w+)$/.exec(query);
  if (!insertion) return session.queryAsync(query, { format: parameters.get("default_format") ?? "TabSeparated" });
  const database = parameters.get("database");
  const table = database ? `${database}.${insertion[1]}` : insertion[1];
  await session.insert({ table, values: body, format: insertion[2], settings });
  return null;
}

async function answer(request, response) {
  try {
    const { searchParams } = new URL(request.url, "http://front");
    const result = await run(searchParams, await bodyOf(request));
    response.end(result === null ? "" : Buffer.from(result.bytes()));
  } catch (error) {
    const code = codeOf(error);
    response.writeHead(code === 60 ? 404 : 500, { "X-ClickHouse-Exception-Code": String(code) });
    response.end(`${String(error.message).replace(/^.*?Code:/s, "Code:")}\n`);
  }
}

const server = http.createServer(answer);
server.listen(Number(process.argv[3] ?? 0), "127.0.0.1", () => console.log(server.address().port));
