// Shared by the tests: an in-memory server that can change, clients of both major versions, and the
// program's scenarios.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as Stdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as Client2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as Stdio2 } from "@modelcontextprotocol/client/stdio";

export const root = new URL("../../../", import.meta.url).pathname;

/** Both major versions of the client library. */
export const LIBRARIES = [
  { name: "@modelcontextprotocol/sdk 1.x", Client: Client1, Stdio: Stdio1 },
  { name: "@modelcontextprotocol/client 2.x", Client: Client2, Stdio: Stdio2 },
];

export function client(library) {
  return new library.Client({ name: "test", version: "1" }, {});
}

/** The program, if it was built: the scenarios of the drift battery are in it. */
export const program = [process.env.HOLDPOINT_BINARY, join(root, "target/debug/holdpoint"), join(root, "target/release/holdpoint")].find(
  (path) => path && existsSync(path),
);

/** A real server that was installed for the tests. */
export function installed(name, version) {
  const folder = process.env.HOLDPOINT_TEST_SERVERS ?? join(root, ".cache/servers");
  const path = join(folder, name, version, "launch");
  return existsSync(path) ? path : undefined;
}

/** With `CI=true` a check that cannot run fails. */
export function skip(what) {
  if (process.env.CI === "true") {
    throw new Error(`not there: ${what}`);
  }
  return { skip: `not there: ${what}` };
}

export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "holdpoint-sdk-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export const tool = (name, description, properties = { title: { type: "string" } }) => ({
  name,
  description,
  inputSchema: { type: "object", properties },
});

/** A server in this process, as the other end of a transport. */
export class MemoryServer {
  tools = [tool("make", "Makes a report."), tool("send", "Sends it.")];
  prompts = undefined;
  instructions = undefined;
  lists = 0;
  calls = [];
  others = [];
  listFails = undefined;
  isSilent = false;

  /** A new connection to it. */
  connect() {
    const server = this;
    const transport = {
      start: async () => {},
      close: async () => transport.onclose?.(),
      async send(message) {
        const answer = server.answer(message);
        if (answer) queueMicrotask(() => transport.onmessage?.(answer));
      },
    };
    this.transport = transport;
    return transport;
  }

  notify(method) {
    this.transport.onmessage?.({ jsonrpc: "2.0", method });
  }

  answer(message) {
    const { id, method, params } = message;
    const result = (result) => ({ jsonrpc: "2.0", id, result });
    switch (method) {
      case "initialize":
        return result({
          protocolVersion: params.protocolVersion,
          capabilities: { tools: { listChanged: true }, ...(this.prompts && { prompts: {} }) },
          serverInfo: { name: "memory", version: "1" },
          ...(this.instructions && { instructions: this.instructions }),
        });
      case "tools/list":
        this.lists++;
        if (this.isSilent) return undefined;
        if (this.listFails) return { jsonrpc: "2.0", id, error: this.listFails };
        return result(JSON.parse(JSON.stringify({ tools: this.tools })));
      case "prompts/list":
        return result({ prompts: this.prompts ?? [] });
      case "tools/call":
        this.calls.push(params);
        return result({ content: [{ type: "text", text: "done" }] });
      case undefined:
        return undefined;
      default:
        this.others.push(method);
        return id === undefined ? undefined : result({});
    }
  }
}

/** Waits until something is so, for a while. */
export async function until(is) {
  const end = Date.now() + 20_000;
  while (!(await is())) {
    if (Date.now() > end) throw new Error("it did not come about in time");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A case of the drift battery as a process, which changes when it is told to. */
export class Scenario {
  constructor(t, name, ...args) {
    this.folder = folder(t);
    this.state = join(this.folder, "state");
    this.record = join(this.folder, "record");
    writeFileSync(this.state, "before");
    writeFileSync(this.record, "");
    this.launch = { command: program, args: ["scenario", name, "--state", this.state, "--record", this.record, ...args] };
  }

  change() {
    writeFileSync(this.state, "after");
  }

  /** How many calls of tools reached the server. */
  get calls() {
    const lines = readFileSync(this.record, "utf8").split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line)).filter(({ method }) => method === "tools/call").length;
  }
}
