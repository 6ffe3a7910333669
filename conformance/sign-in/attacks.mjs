#!/usr/bin/env node
// Servers and authorization servers that lie: each sign-in is refused with its code, and a receipt says so.
// Run by ./scripts/sign-in. Plain Node (20 or later), no dependencies.
import { createServer } from 'node:http';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { bench, check, events, gate, here, run } from './bench.mjs';

// One server that is both; `lie` changes what it says.
async function liar(lie) {
  const seen = [];
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, origin);
    let body = '';
    for await (const piece of request) body += piece;
    seen.push({ path: url.pathname, body });
    const json = (value, status = 200, headers = {}) => {
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
      response.end(JSON.stringify(value));
    };
    const metadata = {
      issuer: origin,
      authorization_endpoint: `${origin}/authorize`,
      token_endpoint: `${origin}/token`,
      registration_endpoint: `${origin}/register`,
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
      ...lie.server?.(origin),
    };
    switch (url.pathname) {
      case '/mcp': {
        const place = lie.challenge?.(origin) ?? `${origin}/.well-known/oauth-protected-resource/mcp`;
        return json({}, 401, { 'WWW-Authenticate': `Bearer resource_metadata="${place}"` });
      }
      case '/.well-known/oauth-protected-resource/mcp':
        if (lie.redirectMetadata) return json({}, 302, { Location: `${origin}/elsewhere` });
        return json({ resource: `${origin}/mcp`, authorization_servers: [origin], ...lie.resource?.(origin) });
      case '/elsewhere':
        return json({ resource: `${origin}/mcp`, authorization_servers: [origin] });
      case '/.well-known/oauth-authorization-server':
        return json(metadata);
      case '/register':
        return json({ client_id: 'c', redirect_uris: JSON.parse(body).redirect_uris, ...lie.client?.(origin) }, 201);
      case '/authorize': {
        const asked = Object.fromEntries(url.searchParams);
        const back = new URL(asked.redirect_uri);
        const answer = { code: 'good', state: asked.state, iss: origin, ...lie.answer?.(origin, asked) };
        for (const [name, value] of Object.entries(answer)) {
          if (value !== undefined) back.searchParams.set(name, value);
        }
        response.writeHead(302, { Location: back.href });
        return response.end();
      }
      case '/token':
        if (lie.redirectToken) return json({}, 307, { Location: `${origin}/elsewhere` });
        return json(lie.token?.(body) ?? { access_token: 'at', token_type: 'Bearer', expires_in: 60 });
      default:
        return json({}, 404);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { url: `${origin}/mcp`, seen, end: () => server.closeAllConnections() || server.close() };
}

const ATTACKS = [
  ['mix-up: the answer names another issuer', 'issuer_mismatch', { answer: () => ({ iss: 'https://honest.example' }) }],
  ['mix-up: the answer names none though answers do', 'issuer_missing', { answer: () => ({ iss: undefined }) }],
  ['the metadata is of another issuer', 'metadata_issuer_mismatch', { server: () => ({ issuer: 'https://honest.example' }) }],
  ['PKCE downgrade: plain only', 'no_pkce', { server: () => ({ code_challenge_methods_supported: ['plain'] }) }],
  ['PKCE downgrade: not offered', 'no_pkce', { server: () => ({ code_challenge_methods_supported: undefined }) }],
  ['another server\'s audience', 'resource_mismatch', { resource: () => ({ resource: 'https://payroll.example/mcp' }) }],
  ['the audience of the whole host', 'resource_mismatch', { resource: (origin) => ({ resource: origin }) }],
  ['the challenge points to a cloud\'s metadata', 'bad_address', { challenge: () => 'http://169.254.169.254/latest/meta-data' }],
  ['the challenge points into the network', 'address_refused', { challenge: () => 'https://10.0.0.1/metadata' }],
  ['the issuer is in the network', 'address_refused', { resource: () => ({ authorization_servers: ['https://192.168.0.1'] }) }],
  ['the token endpoint is in the network', 'address_refused', { server: () => ({ token_endpoint: 'https://10.0.0.1/token' }) }],
  ['the token endpoint is not encrypted', 'bad_address', { server: () => ({ token_endpoint: 'http://as.example/token' }) }],
  ['the authorization page is a script', 'bad_address', { server: () => ({ authorization_endpoint: 'javascript:alert(1)' }) }],
  ['the authorization page is a file', 'bad_address', { server: () => ({ authorization_endpoint: 'file:///etc/passwd' }) }],
  ['the metadata redirects', 'redirect_refused', { redirectMetadata: true }],
  ['the token endpoint redirects with the code', 'redirect_refused', { redirectToken: true }],
  ['the client was registered with another redirect', 'unusable_answer', { client: () => ({ redirect_uris: ['https://evil.example/cb'] }) }],
  ['a client of another issuer', 'issuer_changed', { options: ['--client-id', 'c', '--issuer', 'https://honest.example'] }],
  ['only clients that the server knows', 'no_registration', { server: () => ({ registration_endpoint: undefined }) }],
  ['two codes in one answer', 'bad_answer', { answer: (_, asked) => ({ code: undefined, [`x&code=1&code=2&y`]: asked.state }) }],
  ['the person says no', 'denied', { answer: () => ({ code: undefined, error: 'access_denied' }) }],
  ['a bound token without a key', 'unusable_answer', { token: () => ({ access_token: 'at', token_type: 'DPoP' }) }],
  ['a token that ends a header', 'unusable_answer', { token: () => ({ access_token: 'a\r\nX-Evil: 1', token_type: 'Bearer' }) }],
];

await bench(async (folder) => {
  const home = join(folder, 'home');
  mkdirSync(home, { mode: 0o700 });
  const env = { ...process.env, HOLDPOINT_HOME: home, HOME: folder, BROWSER: `node ${here}plain-browser.mjs` };
  let before = 0;
  for (const [number, [name, code, lie]] of ATTACKS.entries()) {
    const { url, seen, end } = await liar(lie);
    const answer = await run(['sign-in', url, ...(lie.options ?? [])], env);
    const refused = events(home, 'sign_in.refuse');
    const reason = refused.at(-1)?.data?.reason;
    const isRefused = answer.code === 11 && refused.length === before + 1 && reason === code;
    check(`${name}: ${code}`, isRefused, { code: answer.code, err: answer.err, reason });
    const asked = seen.filter(({ path }) => path === '/elsewhere').length;
    check(`${name}: nothing else is reached`, asked === 0, seen);
    before = refused.length;

    // The same in the path of a host: its first request is refused, and nothing of it reaches the server.
    const session = gate(['--server', `liar-${number}`, '--url', url, '--sign-in', ...(lie.options ?? [])], env);
    const greeting = await session.greet();
    await session.end();
    const ran = events(home, 'sign_in.refuse').slice(before);
    const isOver = greeting.error?.data?.reason === 'credential_unavailable' && ran.length > 0 && ran.every(({ data }) => data.reason === code);
    check(`${name}: ${code} in run`, isOver, { greeting, said: session.said(), ran });
    before += ran.length;
    end();
  }

  // A code of somebody else, brought to the listener before and after the real answer.
  const injected = [];
  const { url, seen, end } = await liar({
    answer: (_, asked) => {
      injected.push(asked.redirect_uri);
      return {};
    },
  });
  const script = `node ${here}injecting-browser.mjs`;
  const answer = await run(['sign-in', url], { ...env, BROWSER: script });
  const refused = events(home, 'sign_in.refuse').slice(before);
  check('code injection: another state is refused, and the sign-in goes on', answer.code === 0 && refused.some(({ data }) => data.reason === 'state_mismatch'), answer);
  const codes = seen.filter(({ path }) => path === '/token').map(({ body }) => new URLSearchParams(body).get('code'));
  check('code injection: only the real code is redeemed, once', codes.join() === 'good', codes);
  check('replay: nothing listens any more', await fetch(`${injected[0]}?code=evil&state=x`).then(() => false, () => true));
  end();
});
