#!/usr/bin/env node
// Starts the program of the package for this platform. npm installed it as an optional dependency; nothing is downloaded.
"use strict";

const { spawn } = require("node:child_process");
const { platforms } = require("../package.json").holdpoint;

// Holdpoint's own fault, as in docs/exit-codes.md.
const INTERNAL = 12;

function fail(sentence) {
  process.stderr.write(`holdpoint: ${sentence}\n`);
  process.exit(INTERNAL);
}

const platform = `${process.platform}-${process.arch}`;
const name = platforms[platform];
if (name === undefined) {
  fail(`no package is made for ${platform}: build it from source, docs/install.md says how`);
}
let program;
try {
  program = require.resolve(`${name}/bin/holdpoint${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  fail(`the package ${name} is not installed: install holdpoint again, with optional dependencies`);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"]) {
  try {
    process.on(signal, () => child.kill(signal));
  } catch {
    // The system does not have this signal.
  }
}
child.on("error", (error) => fail(`the program could not be started: ${error.message}`));
child.on("exit", (code, signal) => {
  if (signal === null) {
    process.exit(code);
  }
  // Ends as the program did.
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
