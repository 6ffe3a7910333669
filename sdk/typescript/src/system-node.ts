// Files and processes. Pins are in files: one for each server, replaced as one act, for the user alone.

import { spawn } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { StringDecoder } from "node:string_decoder";
import type { GateProcess, ProcessEvents } from "./home.js";
import type { PinStore } from "./pins.js";

/** How long another process may hold the lock, in milliseconds. One that is older was left behind. */
const LOCK_AGE = 10_000;
const LOCK_PATIENCE = 15_000;
const LOCK_PAUSE = 10;
/** The largest file that is read: as large as the core writes one. */
const MAX_BYTES = 256 * 1024 * 1024;
const SERVER_ID = /^[a-z0-9][a-z0-9._-]{0,63}$/;

let count = 0;

export function fileStore(folder: string, serverId: string): PinStore {
  if (!SERVER_ID.test(serverId)) {
    throw new Error(`\`${serverId}\` is not a server id: lower-case letters, digits, \`.\`, \`_\` and \`-\`, at most 64`);
  }
  const whole = folder.startsWith("~/") ? path.join(os.homedir(), folder.slice(2)) : path.resolve(folder);
  fs.mkdirSync(whole, { recursive: true, mode: 0o700 });
  return new FileStore(path.join(whole, `${serverId}.json`));
}

class FileStore implements PinStore {
  readonly #file: string;
  /** What tells whether the file is the one that was read. */
  #seen: string | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  load(): string | undefined {
    let descriptor;
    try {
      descriptor = fs.openSync(this.#file, "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") {
        this.#seen = undefined;
        return undefined;
      }
      throw error;
    }
    try {
      const stat = fs.fstatSync(descriptor, { bigint: true });
      if (process.platform !== "win32" && (Number(stat.mode) & 0o022) !== 0) {
        throw new Error(`\`${this.#file}\` can be written by other users, so that its pins are not trusted: chmod 600`);
      }
      if (stat.size > BigInt(MAX_BYTES)) {
        throw new Error(`\`${this.#file}\` is larger than ${MAX_BYTES} bytes`);
      }
      const text = fs.readFileSync(descriptor, "utf8");
      this.#seen = identity(stat);
      return text;
    } finally {
      fs.closeSync(descriptor);
    }
  }

  changed(): string | undefined {
    return this.#found() === this.#seen ? undefined : this.load();
  }

  save(pins: Uint8Array): string | undefined {
    return this.#locked(() => {
      if (this.#found() !== this.#seen) {
        const other = this.load();
        if (other !== undefined) {
          return other;
        }
      }
      this.#replace(pins);
      return undefined;
    });
  }

  #found(): string | undefined {
    const stat = fs.statSync(this.#file, { bigint: true, throwIfNoEntry: false });
    return stat && identity(stat);
  }

  #replace(pins: Uint8Array): void {
    const next = `${this.#file}.${process.pid}.${++count}.tmp`;
    try {
      const descriptor = fs.openSync(next, "wx", 0o600);
      try {
        fs.writeFileSync(descriptor, pins);
        fs.fsyncSync(descriptor);
      } finally {
        fs.closeSync(descriptor);
      }
      fs.renameSync(next, this.#file);
    } catch (error) {
      fs.rmSync(next, { force: true });
      throw error;
    }
    this.#seen = this.#found();
  }

  #locked<T>(act: () => T): T {
    const lock = `${this.#file}.lock`;
    const begun = Date.now();
    for (;;) {
      try {
        fs.closeSync(fs.openSync(lock, "wx", 0o600));
        break;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") {
          throw error;
        }
      }
      const stat = fs.statSync(lock, { throwIfNoEntry: false });
      if (stat && Date.now() - stat.mtimeMs > LOCK_AGE) {
        fs.rmSync(lock, { force: true });
      } else if (Date.now() - begun > LOCK_PATIENCE) {
        throw new Error(`\`${lock}\` is held by another process`);
      } else {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_PAUSE);
      }
    }
    try {
      return act();
    } finally {
      fs.rmSync(lock, { force: true });
    }
  }
}

/** A replaced file is another inode; one that was written in place has another time or size. */
function identity(stat: fs.BigIntStats): string {
  return `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
}

/** The longest line that is read of the program: a message at its limit, and what is around it. */
const MAX_LINE = 32 * 1024 * 1024;

/** Starts the program. Standard error is the application's own. */
export function startGate(program: string, args: readonly string[], events: ProcessEvents): GateProcess {
  if (!path.isAbsolute(program)) {
    throw new Error(`\`${program}\`: the program has to be named by its absolute path`);
  }
  // In a group of its own, so that an interrupt ends the application first.
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], detached: true, windowsHide: true });
  let rest = "";
  const decoder = new StringDecoder("utf8");
  child.on("error", (error) => events.end(error));
  child.on("close", (code) => events.end(new Error(`it ended with ${code}`)));
  child.stdin.on("error", (error) => events.end(error));
  child.stdout.on("data", (bytes: Buffer) => {
    const lines = (rest + decoder.write(bytes)).split("\n");
    rest = lines.pop() ?? "";
    lines.forEach((line) => events.line(line));
    if (rest.length > MAX_LINE) {
      rest = "";
      child.stdin.end();
      events.end(new Error("it wrote a line over the limit"));
    }
  });
  return {
    write: (line) => void child.stdin.write(`${line}\n`),
    end: () => child.stdin.end(),
  };
}
