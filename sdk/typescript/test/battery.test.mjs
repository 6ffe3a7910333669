// The drift battery with the program's scenario server over stdio: both client libraries, a
// withheld list_changed, and a restart.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { HeldError, PreflightPin, wrap } from "@holdpoint/sdk";
import { LIBRARIES, Scenario, client, folder, program, root, skip } from "./stage.mjs";

const cases = readdirSync(join(root, "conformance/drift/battery")).map((file) => JSON.parse(readFileSync(join(root, "conformance/drift/battery", file), "utf8")));
const settings = program ? {} : skip("the program; build it or set HOLDPOINT_BINARY");
const ARGUMENTS = { title: "Q3", count: 3, mode: "fast" };

const expected = ({ expect }) => {
  const verdict = expect.verdict.guard;
  const changed = expect.entries.some(({ type, key }) => type === "tool" && key === "make_report");
  return verdict === "PROCEED" || !changed ? "PROCEED" : verdict;
};

async function begin(t, library, scenario, pin) {
  const session = wrap(client(library), { pin, serverId: "reports", relistMaxAge: 0 });
  await session.connect(new library.Stdio({ ...scenario.launch, stderr: "ignore" }));
  t.after(() => session.close());
  return session;
}

const outcome = (session) =>
  session.callTool({ name: "make_report", arguments: ARGUMENTS }).then(
    () => "PROCEED",
    (error) => (assert.ok(error instanceof HeldError, String(error)), error.verdict),
  );

test("the battery has its fourteen cases", () => assert.ok(cases.length >= 14));

for (const library of LIBRARIES) {
  for (const drift of cases) {
    const name = drift.name.split("/").pop();
    test(`${library.name}: ${name}`, settings, async (t) => {
      const scenario = new Scenario(t, name, "--withhold");
      const pins = folder(t);
      const session = await begin(t, library, scenario, new PreflightPin(pins));
      assert.equal(await outcome(session), "PROCEED");
      const before = scenario.calls;
      scenario.change();
      const verdict = expected(drift);
      assert.equal(await outcome(session), verdict);
      const passed = verdict === "PROCEED" ? 1 : 0;
      assert.equal(scenario.calls, before + passed, "nothing of a held call reaches the server");
      await session.close();
      // Another process starts with the pins of this one.
      const next = await begin(t, library, scenario, new PreflightPin(pins));
      assert.equal(await outcome(next), verdict);
      assert.equal(scenario.calls, before + 2 * passed);
    });
  }
}
