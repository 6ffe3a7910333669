// The three hashes of tens of thousands of generated and real captures are the same in WebAssembly
// and in native code. The Python SDK is compared using the same files.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { hash } from "@holdpoint/sdk";
import { root, skip } from "./stage.mjs";
import { madeUp, real } from "./surfaces.mjs";

const native = ["debug", "release"].map((profile) => join(root, "target", profile, "examples/hashes")).find(existsSync);
const COUNT = process.env.HOLDPOINT_SDK_LONG ? 100_000 : 20_000;

async function hashes(lines) {
  const child = spawn(native, { stdio: ["pipe", "pipe", "inherit"] });
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part) => (text += part));
  const ended = new Promise((resolve) => child.on("close", resolve));
  child.stdin.end(lines.map((line) => `${line}\n`).join(""));
  assert.equal(await ended, 0);
  return text.split("\n").slice(0, -1);
}

test("hashes are the same in both languages", native ? { timeout: 300_000 } : skip("target/debug/examples/hashes: cargo build -p holdpoint-sdk-core --example hashes"), async () => {
  const lines = [...madeUp(COUNT), ...real()];
  const ours = lines.map((line) => {
    try {
      return JSON.stringify(hash(line));
    } catch (error) {
      return `!${error.message}`;
    }
  });
  const theirs = await hashes(lines);
  assert.equal(theirs.length, lines.length);
  const read = ours.filter((line) => !line.startsWith("!")).length;
  assert.ok(read > COUNT / 2, `only ${read} of ${lines.length} could be read`);
  assert.ok(read < lines.length, "none was refused");
  for (let at = 0; at < lines.length; at++) {
    if (ours[at] !== theirs[at]) assert.deepEqual(JSON.parse(ours[at]), JSON.parse(theirs[at]), lines[at]);
  }
  mkdirSync(join(root, "target/sdk"), { recursive: true });
  writeFileSync(join(root, "target/sdk/surfaces.jsonl"), lines.map((line) => `${line}\n`).join(""));
  writeFileSync(join(root, "target/sdk/hashes.jsonl"), theirs.map((line) => `${line}\n`).join(""));
});
