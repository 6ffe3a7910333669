// An MCP server on loopback that takes only tokens of one authorization server for itself, with the TypeScript SDK.
// usage: node server.mjs FOLDER PORT ISSUER   (FOLDER has @modelcontextprotocol/sdk)
// Its one tool says who the token is about. Every call is written to standard output.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, port, issuer] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(folder, 'package.json')));
const from = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer } = await from('@modelcontextprotocol/sdk/server/mcp.js');
const { StreamableHTTPServerTransport } = await from('@modelcontextprotocol/sdk/server/streamableHttp.js');
const { requireBearerAuth } = await from('@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js');
const { createRemoteJWKSet, jwtVerify } = await from('jose');
const { default: express } = await from('express');

const resource = `http://127.0.0.1:${port}/mcp`;
const metadata = `http://127.0.0.1:${port}/.well-known/oauth-protected-resource/mcp`;
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
const { InvalidTokenError } = await from('@modelcontextprotocol/sdk/server/auth/errors.js');
const verifier = {
  async verifyAccessToken(token) {
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: resource, clockTolerance: 0 });
      return { token, clientId: payload.client_id, scopes: [], expiresAt: payload.exp, extra: { sub: payload.sub } };
    } catch (error) {
      throw new InvalidTokenError(error.message);
    }
  },
};

const app = express();
app.use(express.json());
app.get('/.well-known/oauth-protected-resource/mcp', (_request, response) => {
  response.json({ resource, authorization_servers: [issuer], scopes_supported: ['read'] });
});
app.post('/mcp', requireBearerAuth({ verifier, resourceMetadataUrl: metadata }), async (request, response) => {
  const server = new McpServer({ name: 'notes', version: '1.0.0' });
  server.registerTool('whoami', { description: 'Says whose account is used.' }, async (extra) => {
    const sub = extra.authInfo?.extra?.sub;
    console.log(JSON.stringify({ called: sub }));
    return { content: [{ type: 'text', text: `you are ${sub}` }] };
  });
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  response.on('close', () => { transport.close(); server.close(); });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
app.get('/mcp', (_request, response) => response.status(405).end());
app.listen(Number(port), '127.0.0.1', () => console.log(JSON.stringify({ ready: resource })));
