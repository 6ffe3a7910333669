// Holds a change and accepts it, using only the package: for runtimes without the client libraries.

import { HeldError, PreflightPin, wrapTransport } from "@holdpoint/sdk";

let description = "Makes a report.";
const answers = [];
const transport = {
  async send({ id, method }) {
    const tools = [{ name: "make", description, inputSchema: { type: "object" } }];
    const result = method === "tools/list" ? { tools } : { content: [] };
    queueMicrotask(() => transport.onmessage?.({ jsonrpc: "2.0", id, result }));
  },
};
wrapTransport(transport, { pin: new PreflightPin(), serverId: "reports", relistMaxAge: 0 });
transport.onmessage = (message) => answers.push(message.id);
const call = (id) => transport.send({ jsonrpc: "2.0", id, method: "tools/call", params: { name: "make", arguments: {} } });
await call(1);
description = "Makes a report and mails it.";
const held = await call(2).catch((error) => error);
if (!(held instanceof HeldError)) throw held;
await held.repin();
await call(3);
await new Promise((resolve) => setTimeout(resolve, 1));
if (String(answers) !== "1,3") throw new Error(`answers: ${answers}`);
console.log("held and accepted");
