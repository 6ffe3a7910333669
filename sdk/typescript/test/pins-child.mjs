// A process that repeatedly approves definitions of an in-memory server, on a file that other
// processes write too.

import { PreflightPin, wrap } from "@holdpoint/sdk";
import { LIBRARIES, MemoryServer, client, tool } from "./stage.mjs";

const [, , pins, tag] = process.argv;
const server = new MemoryServer();
const session = wrap(client(LIBRARIES[0]), { pin: new PreflightPin(pins), serverId: "reports", relistMaxAge: 0 });
await session.connect(server.connect());
for (let n = 0; n < 8; n++) {
  server.tools[0] = tool("make", `${tag} ${n}`);
  const call = () => session.callTool({ name: "make", arguments: {} });
  const held = await call().catch((error) => error);
  await held.repin(tag);
  process.stdout.write(`${n}\n`);
  await call();
}
