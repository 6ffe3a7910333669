// An OpenID provider or authorization server on loopback, with npm's `oidc-provider`, for tests only.
// usage: node provider.mjs FOLDER PORT CONFIG   (FOLDER has the package; CONFIG is JSON: clients, resource, ttl, registration, dpop)
// Anyone signs in with any name; the name is the subject. Every request is written to standard output, as a line of JSON.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, port, config] = process.argv.slice(2);
const { default: Provider } = await import(
  pathToFileURL(join(folder, 'node_modules/oidc-provider/lib/index.js')).href
);
const { clients = [], resource, ttl = 600, registration = false, dpop = false } = JSON.parse(config);
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  clients,
  claims: { openid: ['sub'], email: ['email'] },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com` }),
  }),
  conformIdTokenClaims: false,
  rotateRefreshToken: true,
  issueRefreshToken: () => true,
  ttl: { AccessToken: ttl, RefreshToken: 3600, IdToken: 600, Interaction: 600, Session: 3600, Grant: 3600 },
  features: {
    devInteractions: { enabled: true },
    revocation: { enabled: true },
    registration: { enabled: registration },
    dPoP: { enabled: dpop, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => dpop },
    resourceIndicators: {
      enabled: Boolean(resource),
      defaultResource: () => resource,
      getResourceServerInfo: (_ctx, named) => ({
        scope: 'read', audience: named, accessTokenTTL: ttl, accessTokenFormat: 'jwt', jwt: { sign: { alg: 'RS256' } },
      }),
    },
  },
});
const said = (line) => console.log(JSON.stringify(line));
provider.on('grant.success', (ctx) => said({ grant: ctx.oidc.params.grant_type, client: ctx.oidc.client.clientId, type: ctx.body.token_type }));
provider.on('grant.error', (_ctx, error) => said({ error: error.error, description: error.error_description }));
provider.on('grant.revoked', (_ctx, grant) => said({ revoked: grant }));
// What must be found nowhere else: with the token's own value as its id.
provider.on('refresh_token.saved', (token) => said({ secret: token.jti }));
provider.on('refresh_token.destroyed', (token) => said({ revoked_token: token.kind }));
provider.on('server_error', (_ctx, error) => said({ server_error: String(error) }));
provider.listen(Number(port), '127.0.0.1', () => said({ ready: issuer }));
