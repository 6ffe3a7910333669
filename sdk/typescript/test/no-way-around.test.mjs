// Every public member of each client library is in the table, and no member that sends lets a held
// call bypass the gate.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { HeldError, PreflightPin, wrap } from "@holdpoint/sdk";
import { z } from "zod";
import { LIBRARIES, MemoryServer, client, tool } from "./stage.mjs";

const table = JSON.parse(readFileSync(new URL("members.json", import.meta.url), "utf8"));

function members(object, prefix = "") {
  const names = new Set();
  for (let part = object; part && part !== Object.prototype; part = Object.getPrototypeOf(part)) {
    Object.getOwnPropertyNames(part).forEach((name) => names.add(name));
  }
  return [...names].filter((name) => name !== "constructor" && !name.startsWith("_")).map((name) => prefix + name);
}

/** All public members of a client, those of what lies below it too. */
function all(session) {
  const below = session.experimental?.tasks ? members(session.experimental.tasks, "experimental.tasks.") : [];
  return [...members(session), ...below].sort();
}

for (const library of LIBRARIES) {
  const { gated, passed, local } = table[library.name];

  test(`${library.name}: the table has every member and no other`, () => {
    const known = [...gated, ...passed, ...local].sort();
    assert.equal(new Set(known).size, known.length);
    assert.deepEqual(all(client(library)), known, "a new version adds or drops a member: say in members.json what it sends");
  });

  test(`${library.name}: no member gets a held call past the gate`, async () => {
    const server = new MemoryServer();
    const session = wrap(client(library), { pin: new PreflightPin(), serverId: "reports", relistMaxAge: 0 });
    await session.connect(server.connect());
    await session.callTool({ name: "make", arguments: {} });
    server.tools[0] = tool("make", "Other words.");
    server.calls.length = 0;
    const params = { name: "make", arguments: {} };
    const request = { method: "tools/call", params };
    const raw = { jsonrpc: "2.0", id: "x", ...request };
    const last = async (stream) => {
      for await (const message of stream) if (message.type === "error") throw message.error;
    };
    const ways = {
      callTool: () => session.callTool(params),
      request: () => session.request(request, z.looseObject({})),
      transport: () => session.transport.send(raw),
      "transport, as a notification": () => session.transport.send({ jsonrpc: "2.0", ...request }),
      "transport, in a batch": () => session.transport.send([raw]),
      "transport, by another spelling": () => session.transport.send({ ...raw, method: "Tools/Call" }),
      "transport, with a name twice": () => session.transport.send({ ...raw, params: { ...params, Name: "make" } }),
      notification: () => session.notification(request),
      ...(session.experimental?.tasks && {
        callToolStream: () => last(session.experimental.tasks.callToolStream(params)),
        requestStream: () => last(session.experimental.tasks.requestStream(request, z.looseObject({}))),
        "callTool as a task": () => session.callTool(params, undefined, { task: { ttl: 1000 } }),
      }),
    };
    for (const [name, way] of Object.entries(ways)) {
      await assert.rejects(Promise.resolve().then(way), undefined, name);
      assert.deepEqual(server.calls, [], name);
    }
    await assert.rejects(ways.request(), HeldError);
    // The counterpart: calls that are not held go through the same members.
    await session.callTool({ name: "send", arguments: {} });
    await session.transport.send({ jsonrpc: "2.0", id: "y", method: "tools/call", params: { name: "send" } });
    assert.equal(server.calls.length, 2);
  });

  test(`${library.name}: a handler of the server's requests cannot call past the gate`, async () => {
    const server = new MemoryServer();
    const session = wrap(client(library), { pin: new PreflightPin(), serverId: "reports", relistMaxAge: 0 });
    const answered = new Promise((resolve) => {
      session.fallbackRequestHandler = async (_request, extra) => {
        const send = extra.sendRequest ?? extra.mcpReq?.send;
        const outcome = await Promise.resolve()
          .then(() => send.call(extra.mcpReq ?? extra, { method: "tools/call", params: { name: "make" } }, z.looseObject({})))
          .then(() => "sent", (error) => error);
        resolve(outcome);
        return {};
      };
    });
    await session.connect(server.connect());
    await session.callTool({ name: "make", arguments: {} });
    server.calls.length = 0;
    server.tools[0] = tool("make", "Other words.");
    server.transport.onmessage({ jsonrpc: "2.0", id: 1, method: "x/ask", params: {} });
    assert.notEqual(await answered, "sent");
    assert.deepEqual(server.calls, []);
  });
}
