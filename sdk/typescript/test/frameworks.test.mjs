// Frameworks that use a wrapped session with two releases of a real server: they work, and changes
// in the newer one are held.

import assert from "node:assert/strict";
import { test } from "node:test";
import { createMCPClient } from "@ai-sdk/mcp";
import { loadMcpTools } from "@langchain/mcp-adapters";
import { HeldError, PreflightPin, wrap, wrapTransport } from "@holdpoint/sdk";
import { LIBRARIES, client, installed, skip } from "./stage.mjs";

const [library] = LIBRARIES;
const [OLD, NEW] = ["2025.9.25", "2026.8.31"].map((version) => installed("server-everything", version));
const settings = OLD && NEW ? {} : skip("server-everything: run ./scripts/install-test-tools");
const launch = (command) => new library.Stdio({ command, args: ["stdio"], stderr: "ignore" });
const options = (pin, held) => ({ pin, serverId: "everything", onHeld: (error) => held.push(error) });

test("@langchain/mcp-adapters: tools of a wrapped client", settings, async (t) => {
  const [pin, held] = [new PreflightPin(), []];
  const tools = async (command) => {
    const session = wrap(client(library), options(pin, held));
    await session.connect(launch(command));
    t.after(() => session.close());
    return loadMcpTools("everything", session);
  };
  const echo = (list) => list.find(({ name }) => name === "echo");
  assert.match(JSON.stringify(await echo(await tools(OLD)).invoke({ message: "hello" })), /hello/);
  assert.deepEqual(held, []);
  const after = await tools(NEW);
  // The framework replaces the error; `onHeld` still reports what was held.
  await assert.rejects(echo(after).invoke({ message: "hello" }), /holdpoint/);
  assert.ok(held[0] instanceof HeldError);
  assert.equal(held[0].toolName, "echo");
  await held[0].repin("ada");
  assert.match(JSON.stringify(await echo(after).invoke({ message: "again" })), /again/);
});

test("the AI SDK's MCP client: tools over a wrapped transport", settings, async (t) => {
  const [pin, held] = [new PreflightPin(), []];
  const tools = async (command) => {
    const mcp = await createMCPClient({ transport: wrapTransport(launch(command), options(pin, held)) });
    t.after(() => mcp.close());
    return mcp.tools();
  };
  const echo = ({ echo }) => echo.execute({ message: "hello" }, { toolCallId: "1", messages: [] });
  assert.match(JSON.stringify(await echo(await tools(OLD))), /hello/);
  const after = await tools(NEW);
  await assert.rejects(echo(after), HeldError);
  await held[0].repin("ada");
  assert.match(JSON.stringify(await echo(after)), /hello/);
});
