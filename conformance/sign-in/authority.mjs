#!/usr/bin/env node
// An authorization server on loopback, with npm's `oidc-provider`, for tests only: `authority.mjs FOLDER SECONDS [--dpop]`.
//
// FOLDER is where `oidc-provider` is installed, SECONDS how long access tokens last. Prints a JSON object a line: first its
// issuer, then each thing that happens. What tests need beyond OAuth is under /test: the tokens that were issued, and a way
// to end all grants.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, seconds, ...options] = process.argv.slice(2);
const { default: Provider } = await import(
  pathToFileURL(join(folder, 'node_modules/oidc-provider/lib/index.js')).href
);
const say = (thing) => process.stdout.write(`${JSON.stringify(thing)}\n`);

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

// Everything in memory, so that all of it can be ended and looked at.
const kept = new Map();
class Memory {
  constructor(model) {
    this.model = model;
  }
  key(id) {
    return `${this.model}:${id}`;
  }
  async upsert(id, payload) {
    kept.set(this.key(id), payload);
  }
  async find(id) {
    return kept.get(this.key(id));
  }
  async findByUserCode() {}
  async findByUid(uid) {
    return [...kept.entries()].find(([key, value]) => key.startsWith(`${this.model}:`) && value.uid === uid)?.[1];
  }
  async destroy(id) {
    kept.delete(this.key(id));
  }
  async revokeByGrantId(grantId) {
    for (const [key, value] of kept) {
      if (value.grantId === grantId) kept.delete(key);
    }
  }
  async consume(id) {
    const value = kept.get(this.key(id));
    if (value) value.consumed = Math.floor(Date.now() / 1000);
  }
}

const secrets = [];
const dpop = options.includes('--dpop');
const provider = new Provider(issuer, {
  adapter: Memory,
  clients: [
    {
      client_id: 'holdpoint-laptop',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      redirect_uris: ['http://127.0.0.1/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    },
    {
      client_id: 'mcp-server',
      client_secret: 'a-secret-of-the-test',
      redirect_uris: [],
      grant_types: [],
      response_types: [],
    },
  ],
  scopes: ['openid', 'offline_access', 'tools', 'more'],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  ttl: { AccessToken: Number(seconds), Grant: 3600, Session: 3600, Interaction: 600, RefreshToken: 3600 },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === 'mcp-server' },
    dPoP: { enabled: dpop, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => dpop },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'tools more',
        audience: resource,
        accessTokenFormat: 'opaque',
        accessTokenTTL: Number(seconds),
      }),
    },
  },
});
provider.on('grant.success', (ctx) => {
  const { access_token: access, refresh_token: refresh } = ctx.body;
  secrets.push(access, refresh);
  say({ event: 'grant', type: ctx.oidc.params.grant_type, resource: ctx.oidc.params.resource, token_type: ctx.body.token_type });
});
provider.on('grant.error', (ctx, error) => say({ event: 'grant_error', error: error.error, detail: error.error_detail }));
provider.on('authorization.error', (_, error) => say({ event: 'authorization_error', error: error.error, detail: error.error_description }));
provider.on('server_error', (_, error) => say({ event: 'server_error', error: String(error.stack) }));
const handle = provider.callback();
server.on('request', (request, response) => {
  const path = new URL(request.url, issuer).pathname;
  if (path === '/test/secrets') {
    response.end(JSON.stringify(secrets.filter(Boolean)));
  } else if (path === '/test/end') {
    for (const key of kept.keys()) {
      if (!key.startsWith('Client:')) kept.delete(key);
    }
    response.end('{}');
  } else {
    if (path === '/token/revocation') say({ event: 'revocation' });
    handle(request, response);
  }
});
say({ issuer });
