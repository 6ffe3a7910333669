// The gate at a client, connected or not.

import type { EntryReview } from "./documents.js";
import type { Gate } from "./gate.js";
import { gateAt, wrapTransport, type WrapOptions } from "./transport.js";

/** What of a client the gate needs. `Client` of `@modelcontextprotocol/sdk` 1.x and of `@modelcontextprotocol/client` 2.x have it. */
export interface ClientLike {
  readonly transport?: object | undefined;
  connect(transport: never, options?: never): Promise<void>;
  getInstructions?(): string | undefined;
  getServerCapabilities?(): object | undefined;
  getServerVersion?(): object | undefined;
}

const wrapped = new WeakMap<object, () => Gate | undefined>();

/** A client that a cached list was dropped of, by the message that tells it to. */
const CHANGED = ["tools", "prompts", "resources"].map((list) => `notifications/${list}/list_changed`);

/**
 * Puts the gate around a client's session and returns the client, with all its members. A client that is not connected
 * yet gets the gate when it connects; one that is has it from now on.
 */
export function wrap<C extends ClientLike>(client: C, options: WrapOptions): C {
  if (wrapped.has(client)) {
    throw new Error("this client has a gate already");
  }
  const connect = client.connect.bind(client) as (transport: object, options?: unknown) => Promise<void>;
  let current: object | undefined;
  if (client.transport) {
    current = client.transport;
    guard(client, current, options);
  }
  define(client, "connect", (transport: object, connectOptions?: unknown) => {
    current = transport;
    return connect(gateAt(transport) ? transport : wrapTransport(transport, options), connectOptions);
  });
  wrapped.set(client, () => current && gateAt(current));
  return client;
}

/** Everything of a wrapped client's or transport's server that waits for a person, for a review screen. */
export async function waiting(session: object): Promise<readonly EntryReview[]> {
  const gate = gateAt(session) ?? wrapped.get(session)?.();
  if (!gate) {
    throw new Error("this session has no gate, or is not connected");
  }
  return gate.waiting();
}

/** Takes over the transport of a client that is connected. */
function guard(client: ClientLike, transport: object, options: WrapOptions): void {
  wrapTransport(transport, options);
  const gate = gateAt(transport) as Gate;
  const instructions = client.getInstructions?.();
  const capabilities = client.getServerCapabilities?.();
  const serverInfo = client.getServerVersion?.();
  gate.greet({
    ...(instructions !== undefined && { instructions }),
    ...(capabilities !== undefined && { capabilities }),
    ...(serverInfo !== undefined && { serverInfo }),
  });
  if (client.getInstructions) {
    define(client, "getInstructions", () => gate.instructions());
  }
  // A client may keep lists for as long as the server said; these came before the gate.
  const { onmessage } = transport as { onmessage?: (message: object) => void };
  CHANGED.forEach((method) => onmessage?.({ jsonrpc: "2.0", method }));
}

function define(client: object, name: string, value: unknown): void {
  Object.defineProperty(client, name, { configurable: false, enumerable: false, writable: false, value });
}
