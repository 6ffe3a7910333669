// A gate that fails never leaves an ungated session behind.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HeldError, HomePin, PreflightPin, RefusedError, wrap, wrapTransport } from "@holdpoint/sdk";
import { LIBRARIES, MemoryServer, client } from "./stage.mjs";

const fresh = (tag) => import(`${new URL("node_modules/@holdpoint/sdk/dist/index.js", import.meta.url)}?${tag}`);

test("a WebAssembly that cannot be loaded is an error in words, and nothing is wrapped", async () => {
  const original = WebAssembly.Module;
  WebAssembly.Module = class {
    constructor() {
      throw new WebAssembly.CompileError("blocked by a policy");
    }
  };
  try {
    const sdk = await fresh("module");
    const transport = new MemoryServer().connect();
    const { send } = transport;
    assert.throws(() => sdk.wrapTransport(transport, { pin: new sdk.PreflightPin(), serverId: "a" }), /WebAssembly cannot be loaded/);
    assert.equal(transport.send, send, "the transport is as it was");
  } finally {
    WebAssembly.Module = original;
  }
});

test("a trap closes the instance, and every later call is held", async () => {
  const original = WebAssembly.Instance;
  let isTrapping = false;
  WebAssembly.Instance = class {
    constructor(module, imports) {
      const { exports } = new original(module, imports);
      const client = (...args) => {
        if (isTrapping) throw new WebAssembly.RuntimeError("unreachable");
        return exports.client(...args);
      };
      this.exports = { ...exports, client };
    }
  };
  try {
    const held = [];
    const sdk = await fresh("instance");
    const server = new MemoryServer();
    const session = sdk.wrap(client(LIBRARIES[0]), { pin: new sdk.PreflightPin(), serverId: "a", onHeld: (error) => held.push(error) });
    await session.connect(server.connect());
    await session.callTool({ name: "make" });
    isTrapping = true;
    await assert.rejects(session.callTool({ name: "make" }), sdk.HeldError);
    isTrapping = false;
    const error = await session.callTool({ name: "send" }).catch((error) => error);
    assert.ok(error instanceof sdk.HeldError);
    assert.deepEqual([error.code, error.reason, error.verdict], [-32012, "internal", "HOLD"]);
    await assert.rejects(session.ping(), sdk.RefusedError);
    assert.deepEqual([server.calls.length, held.length], [1, 3]);
  } finally {
    WebAssembly.Instance = original;
  }
});

test("a home without its program is an error, and every call is held", async () => {
  const server = new MemoryServer();
  assert.throws(() => wrapTransport(server.connect(), { pin: new HomePin({ program: "holdpoint" }), serverId: "a" }), /absolute path/);
  const session = wrap(client(LIBRARIES[0]), { pin: new HomePin({ program: "/nowhere/holdpoint" }), serverId: "a" });
  await assert.rejects(session.connect(server.connect()), RefusedError);
  assert.deepEqual([server.calls, server.others], [[], []]);
});

test("a message that is no JSON is refused", async () => {
  const transport = wrapTransport(new MemoryServer().connect(), { pin: new PreflightPin(), serverId: "a" });
  const loop = {};
  loop.loop = loop;
  for (const message of [loop, undefined, () => {}, { id: 1n }]) {
    await assert.rejects(transport.send(message), HeldError);
  }
  await assert.rejects(transport.send("text"), RefusedError);
});
