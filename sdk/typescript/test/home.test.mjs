// Pins of a Holdpoint home, through the program.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { HeldError, HomePin, RefusedError, waiting, wrap } from "@holdpoint/sdk";
import { LIBRARIES, MemoryServer, client, folder, program, skip, tool } from "./stage.mjs";

const settings = program ? { timeout: 60_000 } : skip("the program; build it or set HOLDPOINT_BINARY");
const run = promisify(execFile);
const call = (session, name = "make") => session.callTool({ name, arguments: { title: "x" } });

for (const library of LIBRARIES) {
  const begin = async (t, home, server, isConnected = false) => {
    const session = client(library);
    if (isConnected) await session.connect(server.connect());
    wrap(session, { pin: new HomePin({ program, home }), serverId: "reports", relistMaxAge: 0 });
    if (!isConnected) await session.connect(server.connect());
    t.after(() => session.close());
    return session;
  };

  test(`${library.name}: an approval in a terminal counts for the next call, and receipts are written`, settings, async (t) => {
    const home = join(folder(t), "home");
    const server = new MemoryServer();
    const session = await begin(t, home, server);
    assert.equal((await session.listTools()).tools.length, 2);
    await call(session);
    server.tools[0] = tool("make", "Makes a report and mails it.");
    const held = await call(session).catch((error) => error);
    assert.ok(held instanceof HeldError, String(held));
    assert.deepEqual([held.toolName, held.reason, held.verdict], ["make", "contract_drift", "HOLD"]);
    assert.match(held.message, /holdpoint review reports/);
    assert.match(JSON.stringify(held.evidence), /mails it/);
    assert.equal(server.calls.length, 1);
    // With a home, a person decides, not the application.
    await assert.rejects(held.repin("application"));
    await assert.rejects(call(session), HeldError);
    writeFileSync(join(home, "holdpoint.toml"), "[approve]\nunattended = true\n");
    await run(program, ["--home", home, "approve", "reports", "make", "--hash", held.entryHash.after]);
    await call(session);
    assert.deepEqual([server.calls.length, (await waiting(session)).length], [2, 0]);
    await session.close();
    const { stdout } = await run(program, ["--home", home, "receipts", "list", "--json"]);
    assert.match(stdout, /"held"/);
  });

  test(`${library.name}: a connected client is taken over with what it knows`, settings, async (t) => {
    const server = new MemoryServer();
    server.instructions = "Be good.";
    const session = await begin(t, join(folder(t), "home"), server, true);
    await call(session);
    assert.equal(session.getInstructions(), "Be good.");
    server.tools[0] = tool("make", "Other words.");
    await assert.rejects(call(session), HeldError);
    assert.equal(server.calls.length, 1);
    await session.ping();
  });
}

test("a program that ends holds every later call", settings, async (t) => {
  const place = folder(t);
  const fake = join(place, "holdpoint");
  writeFileSync(fake, '#!/bin/sh\necho \'{"failed":{"reason":"home","message":"no home"}}\'\nexit 12\n', { mode: 0o755 });
  const server = new MemoryServer();
  const session = wrap(client(LIBRARIES[0]), { pin: new HomePin({ program: fake }), serverId: "reports" });
  await assert.rejects(session.connect(server.connect()), RefusedError);
  await assert.rejects(server.transport.send({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "make" } }), HeldError);
  assert.equal(server.calls.length, 0);
});
