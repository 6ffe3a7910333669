// Wraps a session, has a call held and accepted, and prints all uses of the system's APIs
// meanwhile.

import childProcess from "node:child_process";
import dns from "node:dns";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import { syncBuiltinESMExports } from "node:module";
import net from "node:net";
import tls from "node:tls";

const seen = { network: [], files: [], processes: [], variables: [] };
const watch = (module, names, list, of = (args) => String(args[0])) => {
  for (const name of names) {
    const original = module[name];
    if (typeof original !== "function") continue;
    module[name] = function (...args) {
      if (isWatching) list.push(of(args));
      return original.apply(this, args);
    };
  }
};
let isWatching = false;
const isPath = (args) => (typeof args[0] === "string" || args[0] instanceof URL ? String(args[0]) : undefined);
watch(net, ["connect", "createConnection"], seen.network);
watch(net.Socket.prototype, ["connect"], seen.network);
watch(tls, ["connect"], seen.network);
watch(http, ["request", "get"], seen.network);
watch(https, ["request", "get"], seen.network);
watch(dns, ["lookup", "resolve"], seen.network);
watch(globalThis, ["fetch"], seen.network);
watch(childProcess, ["spawn", "exec", "execFile", "fork", "spawnSync", "execSync", "execFileSync"], seen.processes);
watch(fs, Object.keys(fs).filter((name) => /^[a-z]/.test(name)), seen.files, isPath);
watch(fs.promises, Object.keys(fs.promises), seen.files, isPath);
syncBuiltinESMExports();

const { PreflightPin, wrap } = await import("@holdpoint/sdk");
const { LIBRARIES, MemoryServer, client, tool } = await import("./stage.mjs");
process.env = new Proxy(process.env, {
  get: (target, name) => {
    if (isWatching) seen.variables.push(String(name));
    return target[name];
  },
});
isWatching = true;
const server = new MemoryServer();
const session = wrap(client(LIBRARIES[0]), { pin: new PreflightPin(process.argv[2]), serverId: "reports", relistMaxAge: 0 });
await session.connect(server.connect());
const call = () => session.callTool({ name: "make", arguments: {} });
await call();
server.tools[0] = tool("make", "Other words.");
const held = await call().catch((error) => error);
await held.review();
await held.repin();
await call();
isWatching = false;
seen.files = [...new Set(seen.files.filter(Boolean))];
console.log(JSON.stringify(seen));
