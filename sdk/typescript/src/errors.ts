// What an application gets when a message does not go on.

import type { EntryReview } from "./documents.js";

/** What was found of an entry, with excerpts of the words before and after. For a person, never for a model. */
export interface Evidence {
  readonly kind: string;
  readonly class: string;
  /** A JSON Pointer into the definition. */
  readonly path: string;
  /** JSON, cut where it is long. */
  readonly before: string | null;
  /** JSON, cut where it is long. Nobody accepted these words. */
  readonly after: string | null;
  /** The change in words. */
  readonly say: string;
}

/** The hashes of a definition. */
export interface HashPair {
  readonly before: string | null;
  readonly after: string | null;
}

/** @internal What a gate says of a message that does not go on. */
export interface Refusal {
  readonly code: number;
  readonly message: string;
  readonly data: Record<string, unknown>;
  readonly entry?: { readonly type: string; readonly key: string } | null;
  readonly evidence?: readonly Evidence[];
}

/** @internal What a held error can do. */
export interface Reviewer {
  review(entry: { type: string; key: string }): Promise<EntryReview | undefined>;
  repin(entry: { type: string; key: string }, hash: string, by: string): Promise<void>;
}

/** A message that was not sent. `HeldError` is the one that a person can settle. */
export class RefusedError extends Error {
  /** The code that `holdpoint run` answers with: -32010 held, -32011 the server, -32012 a fault, -32600 the message. */
  readonly code: number;
  readonly reason: string;
  readonly serverId: string;

  /** @internal */
  constructor(refusal: Refusal) {
    super(refusal.message);
    this.name = "RefusedError";
    this.code = refusal.code;
    this.reason = text(refusal.data["reason"]) ?? "internal";
    this.serverId = text(refusal.data["server"]) ?? "";
  }
}

/**
 * A call that was held before anything was sent. Its message is safe to show to a model: it holds no words that nobody
 * accepted. `evidence` and `review()` do, and are for a person.
 */
export class HeldError extends RefusedError {
  readonly toolName: string | null;
  readonly kinds: readonly string[];
  readonly verdict: "HOLD" | "INCONCLUSIVE";
  readonly safetyRelevant: boolean;
  readonly tierReached: number | null;
  readonly verdictScope: string | null;
  readonly framing: string | null;
  readonly definitionHash: HashPair;
  readonly entryHash: HashPair;
  readonly evidence: readonly Evidence[];
  /** What the refusal says to programs, as it would go over the wire. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly #entry: { type: string; key: string } | undefined;
  readonly #reviewer: Reviewer | undefined;

  /** @internal */
  constructor(refusal: Refusal, reviewer?: Reviewer) {
    super(refusal);
    const { data } = refusal;
    this.name = "HeldError";
    this.toolName = text(data["tool"]) ?? null;
    this.kinds = Array.isArray(data["kinds"]) ? data["kinds"].map(String) : [];
    this.verdict = data["verdict"] === "INCONCLUSIVE" ? "INCONCLUSIVE" : "HOLD";
    this.safetyRelevant = data["safety_relevant"] !== false;
    this.tierReached = typeof data["tier_reached"] === "number" ? data["tier_reached"] : null;
    this.verdictScope = text(data["verdict_scope"]) ?? null;
    this.framing = text(data["framing"]) ?? null;
    this.definitionHash = pair(data["definition_hash"]);
    this.entryHash = pair(data["entry_hash"]);
    this.evidence = refusal.evidence ?? [];
    this.data = data;
    this.#entry = refusal.entry ?? undefined;
    this.#reviewer = reviewer;
  }

  /** The definitions before and after in full, for a person. Fails if what was held has changed again. */
  async review(): Promise<EntryReview> {
    const found = this.#entry && (await this.#reviewer?.review(this.#entry));
    if (!found || found.hash !== this.#hash()) {
      throw new Error("the held change is no longer waiting, or has changed again: call again to see what is held now");
    }
    return found;
  }

  /** Accepts exactly the definition that was held. `by` names the person who decided. */
  async repin(by = "application"): Promise<void> {
    const hash = this.#hash();
    if (!this.#entry || !this.#reviewer || hash === null) {
      throw new Error("there is no definition that could be accepted");
    }
    await this.#reviewer.repin(this.#entry, hash, by);
  }

  /** Of the definition that waits, or of the one that is gone. */
  #hash(): string | null {
    return this.entryHash.after ?? this.entryHash.before;
  }
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function pair(value: unknown): HashPair {
  const { before, after } = (value ?? {}) as { before?: unknown; after?: unknown };
  return { before: text(before) ?? null, after: text(after) ?? null };
}
