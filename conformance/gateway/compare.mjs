#!/usr/bin/env node
// Compares two runs of the conformance suite check by check, and fails if the gateway breaks a check.
//
// usage: node compare.mjs --direct DIR --through DIR --known FILE [--only-differences | --list-broken]
//
// Each DIR has a folder of results for each revision. FILE lists the differences that are known, each with a reason;
// the check `*` stands for all checks of its scenario. An entry that no longer differs fails too, so that the list
// cannot go stale. --list-broken only prints the revision and the name of each scenario with a broken check.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

// The suite names a run's folder `server-SCENARIO-TIME`.
const FOLDER = /^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$/;

// Every check of a run, by its key.
function readChecks(folder) {
  const checks = new Map();
  for (const revision of readdirSync(folder).sort()) {
    for (const run of readdirSync(join(folder, revision))) {
      const scenario = FOLDER.exec(run)?.[1];
      if (scenario) {
        const results = JSON.parse(readFileSync(join(folder, revision, run, 'checks.json'), 'utf8'));
        collect(checks, revision, scenario, results);
      }
    }
  }
  return checks;
}

// One scenario may report a check several times: the occurrence is part of the key.
function collect(checks, revision, scenario, results) {
  const seen = new Map();
  for (const { id, name, status, errorMessage } of results) {
    const check = name && toWords(name) !== toWords(id) ? `${id}/${name}` : id;
    const occurrence = (seen.get(check) ?? 0) + 1;
    seen.set(check, occurrence);
    const numbered = occurrence === 1 ? check : `${check}#${occurrence}`;
    checks.set(JSON.stringify([revision, scenario, numbered]), { status, errorMessage });
  }
}

const toWords = (name) => name.replace(/[^A-Za-z0-9]/g, '').toLowerCase();

function readKnown(file) {
  const known = new Map();
  for (const { revision, scenario, check, reason } of JSON.parse(readFileSync(file, 'utf8'))) {
    if (![revision, scenario, check, reason].every((member) => typeof member === 'string' && member !== '')) {
      throw new Error(`${file}: each entry has revision, scenario, check and reason`);
    }
    known.set(JSON.stringify([revision, scenario, check]), reason);
  }
  return known;
}

const { values: options } = parseArgs({
  options: {
    direct: { type: 'string' },
    through: { type: 'string' },
    known: { type: 'string' },
    'only-differences': { type: 'boolean', default: false },
    'list-broken': { type: 'boolean', default: false },
  },
});
const direct = readChecks(options.direct);
const through = readChecks(options.through);
const known = readKnown(options.known);
const scenarios = new Set([...direct.keys()].map((key) => JSON.stringify(JSON.parse(key).slice(0, 2))));

// The entry of the list that a check belongs to, if there is one.
function findKnown(key) {
  const [revision, scenario] = JSON.parse(key);
  return [key, JSON.stringify([revision, scenario, '*'])].find((entry) => known.has(entry));
}

const rows = [];
const broken = [];
const accepted = [];
for (const key of new Set([...direct.keys(), ...through.keys()])) {
  const [revision, scenario, check] = JSON.parse(key);
  const before = direct.get(key)?.status ?? '-';
  const after = through.get(key)?.status ?? '-';
  // The suite also reports what it only observed.
  if (['INFO', '-'].includes(before) && ['INFO', '-'].includes(after)) {
    continue;
  }
  const isBroken = before === 'SUCCESS' && after !== 'SUCCESS';
  if (isBroken) {
    (findKnown(key) ? accepted : broken).push(key);
  }
  if (!options['only-differences'] || before !== after) {
    const mark = !isBroken ? ' ' : findKnown(key) ? '~' : '!';
    rows.push([mark, revision, `${scenario}/${check}`, before, after]);
  }
}
if (options['list-broken']) {
  console.log([...new Set(broken.map((key) => JSON.parse(key).slice(0, 2).join(' ')))].join('\n'));
  process.exit(0);
}
rows.sort((one, other) => one[1].localeCompare(other[1]) || one[2].localeCompare(other[2]));
rows.unshift([' ', 'revision', 'scenario/check', 'direct', 'through']);
const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
for (const row of rows) {
  console.log(
    row
      .map((cell, column) => cell.padEnd(widths[column]))
      .join('  ')
      .trimEnd(),
  );
}

const used = new Set(accepted.map(findKnown));
for (const entry of used) {
  const [revision, scenario, check] = JSON.parse(entry);
  console.log(`\n~ ${revision} ${scenario}/${check} is known to differ: ${known.get(entry)}`);
}
for (const key of broken) {
  const [revision, scenario, check] = JSON.parse(key);
  console.log(`\n! ${revision} ${scenario}/${check} passes directly and not through the gateway`);
  const message = through.get(key)?.errorMessage;
  if (message) {
    console.log(`  ${message}`);
  }
}
// What only the run through the gateway reports, such as a scenario that could not start.
for (const [key, { status, errorMessage }] of through) {
  if (!direct.has(key) && status === 'FAILURE') {
    const [revision, scenario, check] = JSON.parse(key);
    console.log(`\n  ${revision} ${scenario}/${check}: ${errorMessage ?? status}`);
  }
}
const stale = [...known.keys()].filter(
  (entry) => scenarios.has(JSON.stringify(JSON.parse(entry).slice(0, 2))) && !used.has(entry),
);
for (const entry of stale) {
  console.log(`\n! ${JSON.parse(entry).join(' ')} no longer differs: remove it from ${options.known}`);
}

const passed = [...direct.values()].filter(({ status }) => status === 'SUCCESS').length;
const kept = passed - broken.length - accepted.length;
const counts = `${kept} pass, ${accepted.length} are known to differ, ${broken.length} are broken`;
console.log(`\n${passed} checks pass directly; through the gateway ${counts}`);
if (passed === 0) {
  console.log('no check passed directly: the fixture or the suite did not run');
}
process.exit(broken.length > 0 || stale.length > 0 || passed === 0 ? 1 : 0);
