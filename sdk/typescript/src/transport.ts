// The gate at a transport: everything that a client sends or hears passes it, whatever method of the client it came from.

import { CoreGate, type Gate, type GateOptions, type Message, type Wire } from "./gate.js";
import { HomePin } from "./home.js";
import { PreflightPin } from "./pins.js";

/** What of a transport the gate needs. Those of `@modelcontextprotocol/sdk` 1.x and of its successors have it. */
export interface TransportLike {
  send(message: never, options?: never): Promise<void>;
  onmessage?: ((message: never, extra?: never) => void) | undefined;
  onclose?: (() => void) | undefined;
}

/** How a session is judged, and where its pins are. */
export interface WrapOptions extends GateOptions {
  readonly pin: PreflightPin | HomePin;
}

const gates = new WeakMap<object, Gate>();

/** @internal */
export function gateAt(transport: object): Gate | undefined {
  return gates.get(transport);
}

/**
 * Puts the gate between a transport and whatever client uses it. The transport is changed in place and returned, so that
 * no one who holds it gets past the gate.
 */
export function wrapTransport<T extends object>(transport: T, options: WrapOptions): T {
  if (gates.has(transport)) {
    throw new Error("this transport has a gate already");
  }
  const target = transport as unknown as TransportLike;
  if (typeof target.send !== "function") {
    throw new TypeError("this is not a transport: it has no `send`");
  }
  const send = target.send.bind(target) as (message: Message, options?: unknown) => Promise<void>;
  const messages = new Handlers(target.onmessage as Handler<[Message, unknown?]> | undefined);
  const ends = new Handlers(target.onclose as Handler<[]> | undefined);
  const wire: Wire = {
    toServer: async (message, sendOptions) => send(message, sendOptions),
    toClient: (message, extra) => messages.call(message, extra),
  };
  const gate = open(options, wire);
  const own = { configurable: false, enumerable: true };
  const receive = (message: Message, extra?: unknown) =>
    messages.isCalling(message) ? messages.callEarlier(message, extra) : gate.receive(message, extra);
  const end = () => {
    if (ends.isCalling(undefined)) {
      return ends.callEarlier();
    }
    gate.close();
    ends.call();
  };
  // Defined on the object itself, so that what its class says does not count; where that is not possible, it throws.
  Object.defineProperties(transport, {
    send: { ...own, writable: false, value: (message: Message, sendOptions?: unknown) => gate.send(message, sendOptions) },
    onmessage: { ...own, get: () => (messages.isSet ? receive : undefined), set: (next) => messages.set(next, receive) },
    onclose: { ...own, get: () => end, set: (next) => ends.set(next, end) },
  });
  gates.set(transport, gate);
  return transport;
}

type Handler<A extends unknown[]> = (...args: A) => void;

/**
 * The handler that a client set, and the one before it. Clients call the one that they found from the one that they set,
 * and what they found is the gate.
 */
class Handlers<A extends unknown[]> {
  #newest: Handler<A> | undefined;
  #earlier: Handler<A> | undefined;
  #calling: { with: unknown } | undefined;

  constructor(handler: Handler<A> | undefined) {
    this.#newest = handler;
  }

  get isSet(): boolean {
    return this.#newest !== undefined;
  }

  set(next: Handler<A> | undefined, gate: unknown): void {
    if (next !== gate) {
      this.#earlier = next && this.#newest;
      this.#newest = next;
    }
  }

  isCalling(subject: unknown): boolean {
    return this.#calling !== undefined && this.#calling.with === subject;
  }

  call(...args: A): void {
    const outer = this.#calling;
    this.#calling = { with: args[0] };
    try {
      this.#newest?.(...args);
    } finally {
      this.#calling = outer;
    }
  }

  callEarlier(...args: A): void {
    this.#earlier?.(...args);
  }
}

function open(options: WrapOptions, wire: Wire): Gate {
  const { pin, ...judged } = options;
  if (pin instanceof PreflightPin) {
    return new CoreGate(judged, pin.open(options.serverId), wire);
  } else if (pin instanceof HomePin) {
    return pin.open(judged, wire);
  }
  throw new TypeError("`pin` has to be a `PreflightPin` or a `HomePin`");
}
