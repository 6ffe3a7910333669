// The published package in other runtimes: CommonJS, Bun, Deno, a browser.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { folder, root } from "./stage.mjs";

const run = promisify(execFile);
const here = new URL(".", import.meta.url).pathname;
const script = join(here, "runtime-child.mjs");
const isLong = Boolean(process.env.HOLDPOINT_SDK_LONG);
const tool = (name) => [join(here, "node_modules/.bin", name), join(root, ".cache/installers/node_modules/.bin", name)].find(existsSync);
const check = async (program, ...args) => assert.match((await run(program, [...args, script], { cwd: here })).stdout, /held and accepted/);

test("Node, as a module", () => check(process.execPath));

test("Node, by require", () => {
  const { wrap, HeldError, hash } = createRequire(import.meta.url)("@holdpoint/sdk");
  assert.equal(typeof wrap, "function");
  assert.ok(HeldError.prototype instanceof Error);
  assert.match(hash('{"tools":[]}').surface_hash, /^[0-9a-f]{64}$/);
});

test("Bun", { skip: !tool("bun") && "not there: bun" }, () => check(tool("bun")));

test("Deno", { skip: !tool("deno") && "not there: deno" }, () => check(tool("deno"), "run", "--no-prompt", "--allow-read", "--allow-env"));

const chromium = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

test("a browser, where no file and no further connection is used", { skip: !chromium && "not there: chromium", timeout: 120_000 }, async (t) => {
  const requests = [];
  const files = {
    "/": ["text/html", `<script type="importmap">{"imports":{"@holdpoint/sdk":"/sdk.js"}}</script><script type="module" src="/run.js"></script>`],
    "/sdk.js": ["text/javascript", readFileSync(join(here, "node_modules/@holdpoint/sdk/dist/browser.js"))],
    "/run.js": ["text/javascript", readFileSync(script, "utf8").replace("console.log(", "document.title = (")],
  };
  const server = createServer((request, response) => {
    requests.push(request.url);
    const [type, body] = files[request.url] ?? [];
    response.writeHead(body ? 200 : 404, { "content-type": type ?? "text/plain" }).end(body);
  }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { chromium: browsers } = await import("playwright-core");
  const browser = await browsers.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
  t.after(() => browser.close());
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  await page.waitForFunction(() => document.title !== "", undefined, { timeout: 60_000 });
  assert.equal(await page.title(), "held and accepted");
  assert.deepEqual(requests.filter((url) => url !== "/favicon.ico"), ["/", "/run.js", "/sdk.js"].filter((url) => requests.includes(url)));
});

test("the package has types for import and for require", { skip: !isLong && "only with --long" }, async (t) => {
  const place = folder(t);
  const text = `import { wrap, PreflightPin, HeldError, type WrapOptions } from "@holdpoint/sdk";
    import { Client } from "@modelcontextprotocol/sdk/client/index.js";
    import { Client as Client2 } from "@modelcontextprotocol/client";
    const options: WrapOptions = { pin: new PreflightPin(), serverId: "reports" };
    const one: Client = wrap(new Client({ name: "a", version: "1" }), options);
    const two: Client2 = wrap(new Client2({ name: "a", version: "1" }), options);
    export const held = (error: HeldError): string | null => error.toolName;
    void one.callTool({ name: "x" }); void two.callTool({ name: "x" });`;
  writeFileSync(join(place, "a.mts"), text);
  writeFileSync(join(place, "b.cts"), text);
  symlinkSync(join(here, "node_modules"), join(place, "node_modules"));
  const compilerOptions = { module: "nodenext", strict: true, noEmit: true, skipLibCheck: true, types: [] };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  await run(process.execPath, [join(here, "../node_modules/typescript/bin/tsc"), "-p", place]);
});
