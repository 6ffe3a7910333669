// A stdio MCP server with two tools that use what a sandbox bounds: `file` reads a path, or writes it where `text` is given,
// and `fetch` gets a URL. What fails is an error of the tool. It needs nothing but Node.
import { readFileSync, writeFileSync } from "node:fs";
import { get as httpGet } from "node:http";
import { get as httpsGet } from "node:https";
import { createInterface } from "node:readline";

const text = { type: "string" };
const tools = [
  { name: "file", description: "Reads or writes a file", inputSchema: { type: "object", properties: { path: text, text }, required: ["path"] } },
  { name: "fetch", description: "Gets a URL", inputSchema: { type: "object", properties: { url: text }, required: ["url"] } },
];

const fetched = (url) =>
  new Promise((resolve, reject) => {
    const get = url.startsWith("https:") ? httpsGet : httpGet;
    const request = get(url, { timeout: 5000 }, (response) => {
      response.resume();
      resolve(`status ${response.statusCode}`);
    });
    request.on("timeout", () => request.destroy(new Error("timeout")));
    request.on("error", reject);
  });

const use = async (name, { path, text, url }) => {
  if (name === "fetch") return fetched(url);
  if (text !== undefined) return writeFileSync(path, text), "written";
  return `read ${readFileSync(path).length} bytes`;
};

const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\n");
const said = (text, isError = false) => ({ content: [{ type: "text", text }], isError });

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === "initialize") {
    const serverInfo = { name: "boxed", version: "1.0.0" };
    return answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
  }
  if (method === "tools/list") return answer(id, { tools });
  if (method === "tools/call") {
    try {
      return answer(id, said(await use(params.name, params.arguments ?? {})));
    } catch (error) {
      return answer(id, said(String(error.message), true));
    }
  }
  if (method === "ping") return answer(id, {});
  const error = { code: -32601, message: "unknown method" };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, error }) + "\n");
});
