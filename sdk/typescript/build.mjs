// Builds the package from `holdpoint.wasm`, which `scripts/sdk` builds from `sdk/wasm`: ESM,
// CommonJS, a file for browsers, types.

import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { build } from "esbuild";

const here = import.meta.dirname ?? dirname(new URL(import.meta.url).pathname);
process.chdir(here);
const wasm = process.argv[2] ?? "holdpoint.wasm";
rmSync("dist", { recursive: true, force: true });
mkdirSync("dist/types", { recursive: true });

/** The WebAssembly as text in a module, so that neither a file nor a connection is needed to load it. */
const bytes = {
  name: "core bytes",
  setup(builder) {
    builder.onResolve({ filter: /core-bytes\.js$/ }, () => ({ path: "core-bytes", namespace: "core" }));
    builder.onLoad({ filter: /.*/, namespace: "core" }, () => ({
      contents: `
        const text = ${JSON.stringify(readFileSync(wasm).toString("base64"))};
        export function coreBytes() {
          if (typeof Buffer === "function") return Buffer.from(text, "base64");
          if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
          return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
        }`,
      loader: "js",
    }));
  },
};
const system = (name) => ({
  name: "system",
  setup: (builder) => builder.onResolve({ filter: /^#system$/ }, () => ({ path: join(here, "src", `${name}.ts`) })),
});
const common = { entryPoints: ["src/index.ts"], bundle: true, target: "es2022", charset: "utf8", legalComments: "none" };
await build({ ...common, format: "esm", platform: "node", outfile: "dist/index.js", plugins: [bytes, system("system-node")] });
await build({ ...common, format: "cjs", platform: "node", outfile: "dist/index.cjs", plugins: [bytes, system("system-node")] });
await build({ ...common, format: "esm", platform: "browser", outfile: "dist/browser.js", plugins: [bytes, system("system-none")] });

const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
execFileSync(process.execPath, [tsc, "-p", "tsconfig.json"], { stdio: "inherit" });
// For `require`: the same declarations in a folder marked as CommonJS.
cpSync("dist/types", "dist/types-cjs", { recursive: true });
writeFileSync("dist/types-cjs/package.json", '{ "type": "commonjs" }\n');
copyFileSync("../../LICENSE", "LICENSE");
