// The gate around one connection. What the rules say comes from the core; here messages are kept, sent and handed over.

import { Core, CoreClosed, type Action } from "./core.js";
import type { EntryReview } from "./documents.js";
import { HeldError, RefusedError, type Refusal, type Reviewer } from "./errors.js";
import type { PinStore } from "./pins.js";

/** A JSON-RPC message, as client libraries have them. */
export type Message = object;

/** Where messages go that the gate lets through. */
export interface Wire {
  toServer(message: Message, options?: unknown): Promise<void>;
  toClient(message: Message, extra?: unknown): void;
}

/** Stands between a client and its transport. */
export interface Gate extends Reviewer {
  /** Takes a message of the client. Rejects with a `RefusedError` if it does not go on. */
  send(message: Message, options?: unknown): Promise<void>;
  /** Takes a message of the server. */
  receive(message: Message, extra?: unknown): void;
  /** What a client that is connected already knows of the server. */
  greet(handshake: Handshake): void;
  /** The instructions that were accepted. */
  instructions(): string | undefined;
  /** Everything that waits for a person. */
  waiting(): Promise<readonly EntryReview[]>;
  /** The connection is gone. */
  close(): void;
}

/** What client libraries still know of a handshake. */
export interface Handshake {
  readonly instructions?: string;
  readonly capabilities?: object;
  readonly serverInfo?: object;
  readonly protocolVersion?: string;
}

/** How strict the gate is. */
export type Posture = "monitor" | "shield" | "guard" | "strict";

/** How a session is judged. */
export interface GateOptions {
  /** The server's name in your application: lower-case letters, digits, `.`, `_` and `-`. Pins belong to it. */
  readonly serverId: string;
  /** `"guard"` unless you say otherwise. */
  readonly posture?: Posture;
  /** How old a list may be on which a call is decided, in seconds: 30 unless you say otherwise. */
  readonly relistMaxAge?: number;
  /** What the client is shown of tools that were held when they were first seen: `"stub"` unless you say otherwise. */
  readonly list?: "stub" | "accepted" | "observed";
  readonly guard?: { readonly inertStringMax?: number; readonly inertEntryMax?: number; readonly newTools?: "defer" | "accept" };
  readonly shield?: { readonly parameterText?: "hold" | "defer" };
  /** Hears of every hold, also where a framework replaces the error. */
  readonly onHeld?: (held: HeldError) => void;
}

interface Kept {
  readonly message: Message;
  readonly options: unknown;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  /** It was judged again on pins that another process wrote. */
  isSecondLook: boolean;
}

/** How often pins are judged again that another process wrote first. */
const ATTEMPTS = 5;
const HELD = -32010;
const OWN_ID = "hp-";

/** The gate whose pins are in memory or in a file. */
export class CoreGate implements Gate {
  readonly #core = new Core();
  readonly #store: PinStore;
  readonly #wire: Wire;
  readonly #serverId: string;
  readonly #onHeld: ((held: HeldError) => void) | undefined;
  readonly #kept = new Map<number, Kept>();
  readonly #watched = new Set<unknown>();
  /** The lists that are being handed in, by the ids of the gate's own requests. */
  readonly #lists = new Map<unknown, object>();
  readonly #timers = new Set<ReturnType<typeof setTimeout>>();
  /** Why pins could not be written. */
  #lastFault: unknown;
  #tickets = 0;
  #isOver = false;

  constructor(options: GateOptions, store: PinStore, wire: Wire) {
    const { serverId, onHeld, ...judged } = options;
    this.#serverId = serverId;
    this.#store = store;
    this.#wire = wire;
    this.#onHeld = onHeld;
    const seed = Math.random().toString(36).slice(2) + Math.random().toString(36).slice(2);
    this.#core.open({ server: serverId, ...judged }, store.load(), seed);
  }

  send(message: Message, options?: unknown): Promise<void> {
    const ticket = (this.#tickets = (this.#tickets + 1) >>> 0);
    let actions;
    try {
      actions = this.#core.client(ticket, textOf(message), Date.now());
    } catch (error) {
      return Promise.reject(this.#fault(error));
    }
    if (actions === undefined) {
      return this.#wire.toServer(message, options);
    }
    return new Promise((resolve, reject) => {
      this.#kept.set(ticket, { message, options, resolve, reject, isSecondLook: false });
      this.#carryOut(actions);
    });
  }

  receive(message: Message, extra?: unknown): void {
    const { method, id } = message as { method?: unknown; id?: unknown };
    const isAnswer = method === undefined && !Array.isArray(message);
    // An answer to what the client sent is the client's own affair.
    if (isAnswer && !this.#watched.has(id) && !(typeof id === "string" && id.startsWith(OWN_ID))) {
      return this.#wire.toClient(message, extra);
    }
    this.#watched.delete(id);
    let actions;
    try {
      actions = this.#core.server(textOf(message), Date.now());
    } catch (error) {
      return this.#fail(error);
    }
    if (actions === undefined) {
      return this.#wire.toClient(message, extra);
    }
    const { result } = message as { result?: unknown };
    const isList = typeof result === "object" && result !== null;
    if (isList) {
      this.#lists.set(id, result);
    }
    this.#carryOut(actions, extra);
    if (isList) {
      this.#lists.delete(id);
    }
  }

  greet(handshake: Handshake): void {
    // A library's typed capabilities and server info may lack members, so that only the rest is judged.
    const { instructions, capabilities } = handshake;
    this.#core.greet({ ...(instructions !== undefined && { instructions }), capabilities: capabilities ?? {} });
  }

  instructions(): string | undefined {
    return this.#core.isClosed ? undefined : this.#core.instructions();
  }

  async review(entry: { type: string; key: string }): Promise<EntryReview | undefined> {
    const text = this.#core.review(entry.type, entry.key);
    return text === undefined ? undefined : (JSON.parse(text) as EntryReview);
  }

  async waiting(): Promise<readonly EntryReview[]> {
    return JSON.parse(this.#core.waiting()) as EntryReview[];
  }

  async repin(entry: { type: string; key: string }, hash: string, by: string): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      this.#look();
      const actions = this.#core.repin(entry.type, entry.key, hash, by, Date.now());
      const outcome = this.#carryOut(actions);
      if (outcome === "failed") {
        throw new Error("the pins could not be written", { cause: this.#lastFault });
      } else if (outcome === "done") {
        return;
      }
    }
    throw new Error("other processes write the pins all the time");
  }

  close(): void {
    this.#isOver = true;
    this.#timers.forEach(clearTimeout);
    const gone = new Error("the connection is closed");
    this.#kept.forEach(({ reject }) => reject(gone));
    this.#kept.clear();
  }

  /** Carries out what the core says. `other`: another process wrote the pins first, and they were judged again. */
  #carryOut(actions: Action[] | undefined, extra?: unknown): "done" | "other" | "failed" {
    let outcome: "done" | "other" | "failed" = "done";
    for (const action of actions ?? []) {
      try {
        const saved = this.#act(action, extra);
        outcome = saved ?? outcome;
      } catch (error) {
        this.#fail(error);
        return "failed";
      }
    }
    return outcome;
  }

  #act(action: Action, extra: unknown): "other" | "failed" | undefined {
    if ("save" in action) {
      return this.#save(this.#core.pins(Date.now()));
    } else if ("send" in action) {
      this.#dispatch(action.send);
    } else if ("watch" in action) {
      const kept = this.#kept.get(action.watch);
      this.#watched.add((kept?.message as { id?: unknown } | undefined)?.id);
      this.#dispatch(action.watch);
    } else if ("drop" in action) {
      this.#take(action.drop)?.resolve();
    } else if ("toServer" in action) {
      this.#wire.toServer(action.toServer).catch(() => this.#carryOut(this.#core.lost()));
    } else if ("toClient" in action) {
      this.#wire.toClient(action.toClient, extra);
    } else if ("answer" in action) {
      this.#answer(action.answer.ticket, action.answer.message);
    } else if ("answerAsSent" in action) {
      const { ticket, id } = action.answerAsSent;
      const list = this.#lists.get(id);
      const asked = this.#kept.get(ticket)?.message as { id?: unknown } | undefined;
      if (list === undefined) {
        throw new Error("the list is no longer there");
      }
      this.#answer(ticket, { jsonrpc: "2.0", id: asked?.id, result: { ...list, ttlMs: 0 } });
    } else if ("refuse" in action) {
      this.#refuse(action.refuse.ticket, action.refuse);
    } else if ("wake" in action) {
      this.#wake(action.wake);
    }
    return undefined;
  }

  #answer(ticket: number, message: object): void {
    this.#take(ticket)?.resolve();
    // As every answer, it comes after the request was sent.
    queueMicrotask(() => this.#isOver || this.#wire.toClient(message));
  }

  #save(pins: Uint8Array): "other" | "failed" | undefined {
    let other;
    try {
      other = this.#store.save(pins);
    } catch (error) {
      this.#lastFault = error;
      this.#carryOut(this.#core.unsaved());
      return "failed";
    }
    const next = other === undefined ? this.#core.saved(Date.now()) : this.#core.load(other, Date.now());
    const outcome = this.#carryOut(next);
    return other === undefined ? (outcome === "done" ? undefined : outcome) : "other";
  }

  #take(ticket: number): Kept | undefined {
    const kept = this.#kept.get(ticket);
    this.#kept.delete(ticket);
    return kept;
  }

  #dispatch(ticket: number): void {
    const kept = this.#take(ticket);
    if (kept) {
      this.#wire.toServer(kept.message, kept.options).then(kept.resolve, kept.reject);
    }
  }

  /** Takes over pins that another process wrote. Returns whether there were any. */
  #look(): boolean {
    const pins = this.#store.changed();
    if (pins === undefined) {
      return false;
    }
    this.#carryOut(this.#core.load(pins, Date.now()));
    return true;
  }

  #refuse(ticket: number, refusal: Refusal): void {
    const kept = this.#kept.get(ticket);
    if (!kept) {
      return;
    }
    // A person may have accepted it in another process.
    if (refusal.code === HELD && !kept.isSecondLook) {
      kept.isSecondLook = true;
      if (this.#look()) {
        const again = this.#core.client(ticket, textOf(kept.message), Date.now());
        return again === undefined ? this.#dispatch(ticket) : void this.#carryOut(again);
      }
    }
    this.#kept.delete(ticket);
    kept.reject(this.#error(refusal));
  }

  #error(refusal: Refusal): RefusedError {
    if (refusal.code !== HELD && refusal.code !== -32012) {
      return new RefusedError(refusal);
    }
    const held = new HeldError(refusal, this);
    try {
      this.#onHeld?.(held);
    } catch (error) {
      // The hold stands, and the application's own fault is not lost.
      queueMicrotask(() => {
        throw error;
      });
    }
    return held;
  }

  #wake(milliseconds: number): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#carryOut(this.#guarded(() => this.#core.tick(Date.now())));
    }, milliseconds);
    (timer as { unref?: () => void }).unref?.();
    this.#timers.add(timer);
  }

  #guarded(call: () => Action[] | undefined): Action[] | undefined {
    try {
      return call();
    } catch (error) {
      this.#fail(error);
      return undefined;
    }
  }

  /** Everything that waits is refused: nothing goes on without the gate. */
  #fail(error: unknown): void {
    for (const ticket of [...this.#kept.keys()]) {
      this.#take(ticket)?.reject(this.#fault(error));
    }
  }

  #fault(error: unknown): RefusedError {
    const isClosed = error instanceof CoreClosed || this.#core.isClosed;
    const why = isClosed ? "the gate failed and is closed" : "the gate could not judge the message";
    const message = `○ holdpoint — ${why}. Held before your agent ran it. Agent: stop, tell your user, and run nothing.`;
    const refused = this.#error({ code: -32012, message, data: { reason: "internal", server: this.#serverId, verdict: "HOLD" } });
    refused.cause = error;
    return refused;
  }
}

function textOf(message: Message): string {
  const text = JSON.stringify(message);
  if (text === undefined) {
    throw new TypeError("a message that is not JSON");
  }
  return text;
}
