// The pure functions over captures of a server: no session, no pins.

import { Core } from "./core.js";
import type { EntryReview } from "./documents.js";
import type { Posture } from "./gate.js";

/** The hashes of a capture. */
export interface Hashes {
  readonly surface_hash: string;
  readonly entries: readonly {
    readonly type: EntryReview["type"];
    readonly key: string;
    readonly entry_hash: string;
    readonly definition_hash: string | null;
  }[];
}

/** What changed between two captures, and what a posture makes of it. */
export interface Verdict {
  readonly verdict: "PROCEED" | "HOLD" | "INCONCLUSIVE";
  readonly safety_relevant: boolean;
  readonly posture: Posture;
  readonly entries: readonly Omit<EntryReview, "hash" | "before" | "after">[];
}

/** Wording or characters that are made to steer a model. */
export interface Marker {
  readonly class: string;
  readonly pointer: string;
  readonly rule: string;
  readonly excerpt: string;
}

let shared: Core | undefined;

/** One instance for all of them, and another if it failed. */
function core(): Core {
  return (shared = shared && !shared.isClosed ? shared : new Core());
}

/** The hashes of a capture: a server's lists as JSON text, one list, or one tool. */
export function hash(capture: string): Hashes {
  return JSON.parse(core().hash(capture)) as Hashes;
}

/** What changed from one capture, taken as approved by a person, to another. */
export function diff(old: string, next: string, posture: Posture = "guard"): Verdict {
  return JSON.parse(core().diff(old, next, posture)) as Verdict;
}

/** The canonical form of a JSON text, as part of a JSON Schema or of anything else. */
export function canonical(text: string, position: "schema" | "plain" = "plain"): string {
  return core().canonical(text, position);
}

/** The markers in one entry's JSON. `tools` names the server's own tools. */
export function markers(entry: string, tools: readonly string[] = []): readonly Marker[] {
  return JSON.parse(core().markers(entry, tools.join(" "))) as Marker[];
}
