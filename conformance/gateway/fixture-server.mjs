#!/usr/bin/env node
// An MCP server with everything that the conformance suite asks a server for, in both protocol eras on one endpoint.
// It is the baseline for the gateway: what passes against this server must pass through the gateway too.
//
// usage: node fixture-server.mjs [--port N] [--era sessions|stateless|both]
//
// Prints one line with its address once it listens. Plain Node (20 or later), no dependencies.
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { complete, getPrompt, listPrompts, listResources, listTemplates, readResource } from './fixture/content.mjs';
import { MethodNotFound, RpcError, UnsupportedVersion } from './fixture/errors.mjs';
import { isLocal, readBody, sendJson, sendNothing } from './fixture/http.mjs';
import { SESSION_VERSIONS, Sessions } from './fixture/sessions.mjs';
import { Stateless, STATELESS_VERSIONS } from './fixture/stateless.mjs';
import { findTool, listTools } from './fixture/tools.mjs';

// What both eras serve, and what changes in it.
class Fixture {
  serverInfo = { name: 'conformance-fixture', version: '1.0.0' };
  instructions = 'A server for conformance tests.';
  capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    completions: {},
    logging: {},
  };
  hiddenTools = new Set();
  hiddenPrompts = new Set();
  #listeners = [];

  onChange(listener) {
    this.#listeners.push(listener);
  }

  toggleTool(name) {
    toggle(this.hiddenTools, name);
    this.#announce('notifications/tools/list_changed');
  }

  togglePrompt(name) {
    toggle(this.hiddenPrompts, name);
    this.#announce('notifications/prompts/list_changed');
  }

  #announce(method, params) {
    this.#listeners.forEach((listener) => listener(method, params));
  }

  // The result of a method that both eras have, else nothing. `call` makes the call that a handler gets.
  async run(method, params, call) {
    switch (method) {
      case 'tools/list':
        return { tools: listTools(this.hiddenTools) };
      case 'tools/call':
        return findTool(params.name, this.hiddenTools).handler(call());
      case 'prompts/list':
        return { prompts: listPrompts(this.hiddenPrompts) };
      case 'prompts/get':
        return getPrompt(params.name, this.hiddenPrompts, call());
      case 'resources/list':
        return { resources: listResources() };
      case 'resources/templates/list':
        return { resourceTemplates: listTemplates() };
      case 'resources/read':
        return { contents: readResource(params.uri) };
      case 'completion/complete':
        return complete(params.ref, params.argument);
      default:
        return undefined;
    }
  }
}

function toggle(hidden, name) {
  if (!hidden.delete(name)) {
    hidden.add(name);
  }
}

// The stateless era names itself in a header and in each request; sessions came before both.
function isStateless(headers, message) {
  const version = headers['mcp-protocol-version'];
  const declared = message?.params?._meta?.['io.modelcontextprotocol/protocolVersion'];
  return (
    (version !== undefined && !SESSION_VERSIONS.includes(version)) ||
    (declared !== undefined && headers['mcp-session-id'] === undefined)
  );
}

const refuse = (response, status, code, message) => sendJson(response, status, new RpcError(code, message).body(null));

function makeHandler(era) {
  const fixture = new Fixture();
  const sessions = era !== 'stateless' && new Sessions(fixture);
  const stateless = era !== 'sessions' && new Stateless(fixture);

  async function post(request, response) {
    let message;
    try {
      message = JSON.parse(await readBody(request));
    } catch {
      refuse(response, 400, -32700, 'The body is not JSON');
      return;
    }
    if (typeof message !== 'object' || message === null || Array.isArray(message) || message.jsonrpc !== '2.0') {
      refuse(response, 400, -32600, 'The body is not one JSON-RPC message');
    } else if (stateless && isStateless(request.headers, message)) {
      await stateless.post(request, response, message);
    } else if (sessions) {
      await sessions.post(request, response, message);
    } else if (message.method === 'initialize') {
      const requested = String(message.params?.protocolVersion);
      sendJson(response, 400, new UnsupportedVersion(requested, STATELESS_VERSIONS).body(message.id));
    } else {
      await stateless.post(request, response, message);
    }
  }

  async function handle(request, response) {
    const hasSession = sessions && !isStateless(request.headers);
    if (!isLocal(request.headers)) {
      refuse(response, 403, -32000, 'Host or Origin is not local');
    } else if (request.url !== '/mcp') {
      sendJson(response, 404, new MethodNotFound(request.url).body(null));
    } else if (request.method === 'POST') {
      await post(request, response);
    } else if (request.method === 'GET' && hasSession) {
      sessions.listen(request, response);
    } else if (request.method === 'DELETE' && hasSession) {
      sessions.delete(request, response);
    } else {
      sendNothing(response, 405, { Allow: hasSession ? 'POST, GET, DELETE' : 'POST' });
    }
  }

  const close = () => stateless && stateless.close();
  return { handle, close };
}

const { values: options } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    era: { type: 'string', default: 'both' },
  },
});
if (!['sessions', 'stateless', 'both'].includes(options.era)) {
  console.error(`unknown era \`${options.era}\`: sessions, stateless or both`);
  process.exit(2);
}
const { handle, close } = makeHandler(options.era);
const server = createServer((request, response) => {
  handle(request, response).catch((error) => {
    console.error(error);
    response.destroy();
  });
});
server.listen(Number(options.port), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/mcp`);
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    close();
    server.close();
    server.closeAllConnections();
  });
}
