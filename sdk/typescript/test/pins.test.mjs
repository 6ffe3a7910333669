// Pins in files that are torn, foreign, unwritable, shared by processes, or whose writer is killed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { HeldError, PreflightPin, RefusedError, wrap } from "@holdpoint/sdk";
import { LIBRARIES, MemoryServer, client, folder, tool } from "./stage.mjs";

const [library] = LIBRARIES;
const call = (session, name = "make") => session.callTool({ name, arguments: {} });

async function begin(pins, server = new MemoryServer(), options = {}) {
  const session = wrap(client(library), { pin: new PreflightPin(pins), serverId: "reports", relistMaxAge: 0, ...options });
  await session.connect(server.connect());
  return { session, server };
}

test("one file for each server, for the user alone, and nothing is left beside it", async (t) => {
  const pins = join(folder(t), "deep", "pins");
  const { session } = await begin(pins);
  await call(session);
  assert.deepEqual(readdirSync(pins), ["reports.json"]);
  assert.equal(statSync(pins).mode & 0o777, 0o700);
  assert.equal(statSync(join(pins, "reports.json")).mode & 0o777, 0o600);
  const document = JSON.parse(readFileSync(join(pins, "reports.json"), "utf8"));
  assert.deepEqual([document.holdpoint, document.version, document.server, document.revision], ["pins", 1, "reports", 1]);
});

test("pins that cannot be read are an error in words, and there is no session", async (t) => {
  const pins = folder(t);
  const { session } = await begin(pins);
  await call(session);
  const file = join(pins, "reports.json");
  const whole = readFileSync(file, "utf8");
  const check = async (text, words) => {
    writeFileSync(file, text);
    await assert.rejects(begin(pins), words);
  };
  await check(whole.slice(0, whole.length / 2), /not a document of Holdpoint/);
  await check("", /not a document of Holdpoint/);
  await check("\u0000".repeat(100), /not a document of Holdpoint/);
  await check(whole.replace('"version":1', '"version":2'), /another version of Holdpoint/);
  await check(whole.replace('"server":"reports"', '"server":"mail"'), /belong to the server `mail`/);
  writeFileSync(file, whole);
  chmodSync(file, 0o666);
  await assert.rejects(begin(pins), /can be written by other users/);
  chmodSync(file, 0o600);
  await begin(pins);
});

test("where pins cannot be written, every call is held and none is sent", async (t) => {
  const pins = folder(t);
  const { session, server } = await begin(pins);
  // A folder in place of the file makes the write fail for any user, including root.
  mkdirSync(join(pins, "reports.json"));
  const error = await call(session).catch((error) => error);
  assert.ok(error instanceof RefusedError, String(error));
  assert.match(error.message, /the pins could not be written/);
  await assert.rejects(call(session), RefusedError);
  assert.equal(server.calls.length, 0);
  assert.equal(existsSync(join(pins, "reports.json.lock")), false);
});

test("an approval in one process counts for the next call of another", async (t) => {
  const pins = folder(t);
  const server = new MemoryServer();
  const one = await begin(pins, server);
  const two = await begin(pins, new MemoryServer());
  await call(one.session);
  await call(two.session);
  one.server.tools[0] = two.server.tools[0] = tool("make", "Other words.");
  const held = await call(one.session).catch((error) => error);
  await assert.rejects(call(two.session), HeldError);
  await held.repin("ada");
  await call(two.session);
  await call(one.session);
});

test("a lock that was left behind is taken away, and one that is held is waited for", async (t) => {
  const pins = folder(t);
  const lock = join(pins, "reports.json.lock");
  writeFileSync(lock, "");
  utimesSync(lock, new Date(0), new Date(0));
  const { session } = await begin(pins);
  await call(session);
  assert.equal(existsSync(lock), false);
});

test("processes that write one file at once lose nothing, and one that is killed while it writes tears nothing", async (t) => {
  const pins = folder(t);
  const child = new URL("pins-child.mjs", import.meta.url).pathname;
  const run = (tag, signal) =>
    new Promise((resolve) => {
      const process_ = spawn(process.execPath, [child, pins, tag], { stdio: ["ignore", "pipe", "inherit"] });
      process_.on("exit", (code) => resolve(code));
      if (signal) process_.stdout.once("data", () => process_.kill("SIGKILL"));
    });
  const { session, server } = await begin(pins);
  await call(session);
  assert.deepEqual(await Promise.all([run("a"), run("b"), run("c")]), [0, 0, 0]);
  const approved = JSON.parse(readFileSync(join(pins, "reports.json"), "utf8")).entries.find(({ key }) => key === "make").pins;
  // Each process approved eight different definitions.
  assert.equal(approved.filter(({ basis }) => basis === "person").length, 24);
  await run("d", "kill");
  utimesSync(pins, new Date(), new Date());
  if (existsSync(join(pins, "reports.json.lock"))) utimesSync(join(pins, "reports.json.lock"), new Date(0), new Date(0));
  server.tools[0] = tool("make", "a 3");
  await call(session);
});

test("hostile and huge lists are held or served, and the gate stays", async () => {
  const { session, server } = await begin(undefined);
  await call(session);
  const deep = JSON.parse(`${'{"properties":{"a":'.repeat(200)}{}${"}}".repeat(200)}`);
  for (const inputSchema of [deep, { allOf: Array.from({ length: 2000 }, () => ({ $ref: "#" })) }, { pattern: "(a+)+$".repeat(50) }]) {
    server.tools[0] = { name: "make", description: "Makes a report.", inputSchema };
    await assert.rejects(call(session), RefusedError);
  }
  server.tools[0] = tool("make", "\ud800 half a pair");
  await assert.rejects(call(session), RefusedError);
  server.tools = Array.from({ length: 10_001 }, (_, n) => tool(`t${n}`, "x"));
  await assert.rejects(call(session, "t1"), RefusedError);
  server.tools = [tool("make", "Makes a report."), tool("make", "Which one?")];
  await assert.rejects(call(session), HeldError);
  server.tools = [tool("make", "Makes a report."), tool("send", "Sends it.")];
  await call(session);
});

test("a list that the server refuses or does not give holds what it carries", async (t) => {
  const { session, server } = await begin(undefined);
  server.listFails = { code: -32603, message: "no" };
  await assert.rejects(call(session), RefusedError);
  assert.equal(server.calls.length, 0);
  server.listFails = undefined;
  await call(session);
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.now() });
  const again = await begin(undefined);
  again.server.isSilent = true;
  const waits = assert.rejects(call(again.session), (error) => error instanceof RefusedError && error.reason === "timeout");
  await new Promise((resolve) => setImmediate(resolve));
  t.mock.timers.tick(30_000);
  await waits;
  assert.equal(again.server.calls.length, 0);
});
