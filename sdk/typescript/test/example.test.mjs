// The guide's example, run as a user would: the first release of a server is trusted, and the next
// one is held.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { folder, installed, root, skip } from "./stage.mjs";

const [OLD, NEW] = ["2025.9.25", "2026.8.31"].map((version) => installed("server-everything", version));
const settings = OLD && NEW ? {} : skip("server-everything: run ./scripts/install-test-tools");

test("the agent loop calls a tool, and tells the model why it does not when the tool changed", settings, async (t) => {
  const place = folder(t);
  copyFileSync(join(root, "sdk/typescript/example/agent.mjs"), join(place, "agent.mjs"));
  symlinkSync(new URL("node_modules", import.meta.url).pathname, join(place, "node_modules"));
  const env = { PATH: process.env.PATH, TOOL: "echo", ARGUMENTS: '{"message":"hello"}' };
  const run = async (server) => {
    const ended = promisify(execFile)(process.execPath, ["agent.mjs", server, "stdio"], { cwd: place, env });
    ended.child.stdin.end();
    return (await ended).stdout;
  };
  assert.match(await run(OLD), /the model would be shown \d+ tools: .*\n.*Echo: hello/);
  assert.match(await run(NEW), /caught a silent change: `echo`/);
});
