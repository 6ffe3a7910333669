// The gate's rules, compiled to WebAssembly. One instance for each session: a trap closes it and nothing else.

import { coreBytes } from "./core-bytes.js";

interface Exports {
  memory: WebAssembly.Memory;
  input(bytes: number): number;
  output(): number;
  open(options: number, pins: number, seed: number): number;
  greet(handshake: number): number;
  client(ticket: number, message: number, now: number): number;
  server(message: number, now: number): number;
  pins(now: number): number;
  saved(now: number): number;
  unsaved(): number;
  load(pins: number, now: number): number;
  tick(now: number): number;
  lost(): number;
  instructions(): number;
  review(type: number, key: number): number;
  waiting(): number;
  repin(type: number, key: number, hash: number, by: number, now: number): number;
  hash(capture: number): number;
  diff(old: number, next: number, posture: number): number;
  canonical(text: number, position: number): number;
  markers(entry: number, tools: number): number;
}

/** What the shell has to do. Each has one member. */
export type Action =
  | { save: null }
  | { wait: number }
  | { send: number }
  | { drop: number }
  | { watch: number }
  | { toServer: object }
  | { toClient: object }
  | { withhold: null }
  | { answer: { ticket: number; message: object } }
  | { answerAsSent: { ticket: number; id: string } }
  | { refuse: { ticket: number } & import("./errors.js").Refusal }
  | { wake: number };

const encoder = new TextEncoder();
const decoder = new TextDecoder();
let compiled: WebAssembly.Module | undefined;

function compile(): WebAssembly.Module {
  try {
    return (compiled ??= new WebAssembly.Module(coreBytes() as BufferSource));
  } catch (cause) {
    throw new Error("Holdpoint's WebAssembly cannot be loaded here, so that there is no gate and no session", { cause });
  }
}

/** One instance of the core. */
export class Core {
  readonly #exports: Exports;
  #input = 0;
  #capacity = 0;
  #isClosed = false;

  constructor() {
    this.#exports = new WebAssembly.Instance(compile(), {}).exports as unknown as Exports;
  }

  /** After a trap nothing that the instance says counts. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Writes texts one after the other. Returns their lengths in bytes. */
  #write(...texts: string[]): number[] {
    const units = texts.reduce((sum, text) => sum + text.length, 0);
    // Most texts are hardly longer in UTF-8 than in UTF-16 units, of which each is at most three bytes.
    return this.#writeWithin(texts, units + (units >> 4) + 16) ?? this.#writeWithin(texts, units * 3) ?? [];
  }

  #writeWithin(texts: string[], bytes: number): number[] | undefined {
    if (bytes > this.#capacity) {
      this.#input = this.#exports.input(bytes);
      this.#capacity = bytes;
    }
    const room = new Uint8Array(this.#exports.memory.buffer, this.#input, this.#capacity);
    const lengths = [];
    let at = 0;
    for (const text of texts) {
      const { read, written } = encoder.encodeInto(text, room.subarray(at));
      if (read < text.length) {
        return undefined;
      }
      at += written;
      lengths.push(written);
    }
    return lengths;
  }

  #read(length: number): string {
    return decoder.decode(new Uint8Array(this.#exports.memory.buffer, this.#exports.output(), length));
  }

  /** Runs a function of the core. `undefined` is what it returns for nothing. */
  #run(call: (exports: Exports) => number): string | undefined {
    const length = this.#call(call);
    return length === 0 ? undefined : this.#read(length);
  }

  /** Runs a function of the core. Returns how many bytes it left for the host. */
  #call(call: (exports: Exports) => number): number {
    if (this.#isClosed) {
      throw new CoreClosed();
    }
    let length;
    try {
      length = call(this.#exports);
    } catch (cause) {
      this.#isClosed = true;
      throw new CoreClosed({ cause });
    }
    if (length < 0) {
      throw new Error(this.#read(-length));
    }
    return length;
  }

  #actions(call: (exports: Exports) => number): Action[] | undefined {
    const text = this.#run(call);
    return text === undefined ? undefined : (JSON.parse(text) as Action[]);
  }

  open(options: object, pins: string | undefined, seed: string): void {
    this.#run((core) => {
      const [options_ = 0, pins_ = 0, seed_ = 0] = this.#write(JSON.stringify(options), pins ?? "", seed);
      return core.open(options_, pins === undefined ? -1 : pins_, seed_);
    });
  }

  greet(handshake: object): void {
    this.#run((core) => core.greet(this.#write(JSON.stringify(handshake))[0] ?? 0));
  }

  /** `undefined`: it goes on as it is. */
  client(ticket: number, message: string, now: number): Action[] | undefined {
    return this.#actions((core) => core.client(ticket, this.#write(message)[0] ?? 0, now));
  }

  /** `undefined`: it goes on as it is. */
  server(message: string, now: number): Action[] | undefined {
    return this.#actions((core) => core.server(this.#write(message)[0] ?? 0, now));
  }

  /** The pins that a `save` is about, as UTF-8: that is what a file has, and memory needs no text. */
  pins(now: number): Uint8Array {
    const length = this.#call((core) => core.pins(now));
    if (length === 0) {
      throw new Error("no pins wait to be written");
    }
    return new Uint8Array(this.#exports.memory.buffer, this.#exports.output(), length).slice();
  }

  saved(now: number): Action[] | undefined {
    return this.#actions((core) => core.saved(now));
  }

  unsaved(): Action[] | undefined {
    return this.#actions((core) => core.unsaved());
  }

  load(pins: string, now: number): Action[] | undefined {
    return this.#actions((core) => core.load(this.#write(pins)[0] ?? 0, now));
  }

  tick(now: number): Action[] | undefined {
    return this.#actions((core) => core.tick(now));
  }

  lost(): Action[] | undefined {
    return this.#actions((core) => core.lost());
  }

  instructions(): string | undefined {
    return this.#run((core) => core.instructions());
  }

  review(type: string, key: string): string | undefined {
    return this.#run((core) => {
      const [type_ = 0, key_ = 0] = this.#write(type, key);
      return core.review(type_, key_);
    });
  }

  waiting(): string {
    return this.#run((core) => core.waiting()) ?? "[]";
  }

  repin(type: string, key: string, hash: string, by: string, now: number): Action[] | undefined {
    return this.#actions((core) => {
      const [type_ = 0, key_ = 0, hash_ = 0, by_ = 0] = this.#write(type, key, hash, by);
      return core.repin(type_, key_, hash_, by_, now);
    });
  }

  hash(capture: string): string {
    return this.#run((core) => core.hash(this.#write(capture)[0] ?? 0)) ?? "";
  }

  diff(old: string, next: string, posture: string): string {
    return (
      this.#run((core) => {
        const [old_ = 0, next_ = 0, posture_ = 0] = this.#write(old, next, posture);
        return core.diff(old_, next_, posture_);
      }) ?? ""
    );
  }

  canonical(text: string, position: string): string {
    return (
      this.#run((core) => {
        const [text_ = 0, position_ = 0] = this.#write(text, position);
        return core.canonical(text_, position_);
      }) ?? ""
    );
  }

  markers(entry: string, tools: string): string {
    return (
      this.#run((core) => {
        const [entry_ = 0, tools_ = 0] = this.#write(entry, tools);
        return core.markers(entry_, tools_);
      }) ?? ""
    );
  }
}

/** The instance failed: every later call is held. */
export class CoreClosed extends Error {
  constructor(options?: ErrorOptions) {
    super("the gate failed and is closed", options);
    this.name = "CoreClosed";
  }
}
