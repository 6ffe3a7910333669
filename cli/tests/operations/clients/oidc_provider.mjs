// An OIDC provider on loopback, with npm's `oidc-provider`: `oidc_provider.mjs FOLDER AUDIENCE`, for tests only.
//
// Prints one JSON object once it listens: the issuer, its keys, and two client-credentials tokens,
// one for the audience and one for a different audience. Runs until it is ended.
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, audience] = process.argv.slice(2);
const { default: Provider } = await import(
  pathToFileURL(join(folder, 'node_modules/oidc-provider/lib/index.js')).href
);

const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'agent',
      client_secret: 'a-secret-of-the-test',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    },
  ],
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, resource) => ({
        scope: 'mcp',
        audience: resource,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
server.on('request', provider.callback());

async function tokenFor(resource) {
  const answer = await fetch(`${issuer}/token`, {
    method: 'POST',
    headers: { Authorization: `Basic ${Buffer.from('agent:a-secret-of-the-test').toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'mcp', resource }),
  });
  const { access_token: token, ...rest } = await answer.json();
  if (!token) {
    throw new Error(JSON.stringify(rest));
  }
  return token;
}

console.log(
  JSON.stringify({
    issuer,
    jwks_uri: `${issuer}/jwks`,
    token: await tokenFor(audience),
    other: await tokenFor('https://elsewhere.example'),
  }),
);
