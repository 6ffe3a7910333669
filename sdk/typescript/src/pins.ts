// Where pins are kept that are the application's own.

import { fileStore } from "#system";

/** The pins of one server. */
export interface PinStore {
  /** What is there, `undefined` if nothing is. */
  load(): string | undefined;
  /** Writes the next revision, as UTF-8. If another process wrote one first, nothing is written and that one is returned. */
  save(pins: Uint8Array): string | undefined;
  /** The pins, if another process wrote them since they were last read. */
  changed(): string | undefined;
}

/** Keeps pins in memory, or in a folder with one JSON file for each server. */
export class PreflightPin {
  readonly #path: string | undefined;
  readonly #memory = new Map<string, Uint8Array>();

  /** `path` is a folder, which is made if it is not there. Without it, pins live as long as this object. */
  constructor(path?: string) {
    this.#path = path;
  }

  /** @internal */
  open(serverId: string): PinStore {
    if (this.#path !== undefined) {
      return fileStore(this.#path, serverId);
    }
    let seen: Uint8Array | undefined;
    const read = () => {
      seen = this.#memory.get(serverId);
      return seen && new TextDecoder().decode(seen);
    };
    return {
      load: read,
      changed: () => (this.#memory.get(serverId) === seen ? undefined : read()),
      save: (pins) => {
        if (this.#memory.get(serverId) !== seen) {
          return read();
        }
        this.#memory.set(serverId, pins);
        seen = pins;
        return undefined;
      },
    };
  }
}
