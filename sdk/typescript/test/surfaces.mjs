// Captures for comparing the languages: generated ones from a seed, and those of real servers if
// available. Run as a program, it writes them to a file, one per line: node surfaces.mjs FILE
// [COUNT] [SEED]

import { createWriteStream, existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Numbers from a seed. */
function random(seed) {
  let state = seed >>> 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

const TEXTS = ["", "a", "Makes a report.", "é", "e\u0301", "\u0000", "\u001b[1m", "\u202e", "💥", "\\", '"', "\u2028", "ﬁ", "ß", "ﷺ", "x".repeat(300)];
const NUMBERS = ["0", "-0", "1", "1.0", "1e0", "100", "1e2", "0.1", "1e-7", "1e21", "123456789012345678901234567890", "9007199254740993", "1.5e300", "-1E+2", "5e-324"];
const KEYWORDS = ["type", "properties", "required", "enum", "items", "anyOf", "description", "default", "minimum", "maxLength", "additionalProperties", "$ref", "const", "examples", "x-mcp-header"];

/** The text of one capture. Members come in any order and white space anywhere, as servers write them. */
export function capture(next) {
  const pick = (list) => list[next(list.length)];
  const space = () => (next(4) === 0 ? pick([" ", "\t", "  "]) : "");
  const string = () => {
    const text = next(3) === 0 ? pick(TEXTS) + pick(TEXTS) : pick(TEXTS);
    // Write some letters as escapes.
    return `"${[...text].map((letter) => (next(9) === 0 && letter.length === 1 ? `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}` : JSON.stringify(letter).slice(1, -1))).join("")}"`;
  };
  const object = (members) => `{${members.map(([name, value]) => `${space()}"${name}"${space()}:${space()}${value}`).join(",")}${space()}}`;
  const array = (items) => `[${items.map((item) => space() + item).join(",")}]`;
  const many = (most, make) => Array.from({ length: next(most) }, make);
  const value = (depth) => {
    switch (next(depth > 0 ? 8 : 5)) {
      case 0: return "null";
      case 1: return pick(["true", "false"]);
      case 2: return pick(NUMBERS);
      case 3: case 4: return string();
      case 5: return array(many(4, () => value(depth - 1)));
      default: return schema(depth - 1);
    }
  };
  const schema = (depth) => {
    const names = new Set(many(5, () => pick(KEYWORDS)));
    return object(
      [...names].map((name) => {
        switch (name) {
          case "type": return [name, next(2) ? `"${pick(["string", "object", "integer"])}"` : array(many(4, () => `"${pick(["string", "null", "number"])}"`))];
          case "properties": return [name, object([...new Set(many(4, () => pick(["a", "b", "c", "title"])))].map((key) => [key, schema(depth - 1)]))];
          case "required": return [name, array(many(4, () => `"${pick(["a", "b", "c"])}"`))];
          case "enum": return [name, array(many(4, () => value(1)))];
          case "anyOf": return [name, array(many(3, () => schema(depth - 1)))];
          case "items": case "additionalProperties": return [name, depth > 0 ? schema(depth - 1) : "true"];
          default: return [name, value(depth)];
        }
      }),
    );
  };
  const tool = (_, at) => object(shuffled([["name", `"t${next(60) ? at : 0}"`], ["inputSchema", schema(4)], ...(next(2) ? [["description", string()]] : []), ...(next(4) ? [] : [["annotations", object([["readOnlyHint", "true"]])]]), ...(next(5) ? [] : [["_meta", value(3)]])]));
  const shuffled = (list) => list.map((item) => [next(1 << 30), item]).sort(([a], [b]) => a - b).map(([, item]) => item);
  return object([["tools", array(many(5, tool))], ...(next(3) ? [] : [["prompts", array(many(3, (_, at) => object([["name", `"p${at}"`], ["description", string()]])))]]), ...(next(3) ? [] : [["instructions", string()]])]);
}

export function* madeUp(count, seed = 1) {
  const next = random(seed);
  for (let at = 0; at < count; at++) yield capture(next);
}

/** The captures of real servers' releases in a folder. */
export function* real(folder = process.env.HOLDPOINT_CORPUS) {
  if (!folder || !existsSync(folder)) return;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".json")) continue;
    const text = readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8");
    // Put it on one line: a line break can only be white space between tokens.
    yield text.replace(/\r?\n/g, " ");
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , file, count = "20000", seed = "1"] = process.argv;
  const out = createWriteStream(file);
  for (const text of madeUp(Number(count), Number(seed))) out.write(`${text}\n`);
  for (const text of real()) out.write(`${text}\n`);
  out.end();
}
