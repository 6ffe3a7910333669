// Measures the cost of the TypeScript SDK, compared with the same session without it in the same
// run, over an in-memory transport. Prints each figure with its bound, and exits with 1 if one
// exceeds it. Run by ./scripts/sdk typescript bench.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const root = new URL("..", import.meta.url).pathname;
const test = join(root, "sdk/typescript/test");
const require = createRequire(join(test, "package.json"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const sdk = require("@holdpoint/sdk");

let isOver = false;
function tell(name, value, bound, unit) {
  const isWithin = value <= bound;
  isOver ||= !isWithin;
  console.log(`${isWithin ? "ok  " : "OVER"} ${name}: ${value.toFixed(2)} ${unit} (at most ${bound})`);
}
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const now = () => Number(process.hrtime.bigint()) / 1e3;

/** The time that this thread has had a processor, in microseconds: what else the machine does is not counted. */
function processorTime() {
  try {
    // Makes the kernel update the counter, which it otherwise does only a few hundred times a
    // second.
    process.cpuUsage();
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e3;
  } catch {
    return now();
  }
}

/** Real tools where they are there, else as many made-up ones of the same size. */
function tools(count) {
  const folder = process.env.HOLDPOINT_CORPUS;
  const found = new Map();
  if (folder && existsSync(folder)) {
    for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
      if (!entry.isFile() || !entry.name.endsWith(".json") || found.size >= count) continue;
      const text = readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8");
      let list;
      try {
        list = JSON.parse(text).tools ?? [];
      } catch {
        continue;
      }
      for (const tool of list) if (found.size < count && tool?.inputSchema) found.set(tool.name, tool);
    }
  }
  const properties = Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`p${n}`, { type: "string", description: `The ${n}th of some words. `.repeat(5) }]));
  while (found.size < count) found.set(`t${found.size}`, { name: `t${found.size}`, description: "Does one thing and does it well. ".repeat(8), inputSchema: { type: "object", properties } });
  return [...found.values()];
}

/** A server in memory that answers in the same turn. */
function server(list) {
  const own = { list, text: undefined };
  const transport = {
    start: async () => {},
    close: async () => {},
    async send({ id, method, params }) {
      if (id === undefined) return;
      const result =
        method === "initialize" ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "m", version: "1" } }
        : method === "tools/list" ? JSON.parse(own.text ??= JSON.stringify({ tools: own.list }))
        : { content: [{ type: "text", text: "done" }] };
      transport.onmessage({ jsonrpc: "2.0", id, result });
    },
  };
  return Object.assign(own, { transport });
}

async function session(list, options) {
  const client = new Client({ name: "bench", version: "1" });
  const peer = server(list);
  // Made before anything is measured: it is the server's own work.
  peer.text = JSON.stringify({ tools: list });
  if (options) sdk.wrap(client, { pin: new sdk.PreflightPin(), serverId: "bench", ...options });
  await client.connect(peer.transport);
  return { client, peer };
}

async function calls() {
  const list = tools(100);
  const args = { text: "x".repeat(1000) };
  const name = list[0].name;
  const [plain, wrapped] = [await session(list), await session(list, { relistMaxAge: 3600 })];
  await wrapped.client.listTools();
  const times = [[], []];
  for (let round = 0; round < 12_000; round++) {
    for (const [at, { client }] of [plain, wrapped].entries()) {
      const begun = now();
      await client.request({ method: "tools/call", params: { name, arguments: args } }, require("zod").any());
      if (round > 2_000) times[at].push(now() - begun);
    }
  }
  tell("a call of 1 KB, added at the median", median(times[1]) - median(times[0]), 10, "µs");
}

async function lists() {
  const list = tools(1000);
  const text = JSON.stringify({ tools: list });
  const timed = async (act) => {
    const begun = processorTime();
    await act();
    return processorTime() - begun;
  };
  const ask = ({ client }) => timed(() => client.request({ method: "tools/list" }, require("zod").any()));
  const plain = await session(list);
  const [same, moving] = [await session(list, { relistMaxAge: 0 }), await session(list, { relistMaxAge: 0 })];
  await ask(same);
  await ask(moving);
  // Time all of them in turn, and take the median of each.
  const times = { parse: [], bare: [], unchanged: [], fresh: [], changed: [] };
  for (let round = 0; round < 15; round++) {
    times.parse.push(await timed(() => JSON.parse(text)));
    times.bare.push(await ask(plain));
    times.unchanged.push(await ask(same));
    times.fresh.push(await ask(await session(list, { relistMaxAge: 0 })));
    moving.peer.list = moving.peer.list.map((tool) => ({ ...tool, description: `${tool.description ?? ""}.` }));
    moving.peer.text = JSON.stringify({ tools: moving.peer.list });
    times.changed.push(await ask(moving));
  }
  const middle = Object.fromEntries(Object.entries(times).map(([name, list]) => [name, median(list)]));
  console.log(`     ${list.length} tools, ${(text.length / 1e6).toFixed(2)} MB; JSON.parse ${(middle.parse / 1e3).toFixed(1)} ms`);
  const added = (name) => (middle[name] - middle.bare) / middle.parse;
  tell("an unchanged list, added", added("unchanged"), 3, "times JSON.parse");
  tell("a new list, added", added("fresh"), 15, "times JSON.parse");
  tell("a list of which every tool changed, added", added("changed"), 15, "times JSON.parse");
}

/** Loading and the first judgement, each in a process of its own. */
function cold() {
  const script = `const begun = process.hrtime.bigint();
    const sdk = require("@holdpoint/sdk"); sdk.hash('{"tools":[]}');
    const loaded = process.hrtime.bigint();
    sdk.diff('{"tools":[{"name":"a","description":"A.","inputSchema":{"type":"object"}}]}', '{"tools":[{"name":"a","description":"B.","inputSchema":{"type":"object"}}]}');
    const judged = process.hrtime.bigint();
    console.log(JSON.stringify([Number(loaded - begun) / 1e6, Number(judged - begun) / 1e6]));`;
  const runs = Array.from({ length: 9 }, () => JSON.parse(execFileSync(process.execPath, ["-e", script], { cwd: test })));
  tell("the package loaded and its WebAssembly instantiated", median(runs.map(([loaded]) => loaded)), 30, "ms");
  tell("the first judgement, from the start", median(runs.map(([, judged]) => judged)), 60, "ms");
}

const wasm = gzipSync(readFileSync(join(root, "sdk/typescript/holdpoint.wasm")), { level: 9 }).length;
tell("the WebAssembly, gzip", wasm / 1000, 350, "KB");
cold();
await calls();
await lists();
process.exitCode = isOver ? 1 : 0;
