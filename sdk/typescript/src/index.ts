// The public API. Nothing else is exported.

export { wrap, waiting, type ClientLike } from "./wrap.js";
export { wrapTransport, type TransportLike, type WrapOptions } from "./transport.js";
export { PreflightPin } from "./pins.js";
export { HomePin, type HomeOptions } from "./home.js";
export { HeldError, RefusedError, type Evidence, type HashPair } from "./errors.js";
export type { EntryReview } from "./documents.js";
export type { GateOptions, Posture } from "./gate.js";
export { canonical, diff, hash, markers, type Hashes, type Marker, type Verdict } from "./checks.js";
