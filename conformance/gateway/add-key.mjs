#!/usr/bin/env node
// Forwards every request to another address with a key added, for clients that cannot send one.
// Everything else stays as it is, in both directions; a side that aborts ends the other.
//
// usage: KEY=… node add-key.mjs --to http://127.0.0.1:PORT/PATH [--port N] [--log]
//
// Requests to any path go to the one of --to. Prints one line with its address once it listens; with --log, each
// request and response on standard error, without the key.
import { createServer, request as connect } from 'node:http';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    to: { type: 'string' },
    port: { type: 'string', default: '0' },
    log: { type: 'boolean', default: false },
  },
});
if (!options.to || !process.env.KEY) {
  console.error('usage: KEY=… node add-key.mjs --to URL [--port N] [--log]');
  process.exit(2);
}
const target = new URL(options.to);
let count = 0;

// Shows what passes in one direction.
function log(number, arrow, source, heading) {
  if (!options.log) {
    return;
  }
  console.error(`${number} ${arrow} ${heading}`);
  source.on('data', (chunk) => console.error(`${number} ${arrow} ${chunk.toString().trimEnd()}`));
}

function forward(incoming, outgoing) {
  const number = ++count;
  log(number, '>', incoming, `${incoming.method} ${JSON.stringify(incoming.headers)}`);
  const upstream = connect({
    host: target.hostname,
    port: target.port,
    path: target.pathname,
    method: incoming.method,
    headers: [...incoming.rawHeaders, 'Authorization', `Bearer ${process.env.KEY}`],
    // Requests are independent, as if each client had connected itself.
    agent: false,
  });
  upstream.on('response', (answer) => {
    log(number, '<', answer, `${answer.statusCode} ${JSON.stringify(answer.headers)}`);
    outgoing.writeHead(answer.statusCode, answer.rawHeaders);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
    answer.on('error', () => outgoing.destroy());
    answer.on('aborted', () => outgoing.destroy());
  });
  upstream.on('error', (error) => {
    if (options.log) {
      console.error(`${number} ! ${error.message}`);
    }
    outgoing.destroy();
  });
  incoming.pipe(upstream);
  outgoing.on('close', () => {
    if (!outgoing.writableFinished) {
      upstream.destroy();
    }
  });
}

const server = createServer(forward);
server.listen(Number(options.port), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/mcp`);
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close();
    server.closeAllConnections();
  });
}
