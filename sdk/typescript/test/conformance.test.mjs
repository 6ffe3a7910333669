// Runs the data of conformance/ through WebAssembly, using the files' exact text. Attestation, the
// gateway's profile and the checks of arguments are not part of the SDK.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { canonical, diff, hash, markers } from "@holdpoint/sdk";
import { root } from "./stage.mjs";

const data = join(root, "conformance");
const text = (path) => readFileSync(join(data, path), "utf8");
const json = (path) => JSON.parse(text(path));
const POSTURES = ["monitor", "shield", "guard", "strict"];

/** The raw text of a member at the top of a file: numbers that a double cannot hold stay as they are. */
function rawMember(whole, name) {
  let depth = 0;
  for (let at = 0; at < whole.length; at++) {
    const letter = whole[at];
    if (letter === '"') {
      const end = endOfString(whole, at);
      if (depth === 1 && whole.slice(at, end) === JSON.stringify(name) && /^\s*:/.test(whole.slice(end))) {
        const start = whole.indexOf(":", end) + 1;
        return whole.slice(start, endOfValue(whole, start));
      }
      at = end - 1;
    } else if ("{[".includes(letter)) depth++;
    else if ("}]".includes(letter)) depth--;
  }
  throw new Error(`no member ${name}`);
}

function endOfString(whole, at) {
  for (at++; whole[at] !== '"'; at++) if (whole[at] === "\\") at++;
  return at + 1;
}

function endOfValue(whole, at) {
  let depth = 0;
  for (; at < whole.length; at++) {
    const letter = whole[at];
    if (letter === '"') at = endOfString(whole, at) - 1;
    else if ("{[".includes(letter)) depth++;
    else if ("}]".includes(letter) && depth-- === 0) break;
    else if (letter === "," && depth === 0) break;
  }
  return at;
}

const files = (folder) =>
  readdirSync(join(data, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? files(join(folder, entry.name)) : entry.name.endsWith(".json") ? [join(folder, entry.name)] : [],
  );

test("drift: what changed and what each posture makes of it", () => {
  const cases = files("drift");
  assert.ok(cases.length > 300, `${cases.length} cases`);
  for (const path of cases) {
    const whole = text(path);
    const { expect, name, library_only: isLibraryOnly } = JSON.parse(whole);
    // Captures contain neither the origin of a server nor its attestation.
    if (isLibraryOnly) continue;
    const [old, next] = [rawMember(whole, "old"), rawMember(whole, "new")];
    for (const posture of POSTURES) {
      const found = diff(old, next, posture);
      assert.equal(found.verdict, expect.verdict[posture], `${name} ${posture}`);
      if (expect.deferred && posture in expect.deferred) {
        assert.equal(found.entries.some(({ deferred }) => deferred), expect.deferred[posture], `${name} ${posture} deferred`);
      }
      const shape = (entries) => entries.map(({ type, key, kinds }) => `${type} ${key} ${kinds}`).sort();
      const seen = found.entries.map(({ type, key, findings }) => ({ type, key, kinds: [...new Set(findings.map(({ kind }) => kind))].sort() }));
      assert.deepEqual(shape(seen), shape(expect.entries), `${name} ${posture}`);
    }
    if (expect.entries.length === 0) {
      assert.equal(hash(old).surface_hash, hash(next).surface_hash, name);
    }
  }
});

test("canonical: numbers, strings and sets have one spelling; the rest is refused with its reason", () => {
  for (const file of ["numbers", "strings", "sets", "refused"]) {
    const vectors = json(`canonical/${file}.json`);
    assert.ok(vectors.length >= 15);
    for (const vector of vectors) {
      // Bytes that are not UTF-8 cannot be passed as a string here.
      if (vector.input === undefined) continue;
      // An encoder would replace an unescaped lone surrogate.
      if (!vector.input.isWellFormed?.() && vector.input.isWellFormed) continue;
      const form = () => canonical(vector.input, vector.position ?? "plain");
      if (vector.error) {
        assert.throws(form, (error) => error.message === vector.error, JSON.stringify(vector));
      } else {
        assert.equal(form(), vector.canonical, JSON.stringify(vector));
      }
    }
  }
});

test("markers: every hostile text trips with its class and no benign one does", () => {
  const entry = (place, said) => {
    const say = JSON.stringify(said);
    const tool = (members, property) => `{"name":"add",${members}"inputSchema":{"type":"object","properties":{${property}}}}`;
    switch (place) {
      case "description": return tool(`"description":${say},`, "");
      case "title": return tool(`"title":${say},`, "");
      case "_meta": return tool(`"_meta":{"example.org/note":[${say}]},`, "");
      case "annotations-title": return tool(`"annotations":{"title":${say}},`, "");
      case "output-schema": return tool(`"outputSchema":{"properties":{"a":{"description":${say}}}},`, "");
      case "parameter-description": return tool("", `"a":{"description":${say}}`);
      case "parameter-name": return tool("", `${say}:{}`);
      case "enum-value": return tool("", `"a":{"enum":["b",${say}]}`);
      case "const": return tool("", `"a":{"const":${say}}`);
      case "default": return tool("", `"a":{"default":{"x":${say}}}`);
      case "prompt-text": return `{"name":"p","description":${say}}`;
      case "instructions": return say;
      default: throw new Error(place);
    }
  };
  const hostile = json("markers/hostile.json");
  assert.ok(hostile.length > 50);
  for (const { name, class: kind, place, text: said } of hostile) {
    assert.ok(markers(entry(place, said)).some((marker) => marker.class === kind), name);
  }
  const benign = json("markers/benign.json");
  for (const { name, place, text: said, tools } of benign) {
    const found = markers(entry(place ?? "description", said), (tools ?? "").split(" ").filter(Boolean));
    assert.deepEqual(found, [], name);
  }
});

test("soundness: every pair that refuses more is said to", () => {
  const lines = text("soundness/cases.json").split("\n").filter((line) => line.startsWith("{"));
  assert.ok(lines.length > 20);
  const breaking = new Set(["breaking", "fail-safe"]);
  for (const line of lines) {
    const capture = (name) => `{"tools":[{"name":"t","inputSchema":${rawMember(line, name)}}]}`;
    const found = diff(capture("old"), capture("new")).entries.flatMap(({ findings }) => findings);
    assert.ok(found.some((finding) => breaking.has(finding.class)), line);
  }
});
