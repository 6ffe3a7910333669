// An agent loop without a model: it follows a fixed plan, calls tools, and stops when a call is
// held.
//
//   node agent.mjs COMMAND [ARGUMENT...]     the server to use, for example: npx -y @modelcontextprotocol/server-everything
//
// Pins are stored in ./pins, so that a second run compares with the first.

import { createInterface } from "node:readline/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { HeldError, PreflightPin, wrap } from "@holdpoint/sdk";

const [command, ...args] = process.argv.slice(2);
const session = wrap(new Client({ name: "example", version: "1.0.0" }), { pin: new PreflightPin("./pins"), serverId: "example" });
await session.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));

const { tools } = await session.listTools();
console.log(`the model would be shown ${tools.length} tools: ${tools.map(({ name }) => name).join(", ")}`);

// The decisions that a model would make, step by step.
const plan = [{ tool: process.env.TOOL ?? tools[0]?.name, arguments: JSON.parse(process.env.ARGUMENTS ?? "{}") }];
for (const step of plan) {
  console.log(await act(step));
}
await session.close();

/** Makes a call and returns what the model is told of it. */
async function act(step) {
  try {
    const { content } = await session.callTool({ name: step.tool, arguments: step.arguments });
    return content.map(({ text }) => text ?? "").join("\n");
  } catch (error) {
    if (!(error instanceof HeldError)) throw error;
    if (!(await isAccepted(error))) {
      // The message is for the model: it contains no unaccepted text.
      return error.message;
    }
    await error.repin(process.env.USER ?? "application");
    return act(step);
  }
}

/** Shows a person what changed, and asks. */
async function isAccepted(held) {
  if (!process.stdin.isTTY) return false;
  console.log(`\nheld: ${held.toolName} of ${held.serverId} (${held.kinds.join(", ")})`);
  for (const { say, before, after } of held.evidence) {
    console.log(`  ${say}\n    before: ${before}\n    now:    ${after}`);
  }
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const answer = await lines.question("accept this definition? [y/N] ");
  lines.close();
  return answer.trim().toLowerCase() === "y";
}
