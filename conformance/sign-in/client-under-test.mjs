#!/usr/bin/env node
// `holdpoint run --sign-in` as a client that the conformance suite tests: starts it in front of the suite's server, then lists and
// calls every tool through it. The suite appends the URL of its server; what it wants told is in its environment.
//
// usage: HOLDPOINT=FILE node client-under-test.mjs URL
//
// Plain Node (20 or later), no dependencies.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gate, here } from './bench.mjs';

const [url] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario = '', MCP_CONFORMANCE_CONTEXT = '{}', MCP_CONFORMANCE_PROTOCOL_VERSION = '2025-11-25' } = process.env;
const context = JSON.parse(MCP_CONFORMANCE_CONTEXT);
const VERSION = MCP_CONFORMANCE_PROTOCOL_VERSION;
const PREFIX = 'io.modelcontextprotocol/';

// What a person types in addition: the client that they registered, or the address of its document.
async function words(folder) {
  const all = ['--server', 'scenario', '--url', url, '--sign-in'];
  if (context.client_id) all.push('--client-id', context.client_id);
  else if (scenario === 'auth/basic-cimd') all.push('--client-id', 'https://conformance-test.local/client-metadata.json');
  if (context.client_secret) {
    // A person knows the issuer that they registered the client at.
    const place = new URL(`/.well-known/oauth-protected-resource${new URL(url).pathname}`, url);
    const { authorization_servers: servers } = await (await fetch(place)).json();
    all.push('--client-secret', 'env:CLIENT_SECRET', '--issuer', servers[0]);
  }
  return all;
}

const folder = mkdtempSync(join(tmpdir(), 'client-under-test-'));
try {
  const env = {
    ...process.env,
    HOLDPOINT_HOME: join(folder, 'home'),
    BROWSER: `node ${here}plain-browser.mjs`,
    CLIENT_SECRET: context.client_secret ?? '',
    DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent',
    XDG_RUNTIME_DIR: folder,
  };
  const session = gate(await words(folder), env);
  const isModern = VERSION >= '2026';
  const meta = isModern && {
    _meta: {
      [`${PREFIX}protocolVersion`]: VERSION,
      [`${PREFIX}clientCapabilities`]: {},
      [`${PREFIX}clientInfo`]: { name: 'conformance', version: '1' },
    },
  };
  const ask = (method, params = {}) => session.ask(method, { ...params, ...meta });
  const said = async (answer) => {
    const { error } = await answer;
    if (error) console.error(JSON.stringify(error));
    return answer;
  };
  if (isModern) await said(ask('server/discover'));
  else await said(session.greet());
  const { result } = await said(ask('tools/list'));
  for (const { name } of result?.tools ?? []) {
    await said(ask('tools/call', { name, arguments: {} }));
  }
  await session.end();
  console.error(session.said());
} finally {
  rmSync(folder, { recursive: true, force: true });
}
