#!/usr/bin/env node
// A browser in which another page sends requests to the listener of a sign-in: with a wrong state, with none, to another path,
// and the real answer twice. Each but the real one has to be turned away.
const authorize = new URL(process.argv[2]);
const back = authorize.searchParams.get('redirect_uri');
const status = async (url, options) => (await fetch(url, options)).status;
const turned = [
  await status(`${back}?code=evil&state=guess`),
  await status(`${back}?code=evil`),
  await status(`${back}/other?code=evil`),
  await status(back, { method: 'POST', body: 'code=evil' }),
];
const answer = await fetch(authorize, { redirect: 'manual' });
const real = answer.headers.get('location');
const [one, two] = await Promise.all([status(real), status(real)]);
console.log(JSON.stringify({ turned, one, two }));
