// Two people, two nodes, a browser: sign in once, call, expire, refresh, revoke, sign out. For tests only.
// usage: node people.mjs SCENE   (SCENE is a JSON file: playwright, chromium, nodes, issuer, upstream, pictures, incident)
// Prints one line for each thing that was seen, and ends with 1 at the first that is not as it should be.
import { createHash, randomBytes } from 'node:crypto';
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const scene = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const require = createRequire(pathToFileURL(join(scene.playwright, 'package.json')));
const { chromium } = require('playwright-core');
const [one, two] = scene.nodes;

const seen = (what) => console.log(`ok    ${what}`);
const check = (is, what, detail) => {
  if (!is) {
    console.log(`FAIL  ${what} ${detail === undefined ? '' : JSON.stringify(detail)}`);
    process.exit(1);
  }
  seen(what);
};
const secret = (value) => appendFileSync(scene.secrets, `${value}\n`);
const until = async (what, is) => {
  for (let tries = 0; tries < 100; tries += 1) {
    if (await is()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  check(false, what);
};

// Where the client is sent back to: a program on the person's own machine.
let arrived = () => {};
const client = createServer((request, response) => {
  response.end('You can close this page.');
  arrived(new URL(request.url, `http://${request.headers.host}`));
});
await new Promise((resolve) => client.listen(0, '127.0.0.1', resolve));
const redirect = `http://127.0.0.1:${client.address().port}/callback`;

const browser = await chromium.launch({ executablePath: scene.chromium, args: ['--no-sandbox'] });
const picture = async (page, name) => {
  if (!scene.pictures) return;
  const looks = [['', { width: 1280, height: 800 }, 'light'], ['-dark', { width: 1280, height: 800 }, 'dark'], ['-phone', { width: 390, height: 844 }, 'light'], ['-phone-dark', { width: 390, height: 844 }, 'dark']];
  for (const [kind, size, colorScheme] of looks) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: join(scene.pictures, `${name}${kind}.png`), fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 800 });
};

/// The identity provider's own pages: a name, then consent.
async function signInAt(page, name) {
  for (let pages = 0; pages < 4; pages += 1) {
    await page.waitForLoadState();
    if (await page.locator('input[name=login]').count()) {
      await page.fill('input[name=login]', name);
      await page.fill('input[name=password]', 'x');
      await page.click('button[type=submit]');
    } else if (page.url().includes('/interaction/')) {
      await page.click('button[type=submit]');
    } else return;
    await page.waitForLoadState('networkidle');
  }
}

async function tokens(person) {
  const verifier = randomBytes(32).toString('base64url');
  const challenge = createHash('sha256').update(verifier).digest('base64url');
  const state = randomBytes(8).toString('hex');
  const query = new URLSearchParams({
    response_type: 'code', client_id: 'editor', redirect_uri: redirect, state, code_challenge: challenge,
    code_challenge_method: 'S256', resource: `${one}/mcp`,
  });
  const back = new Promise((resolve) => { arrived = resolve; });
  await person.page.goto(`${one}/oauth/authorize?${query}`);
  if (!person.knows) {
    check(await person.page.locator('h1', { hasText: 'Allow Editor' }).count(), `${person.name} is asked before anything is redirected`);
    await picture(person.page, `consent-${person.name}`);
    await person.page.click('button:has-text("Allow")');
    await person.page.waitForLoadState('networkidle');
    await signInAt(person.page, person.name);
  }
  const answer = await back;
  check(answer.searchParams.get('state') === state && answer.searchParams.get('iss') === one, `${person.name}'s client gets its state back, and who answers`);
  const form = { grant_type: 'authorization_code', client_id: 'editor', redirect_uri: redirect, code: answer.searchParams.get('code'), code_verifier: verifier, resource: `${one}/mcp` };
  // At the other node: nothing of a sign-in is in one process.
  const given = await (await fetch(`${two}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })).json();
  check(given.access_token && given.refresh_token, `${person.name}'s client redeems its code at the other node`, given);
  secret(given.refresh_token);
  secret(given.access_token);
  return given;
}

let number = 0;
async function ask(node, token, method, params, path = '/mcp', capabilities = {}) {
  number += 1;
  const meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': capabilities, 'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' } };
  const headers = {
    authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...(params.name ? { 'mcp-name': params.name } : {}),
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: number, method, params: { ...params, _meta: meta } });
  const answer = await fetch(`${node}${path}`, { method: 'POST', headers, body });
  const text = await answer.text();
  const line = text.startsWith('{') ? text : text.split('\n').find((part) => part.startsWith('data: {'))?.slice(6);
  return { status: answer.status, ...(line ? JSON.parse(line) : { text }) };
}
const whoami = (node, token) => ask(node, token, 'tools/call', { name: 'notes__whoami', arguments: {} });
const said = (answer) => answer.result?.content?.[0]?.text;

const people = {};
for (const name of ['ada', 'bob']) {
  const context = await browser.newContext();
  people[name] = { name, context, page: await context.newPage() };
}
const { ada, bob } = people;

// Through the proxy.
for (const person of [ada, bob]) person.token = (await tokens(person)).access_token;

// A server that nobody signed in to yet.
const unseen = await ask(one, ada.token, 'tools/list', {}, '/servers/notes/mcp');
check(unseen.status === 401 || unseen.error, 'a token for /mcp does not open another path', unseen);
let refused = await whoami(one, ada.token);
check(refused.error?.data?.sign_in?.startsWith(`${one}/sign-in/notes?link=`), 'a call without a sign-in is refused, with where to sign in', refused);

// The official client, which shows a person URLs by itself.
const sdk = (path) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${path}`)).href);
const { Client } = await sdk('client/index.js');
const { StreamableHTTPClientTransport } = await sdk('client/streamableHttp.js');
const { UrlElicitationRequiredError } = await sdk('types.js');
const official = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: { form: {}, url: {} } } });
const requestInit = { headers: { authorization: `Bearer ${ada.token}` } };
await official.connect(new StreamableHTTPClientTransport(new URL(`${one}/mcp`), { requestInit }));
const elicited = await official.callTool({ name: 'notes__whoami', arguments: {} }).catch((error) => error);
const isLink = elicited instanceof UrlElicitationRequiredError && elicited.elicitations[0].url.startsWith(`${one}/sign-in/notes?link=`);
check(isLink, 'the official client is given the link as an elicitation (-32042)', elicited);
await official.close();

async function signInToServer(person, link, account, server = 'notes') {
  await person.page.goto(link);
  await person.page.waitForLoadState('networkidle');
  if (person.page.url().startsWith(scene.issuer)) await signInAt(person.page, person.name);
  check(await person.page.locator('h1', { hasText: `Sign in to ${server}?` }).count(), `${person.name} sees that ${server} will be signed in to`, await person.page.content());
  await picture(person.page, `link-${server}-${person.name}`);
  await person.page.click('button.main');
  await person.page.waitForLoadState('networkidle');
  await signInAt(person.page, account);
  await person.page.waitForLoadState('networkidle');
  check(await person.page.locator('h1', { hasText: `Signed in to ${server}` }).count(), `${person.name} signs in to ${server}`, await person.page.content());
  await picture(person.page, `done-${server}-${person.name}`);
}
const link = refused.error.data.sign_in;
await signInToServer(ada, link, 'ada-at-notes');
// The first list of a server that nobody has seen; what is pinned of it is the same on both nodes.
const listed = async (node) => (await ask(node, ada.token, 'tools/list', {})).result?.tools?.some((tool) => tool.name === 'notes__whoami');
for (const node of [one, two]) await until(`the tool is listed at ${node}`, () => listed(node));
seen('the tool is listed at both nodes');
for (const node of [one, two]) check(said(await whoami(node, ada.token)) === 'you are ada-at-notes', `ada's call is made with her account at ${node}`);

await ada.page.goto(link);
check((await ada.page.content()).includes('used before') || (await ada.page.locator('h1', { hasText: 'Sign in to notes?' }).count()), 'a link that is opened again uses nothing up by itself');
if (await ada.page.locator('button.main').count()) await ada.page.click('button.main');
check((await ada.page.content()).includes('used before'), 'a used link does not go on');

// One person's token never serves another's call.
refused = await whoami(two, bob.token);
check(refused.error?.data?.reason === 'credential_unavailable', "bob's call is not made with ada's account", refused);
await ada.page.goto(refused.error.data.sign_in);
check((await ada.page.content()).includes('The link is for another person.'), 'a forwarded link does not work for another person');
await picture(ada.page, 'forwarded');
await signInToServer(bob, refused.error.data.sign_in, 'bob-at-notes');
for (let round = 0; round < 3; round += 1) {
  const answers = await Promise.all([whoami(one, ada.token), whoami(two, bob.token), whoami(two, ada.token), whoami(one, bob.token)]);
  check(JSON.stringify(answers.map(said)) === JSON.stringify(['you are ada-at-notes', 'you are bob-at-notes', 'you are ada-at-notes', 'you are bob-at-notes']), `round ${round + 1}: each call has its own person's account`, answers);
}

// Both nodes find the token expired at the same moment.
for (let round = 0; round < 3; round += 1) {
  await new Promise((resolve) => setTimeout(resolve, scene.ttl * 1000));
  const calls = Array.from({ length: 8 }, (_, index) => whoami(index % 2 ? one : two, ada.token));
  const answers = (await Promise.all(calls)).map(said);
  check(answers.every((text) => text === 'you are ada-at-notes'), `expired: 8 calls at both nodes at once are made with a refreshed token (${round + 1})`, answers);
}

// A server whose tokens are bound to keys, and the official client of 2026-07-28, which shows a person URLs by itself.
const modern = await import(pathToFileURL(join(scene.modernClient, 'node_modules/@modelcontextprotocol/client/dist/index.mjs')).href);
async function modernClient(node, token, show) {
  const options = { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } };
  const client = new modern.Client({ name: 'test', version: '2' }, options);
  client.setRequestHandler('elicitation/create', (request) => show(request.params));
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new modern.StreamableHTTPClientTransport(new URL(`${node}/mcp`), { requestInit }));
  return client;
}
const call = { name: 'safe__whoami', arguments: {} };
let shown = [];
let signingIn;
const hers = await modernClient(one, ada.token, (params) => {
  shown.push(params);
  // As a host does: the browser is opened, and the call made again at once. The gateway waits for ada.
  signingIn ??= signInToServer(ada, params.url, 'ada-at-safe', 'safe');
  return { action: 'accept' };
});
const keyed = (answer) => said({ result: answer })?.match(/^you are (\S+) with the key (\S+)$/)?.slice(1) ?? [];
const hersFirst = keyed(await hers.callTool(call));
await signingIn;
check(shown[0].mode === 'url' && shown[0].url.startsWith(`${one}/sign-in/safe?link=`), 'the official client of 2026-07-28 is asked to show the link', shown);
check(hersFirst[0] === 'ada-at-safe', `the same callTool goes on once ada has signed in (${shown.length} question), with a token that is bound to a key`, hersFirst);
await hers.close();

const urls = { elicitation: { url: {} } };
const asked = (await ask(two, bob.token, 'tools/call', call, '/mcp', urls)).result;
check(asked?.resultType === 'input_required' && asked.requestState, "bob's call is not made with ada's account: bob is asked too", asked);
const accepted = { sign_in: { action: 'accept' } };
const stolen = await ask(two, ada.token, 'tools/call', { ...call, requestState: asked.requestState, inputResponses: accepted }, '/mcp', urls);
check(stolen.error?.code === -32602, "bob's requestState is refused in ada's hands", stolen);
const moved = await ask(two, bob.token, 'tools/call', { name: 'notes__whoami', arguments: {}, requestState: asked.requestState, inputResponses: accepted }, '/mcp', urls);
check(moved.error?.code === -32602, 'and for another tool', moved);
await ada.page.goto(asked.inputRequests.sign_in.params.url);
check((await ada.page.content()).includes('The link is for another person.'), 'the link of an elicitation does not work for another person');
const unwilling = await modernClient(two, bob.token, () => ({ action: 'decline' }));
const declined = await unwilling.callTool(call).catch((error) => error);
check(declined.code === 1013 && declined.data?.sign_in, 'a person who declines ends the call with its refusal', declined);
await unwilling.close();
const his = await modernClient(two, bob.token, async (params) => {
  await signInToServer(bob, params.url, 'bob-at-safe', 'safe');
  return { action: 'accept' };
});
const hisFirst = keyed(await his.callTool(call));
check(hisFirst[0] === 'bob-at-safe' && hisFirst[1] !== hersFirst[1], 'bob has a key of his own', [hersFirst, hisFirst]);
await his.close();
const proven = async (node, token) => keyed((await ask(node, token, 'tools/call', call)).result ?? {});
for (let round = 0; round < 3; round += 1) {
  if (round) await new Promise((resolve) => setTimeout(resolve, scene.ttl * 1000));
  const calls = Array.from({ length: 8 }, (_, index) => proven(index % 2 ? one : two, index < 4 ? ada.token : bob.token));
  const answers = await Promise.all(calls);
  const isRight = answers.every((answer, index) => JSON.stringify(answer) === JSON.stringify(index < 4 ? hersFirst : hisFirst));
  check(isRight, `${round ? 'expired' : 'fresh'}: 8 calls of both at both nodes at once, each proven with its person's key, which stays (${round + 1})`, answers);
}

// The official suite's scenarios for authorization servers; ada's browser opens what it asks for.
if (scene.conformance) {
  const suite = spawn(scene.conformance[0], [...scene.conformance.slice(1), 'authorization', '--url', one, '--client-id', 'editor', '--resource', `${one}/mcp`, '--port', String(scene.suitePort)]);
  let text = '';
  let opened = false;
  suite.stdout.on('data', async (part) => {
    text += part;
    const url = text.match(/^http\S+\/oauth\/authorize\?\S+$/m)?.[0];
    if (!url || opened) return;
    opened = true;
    await ada.page.goto(url);
    if (await ada.page.locator('button:has-text("Allow")').count()) await ada.page.click('button:has-text("Allow")');
    await ada.page.waitForLoadState('networkidle');
    await signInAt(ada.page, 'ada');
  });
  const code = await new Promise((resolve) => suite.on('close', resolve));
  for (const line of text.split('\n').filter((line) => /✓|✗|~|\[|passed|failed/.test(line))) console.log(`      ${line.trim()}`);
  check(code === 0, "the conformance suite's authorization server scenarios pass", text);
}

// What a person sees and ends.
await bob.page.goto(`${two}/account`.replace(two, one));
await picture(bob.page, 'account');
check((await bob.page.content()).includes('bob@example.com') || (await bob.page.content()).includes('bob'), 'bob sees who he is');
await bob.page.click('button[aria-label="Remove notes"]');
await bob.page.waitForLoadState('networkidle');
check(!(await bob.page.locator('button[aria-label="Remove notes"]').count()), 'bob signs out of the server');
await until('the other node forgets the token', async () => (await whoami(two, bob.token)).error?.data?.sign_in);
seen('a call after signing out is refused at both nodes');
check(said(await whoami(one, ada.token)) === 'you are ada-at-notes', "ada's sign-in is not touched");

await bob.page.click('button[aria-label="Remove Editor"]');
await bob.page.waitForLoadState('networkidle');
await until("bob's client is out", async () => (await whoami(two, bob.token)).status === 401);
seen("after bob removes the application its access token is refused at both nodes");

// An incident.
execFileSync(scene.incident[0], [...scene.incident.slice(1), 'ada'], { stdio: 'inherit' });
await until("ada's token is refused", async () => (await whoami(two, ada.token)).status === 401);
seen('a revoked person is refused at both nodes');
await browser.close();
client.close();
