#!/usr/bin/env node
// The gateway as a client that the conformance suite tests: starts `holdpoint gateway` in front of the suite's server,
// then lists and calls every tool through it. What the suite's server sees is the gateway's own upstream side.
//
// usage: HOLDPOINT=FILE node client-under-test.mjs URL   (the suite appends the URL of its server)
//
// Plain Node (20 or later), no dependencies.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VERSION = '2026-07-28';
const PREFIX = 'io.modelcontextprotocol/';
const [url] = process.argv.slice(2);
const program = process.env.HOLDPOINT;
if (!url || !program) {
  console.error('usage: HOLDPOINT=FILE node client-under-test.mjs URL');
  process.exit(2);
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// Starts a gateway in front of one server. Returns the address of the server behind it, and a key.
async function startGateway(folder) {
  const port = await freePort();
  const configuration = join(folder, 'gateway.toml');
  mkdirSync(join(folder, 'home'));
  writeFileSync(join(folder, 'all.cedar'), '@id("all")\npermit (principal, action, resource);\n');
  writeFileSync(
    configuration,
    `[gateway]
listen = "127.0.0.1:${port}"
[auth.keys]
enabled = true
[policy]
files = ["all.cedar"]
[[server]]
id = "scenario"
url = "${url}"
trust = "verified"
`,
  );
  const env = { ...process.env, HOLDPOINT_HOME: join(folder, 'home') };
  const words = ['key', 'create', '--config', configuration, '--sub', 'conformance', '--json'];
  const { key } = JSON.parse(execFileSync(program, words, { env, encoding: 'utf8' }));
  const gateway = spawn(program, ['gateway', '--config', configuration], { env, stdio: ['ignore', 'inherit', 'inherit'] });
  for (let attempt = 0; attempt < 100 && gateway.exitCode === null; attempt++) {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    if (answer?.ok) {
      return { gateway, key, address: `http://127.0.0.1:${port}/servers/scenario/mcp` };
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the gateway did not start');
}

// A value that no header can carry as it is comes as base64.
function headerValue(text) {
  const isPlain = /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?');
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}

// The headers that the definition of a tool asks for.
function parameterHeaders(tool, args) {
  const headers = {};
  for (const [name, schema] of Object.entries(tool?.inputSchema?.properties ?? {})) {
    const value = args?.[name];
    if (schema['x-mcp-header'] !== undefined && value !== undefined && value !== null) {
      headers[`Mcp-Param-${schema['x-mcp-header']}`] = headerValue(String(value));
    }
  }
  return headers;
}

let nextId = 1;
async function ask({ address, key }, method, params = {}, headers = {}) {
  const body = {
    jsonrpc: '2.0',
    id: nextId++,
    method,
    params: {
      ...params,
      _meta: {
        [`${PREFIX}protocolVersion`]: VERSION,
        [`${PREFIX}clientCapabilities`]: { elicitation: {} },
        [`${PREFIX}clientInfo`]: { name: 'conformance', version: '1' },
      },
    },
  };
  const answer = await fetch(address, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${key}`,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': VERSION,
      'Mcp-Method': method,
      ...(params.name && { 'Mcp-Name': headerValue(params.name) }),
      ...headers,
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const events = text.split('\n').filter((line) => line.startsWith('data: '));
  return JSON.parse(events.length > 0 ? events.at(-1).slice(6) : text);
}

// Arguments with the required parameters alone.
function leastArguments({ inputSchema }) {
  const samples = { string: 'a', integer: 1, number: 1, boolean: true, object: {}, array: [], null: null };
  const properties = inputSchema.properties ?? {};
  return Object.fromEntries(
    (inputSchema.required ?? []).map((name) => [name, samples[properties[name]?.type] ?? 'a']),
  );
}

async function callTool(gateway, tools, tool, args) {
  const headers = parameterHeaders(tool, args);
  const call = (more) => ask(gateway, 'tools/call', { name: tool.name, arguments: args, ...more }, headers);
  const { result, error } = await call({});
  if (error) {
    console.error(`${tool.name}: ${JSON.stringify(error)}`);
    return;
  }
  if (result.resultType !== 'input_required') {
    return;
  }
  // Another call between the two rounds has nothing of them.
  const unrelated = tools.find(({ name }) => name.endsWith('_unrelated'));
  if (unrelated) {
    await ask(gateway, 'tools/call', { name: unrelated.name, arguments: {} });
  }
  const inputResponses = Object.fromEntries(
    Object.keys(result.inputRequests ?? {}).map((key) => [key, { action: 'accept', content: { confirmed: true } }]),
  );
  const state = result.requestState === undefined ? {} : { requestState: result.requestState };
  await call({ inputResponses, ...state });
}

const folder = mkdtempSync(join(tmpdir(), 'client-under-test-'));
let gateway;
try {
  gateway = await startGateway(folder);
  const { result } = await ask(gateway, 'tools/list');
  const tools = result.tools;
  console.error(`tools: ${tools.map(({ name }) => name).join(' ')}`);
  const wanted = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}').toolCalls;
  const calls = wanted ?? tools.map((tool) => ({ name: tool.name, arguments: leastArguments(tool) }));
  for (const { name, arguments: given } of calls) {
    // The gateway refuses a null that the schema does not allow before it asks the server; left out, it means the same.
    const args = Object.fromEntries(Object.entries(given ?? {}).filter(([, value]) => value !== null));
    const tool = tools.find((known) => known.name === name) ?? { name };
    // A tool that takes a schema is given the one that another tool has, as it came through the gateway.
    const takesSchema = tool.inputSchema?.properties?.schema && tools.find((other) => other !== tool);
    await callTool(gateway, tools, tool, takesSchema ? { schema: takesSchema.inputSchema } : args);
  }
} finally {
  if (gateway) {
    const ended = new Promise((resolve) => gateway.gateway.once('exit', resolve));
    gateway.gateway.kill();
    await ended;
  }
  rmSync(folder, { recursive: true, force: true });
}
