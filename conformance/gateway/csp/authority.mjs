// An authorization server on loopback for tests: npm `oidc-provider`, with RFC 8693's token exchange registered.
// usage: node authority.mjs PORT GATEWAY_AUDIENCE SERVER_AUDIENCE CLIENT_SECRET
// The clients `caller-a` and `caller-b` get access tokens for the gateway by client credentials; the client `gateway` may
// exchange such a token for one whose audience is the server's, and for that audience alone.
import { generateKeyPair, exportJWK, SignJWT, jwtVerify, createLocalJWKSet } from 'jose';
import { Provider } from 'oidc-provider';

const [port, gatewayAudience, serverAudience, secret] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const { privateKey } = await generateKeyPair('ES256', { extractable: true });
const jwk = { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'one' };
const { d, ...publicJwk } = jwk;
const keys = createLocalJWKSet({ keys: [publicJwk] });
const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange';
const accessToken = 'urn:ietf:params:oauth:token-type:access_token';

const client = (client_id, grant_types) => ({
  client_id, client_secret: secret, grant_types, redirect_uris: [], response_types: [], id_token_signed_response_alg: 'ES256',
});
const provider = new Provider(issuer, {
  clients: [
    client('caller-a', ['client_credentials']),
    client('caller-b', ['client_credentials']),
    client('gateway', ['client_credentials', exchange]),
  ],
  jwks: { keys: [jwk] },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => gatewayAudience,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: 'read write', audience: resource, accessTokenTTL: 600, accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
  extraTokenClaims: (_ctx, token) => ({ groups: token.clientId === 'caller-b' ? ['writers'] : [] }),
});

provider.registerGrantType(exchange, async (ctx) => {
  const { params, client } = ctx.oidc;
  const refuse = (status, error) => { ctx.status = status; ctx.body = { error }; };
  if (params.subject_token_type !== accessToken) return refuse(400, 'invalid_request');
  if (params.audience !== serverAudience) return refuse(400, 'invalid_target');
  let subject;
  try {
    subject = (await jwtVerify(params.subject_token, keys, { issuer, audience: gatewayAudience })).payload;
  } catch {
    return refuse(400, 'invalid_grant');
  }
  const token = await new SignJWT({ act: { sub: client.clientId }, scope: params.scope, client_id: subject.client_id })
    .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'at+jwt' })
    .setIssuer(issuer).setAudience(serverAudience).setSubject(subject.sub).setIssuedAt()
    .setExpirationTime('300s').setJti(crypto.randomUUID()).sign(privateKey);
  ctx.set('cache-control', 'no-store');
  ctx.body = { access_token: token, issued_token_type: accessToken, token_type: 'Bearer', expires_in: 300 };
}, ['subject_token', 'subject_token_type', 'requested_token_type', 'audience', 'resource', 'scope'], ['resource']);

provider.listen(Number(port), '127.0.0.1', () => console.log(`ready ${issuer}`));
