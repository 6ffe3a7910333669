// What the tests of signing in share: programs that end with the test, a client of `holdpoint run`, and checks.
//
// Plain Node (20 or later), no dependencies.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const holdpoint = process.env.HOLDPOINT;
export const here = new URL('.', import.meta.url).pathname;
const PATIENCE = 60_000;
const running = new Set();
let failed = 0;

export function check(name, isTrue, detail) {
  console.log(`${isTrue ? 'ok  ' : 'FAIL'}  ${name}${isTrue || detail === undefined ? '' : `: ${JSON.stringify(detail)}`}`);
  if (!isTrue) failed += 1;
}

export function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited too long for ${what}`)), PATIENCE);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// A program that prints JSON lines. `next` waits for a line that fits, also one that came before.
export function start(command, words, env = process.env) {
  const child = spawn(command, words, { env, stdio: ['pipe', 'pipe', 'pipe'] });
  running.add(child);
  child.on('exit', () => running.delete(child));
  const lines = [];
  const waiting = new Set();
  const errors = [];
  child.stderr.on('data', (text) => errors.push(text));
  createInterface({ input: child.stdout }).on('line', (line) => {
    try {
      lines.push(JSON.parse(line));
    } catch {
      return;
    }
    for (const look of waiting) look();
  });
  const next = (fits, what) =>
    within(
      new Promise((resolve, reject) => {
        const look = () => {
          const at = lines.findIndex(fits);
          if (at < 0) return;
          waiting.delete(look);
          resolve(lines.splice(at, 1)[0]);
        };
        waiting.add(look);
        child.on('exit', () => reject(new Error(`${what}: ended: ${errors.join('')}`)));
        look();
      }),
      what,
    );
  return { child, next, lines, said: () => Buffer.concat(errors).toString() };
}

export function run(words, env) {
  const child = spawn(holdpoint, words, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  running.add(child);
  const out = [];
  const err = [];
  child.stdout.on('data', (text) => out.push(text));
  child.stderr.on('data', (text) => err.push(text));
  const ended = new Promise((resolve) => {
    child.on('exit', (code) => {
      running.delete(child);
      resolve({ code, out: Buffer.concat(out).toString(), err: Buffer.concat(err).toString() });
    });
  });
  return within(ended, `holdpoint ${words[0]}`);
}

// `holdpoint run` with a client of its own.
export function gate(words, env) {
  const program = start(holdpoint, ['run', ...words], env);
  // A gate that has ended takes no more.
  program.child.stdin.on('error', () => {});
  let id = 0;
  const send = (message) => program.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method, params = {}) => {
    const own = ++id;
    send({ id: own, method, params });
    return program.next((message) => message.id === own, method);
  };
  const greet = async () => {
    const answer = await ask('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'sign-in', version: '1' },
    });
    send({ method: 'notifications/initialized' });
    return answer;
  };
  const add = (a, b) => ask('tools/call', { name: 'add', arguments: { a, b } });
  const end = async () => {
    if (program.child.exitCode !== null) return;
    const ended = new Promise((resolve) => program.child.once('exit', resolve));
    program.child.stdin.end();
    await within(ended, 'the gate to end');
  };
  return { ...program, ask, greet, add, end, send };
}

// Every file below a folder that has one of these texts in it.
export function filesWith(folder, texts) {
  const found = [];
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const kind = statSync(path);
    if (kind.isDirectory()) {
      found.push(...filesWith(path, texts));
    } else if (kind.isFile()) {
      const bytes = readFileSync(path);
      if (texts.some((text) => bytes.includes(text))) found.push(path);
    }
  }
  return found;
}

export function events(home, name) {
  const folder = join(home, 'receipts');
  const all = [];
  for (const chain of readdirSync(folder)) {
    if (!statSync(join(folder, chain)).isDirectory()) continue;
    for (const file of readdirSync(join(folder, chain)).filter((file) => file.endsWith('.jsonl'))) {
      const lines = readFileSync(join(folder, chain, file), 'utf8').trim().split('\n');
      all.push(...lines.map((line) => JSON.parse(line)).filter((line) => line.name === name));
    }
  }
  return all;
}

export async function bench(work) {
  const folder = mkdtempSync(join(tmpdir(), 'sign-in-'));
  try {
    await work(folder);
  } catch (error) {
    check(String(error?.stack ?? error), false);
  } finally {
    for (const child of running) child.kill('SIGKILL');
    if (!process.env.KEEP) rmSync(folder, { recursive: true, force: true });
  }
  console.log(failed === 0 ? 'all checks pass' : `${failed} checks fail`);
  process.exit(failed === 0 ? 0 : 1);
}
