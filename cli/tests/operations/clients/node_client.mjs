// A client over HTTP, using a package from npm: `node_client.mjs FOLDER PACKAGE URL TOKEN CALLS`,
// for tests only.
//
// CALLS is a JSON list of names and arguments. Prints one JSON object: the names of the tools, and the text of each call.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, name, url, token, calls] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const isOlder = name === '@modelcontextprotocol/sdk';
const { Client } = require(isOlder ? `${name}/client/index.js` : name);
const { StreamableHTTPClientTransport } = require(isOlder ? `${name}/client/streamableHttp.js` : name);

setTimeout(() => process.exit(3), 100_000).unref();
const client = new Client({ name: 'test', version: '1' });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
const { tools } = await client.listTools();
const texts = [];
for (const [tool, args] of JSON.parse(calls)) {
  const { content } = await client.callTool({ name: tool, arguments: args });
  texts.push(content[0].text);
}
console.log(JSON.stringify({ tools: tools.map((tool) => tool.name), texts }));
await client.close();
