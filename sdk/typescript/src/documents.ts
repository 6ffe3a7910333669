// What waits for a person, as the gate describes it.

import type { Evidence, HashPair } from "./errors.js";

/** One entry that waits for a person: what it was, what it is, and what changed. */
export interface EntryReview {
  readonly type: "tool" | "prompt" | "resource" | "template" | "instructions" | "identity" | "origin";
  readonly key: string;
  readonly verdict: "PROCEED" | "HOLD" | "INCONCLUSIVE";
  /** The approved definition goes on being used, and the new one waits. */
  readonly deferred: boolean;
  readonly reason?: string;
  /** What names the definition that waits. */
  readonly hash: string | null;
  readonly definition_hash?: HashPair;
  readonly entry_hash: HashPair;
  readonly findings: readonly Evidence[];
  /** The approved definition as the server sent it, as JSON; `null` if there is none. */
  readonly before: string | null;
  /** The definition that waits, as JSON; `null` if the entry is gone. Nobody accepted these words. */
  readonly after: string | null;
}
