/** The WebAssembly, which the build puts in. */
export function coreBytes(): Uint8Array;
