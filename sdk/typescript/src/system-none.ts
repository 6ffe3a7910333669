// Where there are neither files nor processes.

import type { PinStore } from "./pins.js";
import type { GateProcess, ProcessEvents } from "./home.js";

export function fileStore(_folder: string, _serverId: string): PinStore {
  throw new Error("there are no files here: use `new PreflightPin()` without a path");
}

export function startGate(_program: string, _args: readonly string[], _events: ProcessEvents): GateProcess {
  throw new Error("no program can be started here: use `new PreflightPin()`");
}
