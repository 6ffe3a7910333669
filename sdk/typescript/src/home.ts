// The gate whose pins are those of a Holdpoint home. It is the program `holdpoint`, which judges as `holdpoint run` does;
// here its lines are read and written.

import { startGate } from "#system";
import type { EntryReview } from "./documents.js";
import { HeldError, RefusedError, type Refusal } from "./errors.js";
import type { Gate, GateOptions, Handshake, Message, Wire } from "./gate.js";

/** @internal A program that was started. */
export interface GateProcess {
  write(line: string): void;
  end(): void;
}

/** @internal What is heard of it. */
export interface ProcessEvents {
  line(line: string): void;
  end(error: Error): void;
}

/** Which program, and which home. */
export interface HomeOptions {
  /** The absolute path of the program `holdpoint`. */
  readonly program: string;
  /** The home; without it, the one that the program uses by itself. */
  readonly home?: string;
}

const VERSION = 1;
const HELD = -32010;
const GREETING = "holdpoint-greeting";

/** Shares pins, approvals, statistics and receipts with the gate of a Holdpoint home. */
export class HomePin {
  readonly #options: HomeOptions;

  constructor(options: HomeOptions) {
    this.#options = options;
  }

  /** @internal */
  open(options: GateOptions, wire: Wire): Gate {
    return new HomeGate(this.#options, options, wire);
  }
}

interface Sent {
  readonly message: Message;
  readonly options: unknown;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A line of the program: one member. */
type Line =
  | { opened: object }
  | { failed: { reason: string; message: string } }
  | { toServer: Message }
  | { toClient: Message }
  | { answer: Message }
  | { reviewed: { id: number; entries: EntryReview[] } }
  | { approved: { id: number } }
  | { refused: { id: number; reason: string; message: string } };

interface Asked {
  readonly resolve: (line: Line) => void;
  readonly reject: (error: unknown) => void;
}

class HomeGate implements Gate {
  readonly #process: GateProcess;
  readonly #wire: Wire;
  readonly #serverId: string;
  readonly #onHeld: ((held: HeldError) => void) | undefined;
  /** Messages of the client that the program has not decided on, by their ids; those without one in their order. */
  readonly #sent = new Map<string, Sent>();
  readonly #asked = new Map<number, Asked>();
  #notifications = 0;
  #count = 0;
  #instructions: string | undefined;
  #failure: Error | undefined;

  constructor(home: HomeOptions, options: GateOptions, wire: Wire) {
    const { serverId, posture, relistMaxAge, onHeld, ...others } = options;
    const other = Object.keys(others)[0];
    if (other !== undefined) {
      throw new Error(`\`${other}\` is set in the home's configuration, not here`);
    }
    this.#serverId = serverId;
    this.#wire = wire;
    this.#onHeld = onHeld;
    const args = ["pins", "--stdio", ...(home.home === undefined ? [] : ["--home", home.home])];
    this.#process = startGate(home.program, args, {
      line: (line) => this.#line(line),
      end: (error) => this.#fail(error),
    });
    const open = { version: VERSION, server: serverId, ...(posture && { posture }), ...(relistMaxAge !== undefined && { relistMaxAge }) };
    this.#write({ open });
  }

  #write(line: object): void {
    this.#process.write(JSON.stringify(line));
  }

  send(message: Message, options?: unknown): Promise<void> {
    if (this.#failure) {
      return Promise.reject(this.#fault());
    }
    return new Promise((resolve, reject) => {
      this.#sent.set(this.#keyOf(message), { message, options, resolve, reject });
      this.#write({ client: message });
      if (!("id" in message && "method" in message)) {
        // What asks for nothing is not waited for.
        resolve();
      }
    });
  }

  #keyOf(message: Message): string {
    const { id, method } = message as { id?: unknown; method?: unknown };
    return method === undefined ? `answer ${JSON.stringify(id)}` : id === undefined ? `note ${++this.#notifications}` : JSON.stringify(id);
  }

  receive(message: Message): void {
    if (!this.#failure) {
      this.#write({ server: message });
    }
  }

  greet(handshake: Handshake): void {
    this.#instructions = handshake.instructions;
    const params = { protocolVersion: handshake.protocolVersion ?? "2025-06-18", capabilities: {}, clientInfo: { name: "", version: "" } };
    this.#write({ client: { jsonrpc: "2.0", id: GREETING, method: "initialize", params } });
    const result = { protocolVersion: params.protocolVersion, capabilities: {}, ...handshake };
    this.#write({ server: { jsonrpc: "2.0", id: GREETING, result } });
    this.#write({ client: { jsonrpc: "2.0", method: "notifications/initialized" } });
  }

  instructions(): string | undefined {
    return this.#instructions;
  }

  async review(entry: { type: string; key: string }): Promise<EntryReview | undefined> {
    const line = await this.#ask("review", { tool: entry.key });
    return "reviewed" in line ? line.reviewed.entries.find(({ type, key }) => type === entry.type && key === entry.key) : undefined;
  }

  async waiting(): Promise<readonly EntryReview[]> {
    const line = await this.#ask("review", {});
    return "reviewed" in line ? line.reviewed.entries : [];
  }

  async repin(entry: { type: string; key: string }, hash: string): Promise<void> {
    const line = await this.#ask("approve", { tool: entry.key, hash });
    if (!("approved" in line)) {
      throw new Error("refused" in line ? line.refused.message : "the gate gave another answer");
    }
  }

  #ask(what: "review" | "approve", of: object): Promise<Line> {
    if (this.#failure) {
      return Promise.reject(this.#fault());
    }
    const id = ++this.#count;
    return new Promise((resolve, reject) => {
      this.#asked.set(id, { resolve, reject });
      this.#write({ [what]: { id, ...of } });
    });
  }

  close(): void {
    if (!this.#failure) {
      this.#write({ lost: {} });
      this.#process.end();
      this.#fail(new Error("the connection is closed"));
    }
  }

  #line(text: string): void {
    if (this.#failure) {
      return;
    }
    try {
      this.#hear(JSON.parse(text) as Line);
    } catch (error) {
      this.#fail(error as Error);
    }
  }

  #hear(line: Line): void {
    if ("toServer" in line) {
      this.#toServer(line.toServer);
    } else if ("toClient" in line) {
      this.#toClient(line.toClient);
    } else if ("answer" in line) {
      void this.#answer(line.answer);
    } else if ("failed" in line) {
      this.#fail(new Error(`${line.failed.reason}: ${line.failed.message}`));
    } else if ("opened" in line) {
      return;
    } else {
      const { id } = "reviewed" in line ? line.reviewed : "approved" in line ? line.approved : line.refused;
      const asked = this.#asked.get(id);
      this.#asked.delete(id);
      asked?.resolve(line);
    }
  }

  /** What the program lets through is sent as it says, with what the client said of how to send it. */
  #toServer(message: Message): void {
    const { id, method } = message as { id?: unknown; method?: unknown };
    if (id === GREETING) {
      return;
    }
    const key = method === undefined ? `answer ${JSON.stringify(id)}` : id === undefined ? undefined : JSON.stringify(id);
    const sent = key === undefined ? this.#note(method) : this.#sent.get(key);
    if (key !== undefined) {
      this.#sent.delete(key);
    }
    this.#wire.toServer(message, sent?.options).then(sent?.resolve, sent?.reject ?? ((error) => this.#fail(error as Error)));
  }

  /** The oldest notification of this kind that is on its way. */
  #note(method: unknown): Sent | undefined {
    for (const [key, sent] of this.#sent) {
      if (key.startsWith("note ") && (sent.message as { method?: unknown }).method === method) {
        this.#sent.delete(key);
        return sent;
      }
    }
    return undefined;
  }

  #toClient(message: Message): void {
    const { id, result } = message as { id?: unknown; result?: { instructions?: string } };
    if (id === GREETING) {
      this.#instructions = result?.instructions;
      return;
    }
    this.#wire.toClient(message);
  }

  async #answer(message: Message): Promise<void> {
    const { id, error } = message as { id?: unknown; error?: Refusal };
    const key = JSON.stringify(id);
    const sent = this.#sent.get(key);
    this.#sent.delete(key);
    if (!sent) {
      return this.#wire.toClient(message);
    }
    if (!error || typeof error.data?.["reason"] !== "string") {
      sent.resolve();
      queueMicrotask(() => this.#failure || this.#wire.toClient(message));
      return;
    }
    sent.reject(await this.#error(error));
  }

  async #error(refusal: Refusal): Promise<RefusedError> {
    if (refusal.code !== HELD && refusal.code !== -32012) {
      return new RefusedError(refusal);
    }
    const tool = refusal.data["tool"];
    const entry = typeof tool === "string" ? { type: "tool", key: tool } : null;
    const review = entry && (await this.review(entry).catch(() => undefined));
    const evidence = review?.findings ?? [];
    const held = new HeldError({ ...refusal, entry: entry && { ...entry }, evidence }, this);
    try {
      this.#onHeld?.(held);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
    return held;
  }

  /** Without the program nothing goes on. */
  #fail(error: Error): void {
    if (this.#failure) {
      return;
    }
    this.#failure = error;
    const fault = this.#fault();
    this.#sent.forEach(({ reject }) => reject(fault));
    this.#asked.forEach(({ reject }) => reject(fault));
    this.#sent.clear();
    this.#asked.clear();
    this.#process.end();
  }

  #fault(): HeldError {
    const message = `○ holdpoint — the gate's program is gone (${this.#failure?.message}). Held before your agent ran it. Agent: stop, tell your user, and run nothing.`;
    const fault = new HeldError({ code: -32012, message, data: { reason: "internal", server: this.#serverId, verdict: "HOLD" } });
    fault.cause = this.#failure;
    return fault;
  }
}
