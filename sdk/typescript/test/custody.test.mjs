// The library opens no connections, starts no processes and accesses no files except the pins it
// was given.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { folder } from "./stage.mjs";

test("with network, files and processes instrumented, only the pin store is seen", async (t) => {
  const pins = folder(t);
  const child = new URL("custody-child.mjs", import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(process.execPath, [child, pins], { env: { PATH: process.env.PATH } });
  const { network, files, processes, variables } = JSON.parse(stdout);
  assert.deepEqual({ network, processes, variables }, { network: [], processes: [], variables: [] });
  const outside = files.filter((path) => path !== pins && !path.startsWith(join(pins, "reports.json")));
  assert.deepEqual(outside, []);
  assert.ok(files.length > 0, "the instruments see something");
});

test("no option, member or variable holds a credential", async () => {
  const sdk = await import("@holdpoint/sdk");
  const words = /token|secret|password|credential|authorization|api.?key/i;
  assert.deepEqual(Object.keys(sdk).filter((name) => words.test(name)), []);
  const options = { serverId: "a", pin: new sdk.PreflightPin(), apiKey: "x" };
  assert.throws(() => sdk.wrapTransport({ send: async () => {} }, options), /unknown field `apiKey`/);
});
