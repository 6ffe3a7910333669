// An MCP server on loopback that takes only tokens of one authorization server for itself, with the TypeScript SDK.
// usage: node server.mjs FOLDER PORT ISSUER [--dpop]   (FOLDER has @modelcontextprotocol/sdk)
// Its one tool says who the token is about. Every call is written to standard output. With --dpop it takes only tokens that are
// bound to a key (RFC 9449), each request with a proof of its own that has the nonce of the moment; the tool then says which key.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { requireProof } from '../../sign-in/proof.mjs';

const [folder, port, issuer, ...options] = process.argv.slice(2);
const dpop = options.includes('--dpop');
const require = createRequire(pathToFileURL(join(folder, 'package.json')));
const from = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer } = await from('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = await from('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { requireBearerAuth } = await from('@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js');
const jose = await from('jose');
const { default: express } = await from('express');

const resource = `http://127.0.0.1:${port}/mcp`;
const metadata = `http://127.0.0.1:${port}/.well-known/oauth-protected-resource/mcp`;
const keys = jose.createRemoteJWKSet(new URL(`${issuer}/jwks`));
const { InvalidTokenError } = await from('@modelcontextprotocol/sdk/server/auth/errors.js');
async function verify(token) {
  const { payload } = await jose.jwtVerify(token, keys, { issuer, audience: resource, clockTolerance: 0 });
  const key = payload.cnf?.jkt;
  return { token, clientId: payload.client_id, scopes: [], expiresAt: payload.exp, key, extra: { sub: payload.sub, key } };
}
const verifier = {
  async verifyAccessToken(token) {
    try {
      return await verify(token);
    } catch (error) {
      throw new InvalidTokenError(error.message);
    }
  },
};

const app = express();
app.use(express.json());
app.get('/.well-known/oauth-protected-resource/mcp', (_request, response) => {
  response.json({ resource, authorization_servers: [issuer], scopes_supported: ['read'], dpop_bound_access_tokens_required: dpop });
});
const guard = dpop ? requireProof({ jose, verify, resource, metadata }) : requireBearerAuth({ verifier, resourceMetadataUrl: metadata });
app.post('/mcp', guard, async (request, response) => {
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  server.registerTool('whoami', { description: 'Says whose account is used.' }, async (extra) => {
    const { sub, key } = extra.authInfo.extra;
    console.log(JSON.stringify({ called: sub, key }));
    return { content: [{ type: 'text', text: `you are ${sub}${key ? ` with the key ${key}` : ''}` }] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => { transport.close(); server.close(); });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.get('/mcp', (_request, response) => response.status(405).end());
app.listen(Number(port), '127.0.0.1', () => console.log(JSON.stringify({ ready: resource })));
