#!/usr/bin/env node
// A person's way with a server that demands tokens: sign in, call, expire, refresh, revoke, sign in again, sign out; wired and
// unwired; without a keyring. Run by ./scripts/sign-in, within a D-Bus session that has a keyring.
//
// usage: HOLDPOINT=FILE SERVERS=FOLDER journey.mjs typescript|python [--dpop]
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { bench, check, events, filesWith, gate, here, run, start } from './bench.mjs';

const [kind, ...options] = process.argv.slice(2);
const dpop = options.includes('--dpop') ? ['--dpop'] : [];
const { SERVERS, BROWSER = `node ${here}plain-browser.mjs` } = process.env;
const newest = (name) => join(SERVERS, name, readdirSync(join(SERVERS, name)).sort().at(-1));
const SECONDS = 4;

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function startServer(issuer) {
  if (kind === 'python') {
    const python = join(newest('mcp-server-time'), 'venv/bin/python');
    const server = start(python, [join(here, 'server.py'), issuer, String(await freePort())]);
    const { url } = await server.next(({ url }) => url, 'the server');
    for (let attempt = 0; attempt < 200; attempt++) {
      if (await fetch(url, { method: 'POST' }).catch(() => undefined)) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return url;
  }
  const server = start('node', [join(here, 'server.mjs'), newest('sdk'), issuer, ...dpop]);
  return (await server.next(({ url }) => url, 'the server')).url;
}

const text = (answer) => answer.result?.content?.[0]?.text;
const keyring = () => {
  try {
    return execFileSync('secret-tool', ['search', '--all', 'service', 'holdpoint'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    return String(error.stdout ?? '');
  }
};

await bench(async (folder) => {
  const home = join(folder, 'home');
  mkdirSync(join(folder, '.cursor'), { recursive: true });
  const env = { ...process.env, BROWSER, HOLDPOINT_HOME: home, HOME: folder };
  const authority = start('node', [join(here, 'authority.mjs'), newest('oidc-provider'), String(SECONDS), ...dpop]);
  const { issuer } = await authority.next((line) => line.issuer, 'the authorization server');
  const url = await startServer(issuer);
  const said = [];

  const open = await run(['sign-in', 'https://127.0.0.1:1/mcp'], env);
  check('a server that cannot be reached is said to be', open.code === 11, open);

  const signedIn = await run(['sign-in', url, '--json'], env);
  said.push(signedIn.err);
  check('sign-in: the browser comes back with a code', signedIn.code === 0, signedIn);
  const { server: id, state, scopes } = JSON.parse(signedIn.out).sign_ins[0];
  check('sign-in: the tokens are in the keyring', state === 'signed_in' && keyring().includes('Holdpoint'));
  check('sign-in: the scopes of the challenge', scopes.join(' ') === 'tools', scopes);
  const grant = await authority.next(({ type }) => type === 'authorization_code', 'the grant');
  check('sign-in: the token is for this server alone', grant.resource === url, grant);
  const type = dpop.length ? 'DPoP' : 'Bearer';
  check(`sign-in: the token is of the type ${type}`, grant.token_type === type, grant);
  check('sign-in: a receipt says so', events(home, 'sign_in.complete').length === 1);

  let session = gate(['--server', id, '--url', url, '--sign-in', '--posture', 'guard'], env);
  await session.greet();
  check('call: goes through with the token', text(await session.add(1, 2)) === 'the sum is 3');
  await authority.next(({ type }) => type === 'refresh_token', 'a refresh in the background');
  check('refresh: happens before the token ends, without a call', true);
  await authority.next(({ type }) => type === 'refresh_token', 'a second refresh, with the rotated token');
  check('refresh: calls go on', text(await session.add(2, 3)) === 'the sum is 5');

  await fetch(`${issuer}/test/end`);
  const ended = await session.add(1, 1);
  const { code, message, data } = ended.error ?? {};
  check('revoked: the call is refused as credential_unavailable', code === 1013 && data?.reason === 'credential_unavailable', ended);
  check('revoked: the refusal says what to type', message?.includes(`holdpoint sign-in ${id}`), message);
  check('revoked: the tokens are gone from the keyring', !keyring().includes('Holdpoint'));
  check('revoked: a receipt says so', events(home, 'sign_in.end')[0]?.data?.reason === 'grant_ended', events(home, 'sign_in.end'));

  const again = await run(['sign-in', id], env);
  said.push(again.out, again.err);
  check('sign-in again by id: works while the gate runs', again.code === 0, again);
  if (kind === 'python') {
    // The Python SDK binds a session to the client that began it, and each sign-in registers one: the host starts anew.
    await session.end();
    said.push(session.said());
    session = gate(['--server', id, '--url', url, '--sign-in'], env);
    await session.greet();
  }
  check('sign-in again: calls go through', text(await session.add(3, 4)) === 'the sum is 7');
  const status = await run(['status', id], env);
  check('status: says that Holdpoint holds the tokens', status.out.includes('Holdpoint holds its tokens'), status.out);
  const doctor = await run(['doctor', '--json'], env);
  check('doctor: says so too', doctor.out.includes('"signed_in"'), doctor.out);
  const checked = await run(['check', id], env);
  check('check by id: signs in without a browser', checked.code === 0, checked);
  await session.end();
  said.push(session.said());

  const out = await run(['sign-out', id], env);
  said.push(out.out, out.err);
  await authority.next(({ event }) => event === 'revocation', 'the revocation');
  check('sign-out: revoked and deleted', out.code === 0 && out.out.includes('revoked at') && !keyring().includes('Holdpoint'), out);
  check('sign-out: a receipt says so', events(home, 'sign_in.out')[0]?.data?.revoked === true);
  check('sign-out: twice is an error', (await run(['sign-out', id], env)).code === 2);

  // Without a keyring.
  const bare = { ...env, DBUS_SESSION_BUS_ADDRESS: 'unix:path=/nonexistent', XDG_RUNTIME_DIR: folder };
  const refused = await run(['sign-in', url], bare);
  check('no keyring: sign-in says that it would keep nothing', refused.code === 2 && refused.err.includes('there is no keyring here'), refused);
  const alone = gate(['--server', 'alone', '--url', url, '--sign-in'], bare);
  await alone.greet();
  check('no keyring: the gate signs in for itself', text(await alone.add(4, 5)) === 'the sum is 9');
  check('no keyring: it says so', alone.said().includes('only kept in this process'), alone.said());
  await alone.end();
  said.push(alone.said());

  // Wired in a host, held when it drifts, unwired to the same bytes.
  if (kind !== 'python') {
    const file = join(folder, '.cursor/mcp.json');
    const original = `{\n  // mine\n  "mcpServers": {"sums": {"url": "${url}"}}\n}\n`;
    writeFileSync(file, original);
    const wired = await run(['wire', 'cursor', '--server', 'sums', '--sign-in', '--yes'], env);
    check('wire --sign-in: the entry signs in', wired.code === 0 && readFileSync(file, 'utf8').includes('"--sign-in"'), wired);
    check('wire --sign-in: says what to type', wired.out.includes('holdpoint sign-in cursor.sums'), wired.out);
    const first = await run(['sign-in', 'cursor.sums'], env);
    check('sign-in by the id of an entry', first.code === 0, first);
    const words = ['--server=cursor.sums', '--url', url, '--sign-in'];
    const host = gate(words, env);
    await host.greet();
    check('wired: calls go through', text(await host.add(1, 2)) === 'the sum is 3');
    await host.end();
    await fetch(`${new URL(url).origin}/test/drift`, { method: 'POST' });
    const drifted = gate(words, env);
    await drifted.greet();
    const held = await drifted.add(1, 2);
    check('wired: a change of the tool is held', held.error?.code === -32010, held);
    await drifted.end();
    const unwired = await run(['unwire', '--yes'], env);
    check('unwire: the same bytes', unwired.code === 0 && readFileSync(file, 'utf8') === original, readFileSync(file, 'utf8'));
    await run(['sign-out', '--all'], env);
  }

  const secrets = await (await fetch(`${issuer}/test/secrets`)).json();
  const leaks = filesWith(folder, secrets);
  check(`no token of ${secrets.length} is in a file`, secrets.length > 8 && leaks.length === 0, leaks);
  check('no token is in an output', !secrets.some((secret) => said.join('').includes(secret)));
});
