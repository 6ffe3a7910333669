#!/usr/bin/env node
// Runs the client authorization scenarios of the conformance suite through `holdpoint run --sign-in` and lists every check.
// `suite.mjs FOLDER`: results go there. The exit code is 1 if a check fails that known-failures.json does not have.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { here } from './bench.mjs';

const [folder] = process.argv.slice(2);
const cache = join(here, '../../.cache/conformance/node_modules');
const node = join(cache, '.bin/node');
const program = join(cache, '@modelcontextprotocol/conformance/dist/index.js');
const known = JSON.parse(readFileSync(join(here, 'known-failures.json'), 'utf8'));
const only = process.env.SCENARIO;
mkdirSync(folder, { recursive: true });

const listed = spawnSync(node, [program, 'list'], { encoding: 'utf8' }).stdout;
const scenarios = [...listed.matchAll(/- (auth\/\S+) \[([^\]]*)\]/g)].map(([, name, versions]) => ({ name, versions: versions.split(',') }));
let [all, passed, unexpected] = [0, 0, 0];
for (const { name, versions } of scenarios.filter(({ name }) => !only || name === only)) {
  const version = versions.at(-1) === 'extension' ? [] : ['--spec-version', versions.at(-1)];
  const words = ['client', '--command', `${process.execPath} ${join(here, 'client-under-test.mjs')}`, '--scenario', name, ...version, '-o', folder];
  // The suite puts results of a scenario into a folder with its name and the time.
  const below = () => (existsSync(join(folder, 'auth')) ? readdirSync(join(folder, 'auth')) : []);
  const before = new Set(below());
  const { stdout, stderr } = spawnSync(node, [program, ...words], { encoding: 'utf8', env: process.env });
  const results = below().filter((entry) => !before.has(entry));
  const file = results.map((entry) => join(folder, 'auth', entry, 'checks.json')).find(existsSync);
  if (!file) {
    console.log(`NO RESULT  ${name}`);
    if (only) console.log(stdout, stderr);
    unexpected += 1;
    continue;
  }
  for (const { id, name: check, status, errorMessage } of JSON.parse(readFileSync(file, 'utf8'))) {
    if (status === 'INFO' || status === 'SKIPPED') continue;
    all += 1;
    const reason = known[`${name}/${id}`] ?? known[name];
    const isFine = status === 'SUCCESS';
    passed += isFine;
    if (!isFine && !reason) unexpected += 1;
    console.log(`${status.padEnd(7)}  ${name}/${id}${isFine ? '' : `  (${reason ?? errorMessage ?? check})`}`);
  }
  if (only) console.log(stdout, stderr);
}
console.log(`${passed} of ${all} checks pass; ${unexpected} that should`.replace(/; 0 that should$/, '').replace(/(\d+) that should$/, '$1 fail that should pass'));
process.exit(unexpected === 0 ? 0 : 1);
