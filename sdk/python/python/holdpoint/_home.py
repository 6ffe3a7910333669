"""`HomePin`: pins, approvals, statistics and receipts of a Holdpoint home, through `holdpoint pins --stdio`."""

from __future__ import annotations

import json
import os

from ._errors import HELD, Held, HoldpointError, PinError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import Any

    from ._gate import Host

VERSION = 1
# How long the gate may take to open a home.
OPEN_SECONDS = 30.0
# How long the gate may take to write its last receipts.
END_SECONDS = 6.0


class HomePin:
    """A Holdpoint home that this application shares with `holdpoint run` and other processes.

    `holdpoint approve` in a terminal counts for the next call, and every call has its receipts. `program` is the absolute path
    of the `holdpoint` binary; without it the one that came with this package is used, or the one in `~/.local/bin`.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        program: str | os.PathLike[str] | None = None,
        quiet: bool = True,
    ):
        self._home = None if home is None else os.path.abspath(os.path.expanduser(os.fspath(home)))
        self._program = _find_program() if program is None else os.fspath(program)
        if not os.path.isabs(self._program):
            raise PinError(f"`{self._program}` is not an absolute path: which program decides must not depend on PATH")
        if not os.path.isfile(self._program):
            raise PinError(f"`{self._program}` is not there")
        self._quiet = quiet

    def __repr__(self) -> str:
        return f"HomePin({self._home!r})"

    def command(self) -> list[str]:
        words = [self._program, "pins", "--stdio"]
        words += ["--quiet"] if self._quiet else []
        return words if self._home is None else [*words, "--home", self._home]


def _find_program() -> str:
    import sysconfig

    name = "holdpoint.exe" if os.name == "nt" else "holdpoint"
    folders = [sysconfig.get_path("scripts"), os.path.expanduser("~/.local/bin")]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise PinError(f"no `{name}` in {' or '.join(folders)}: name it with HomePin(program=…)")


class HomeGate:
    """The gate in a process of its own. Each message of the session goes there, and what comes back is carried out."""

    is_home = True

    def __init__(
        self,
        pin: HomePin,
        options: dict[str, Any],
        host: Host,
        on_held: Callable[[Held], None] | None,
    ):
        extra = set(options) - {"server", "relistMaxAge"}
        if extra:
            raise HoldpointError(f"with HomePin the home's configuration says {', '.join(sorted(extra))}: holdpoint.toml")
        self._pin, self._host, self._on_held = pin, host, on_held
        self._options = {**options, "version": VERSION}
        if "relistMaxAge" in self._options:
            self._options["relistMaxAge"] = int(self._options["relistMaxAge"])
        self._server: str = options["server"]
        self._process: subprocess.Popen[bytes] | None = None
        self._handshake: dict[str, Any] | None = None
        self._waiting: dict[int, Callable[[dict[str, Any]], None]] = {}
        self._requests = 0
        self._opened: Any = None
        self._failure: str | None = None
        self._soon: Any = None
        # Responses to the replayed handshake are not forwarded.
        self._replayed: set[str] = set()

    def greet(self, handshake: dict[str, Any]) -> str | None:
        """A session that is connected already: its handshake is told again to the gate."""
        if "serverInfo" not in handshake:
            raise HoldpointError(
                "this session is initialized already, and its library keeps no name of the server: "
                "wrap it before `initialize()`"
            )
        self._handshake = handshake
        return handshake.get("instructions")

    async def start(self) -> None:
        """Starts the gate, unless that was done."""
        if self._process is not None:
            return
        import subprocess
        import threading

        import anyio

        self._soon = _soon()
        self._opened = anyio.Event()
        try:
            self._process = subprocess.Popen(
                self._pin.command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C in a terminal is meant for the application; the gate ends with it.
                start_new_session=True,
            )
        except OSError as error:
            raise PinError(f"`{self._pin.command()[0]}` cannot be started: {error.strerror}") from error
        threading.Thread(target=self._read_lines, name="holdpoint", daemon=True).start()
        self._write("open", self._options)
        with anyio.move_on_after(OPEN_SECONDS):
            await self._opened.wait()
        if self._failure is not None or not self._opened.is_set():
            self.close()
            raise PinError(self._failure or "the gate did not start in time")
        if self._handshake is not None:
            self._replay(self._handshake)

    def _replay(self, handshake: dict[str, Any]) -> None:
        version = handshake.get("protocolVersion")
        if version is None:
            return  # Without a session each request says what it is made with.
        self._replayed = {"hp-replay"}
        info = {"name": "holdpoint-sdk", "version": "1"}
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        self._write("client", {"jsonrpc": "2.0", "id": "hp-replay", "method": "initialize", "params": params})

    def _read_lines(self) -> None:
        """Runs in a thread of its own, so that the gate is never kept waiting by this application."""
        process = self._process
        assert process is not None and process.stdout is not None
        try:
            for line in process.stdout:
                self._soon(self._hear, json.loads(line))
        except (ValueError, OSError):
            pass
        try:
            self._soon(self._ended)
        except RuntimeError:
            pass  # The application has ended.

    def _write(self, kind: str, value: Any) -> None:
        self._write_text(f'{{"{kind}":{json.dumps(value)}}}')

    def _write_text(self, line: str) -> None:
        process = self._process
        if self._failure is not None or process is None or process.stdin is None:
            raise _ended(self._server, self._failure)
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            self._ended()
            raise _ended(self._server, self._failure) from None

    def _hear(self, line: dict[str, Any]) -> None:
        ((kind, value),) = line.items()
        if kind == "toServer":
            self._to_server(value)
        elif kind == "toClient":
            if value.get("id") not in self._replayed:
                self._host.to_client(value)
            else:
                self._write("client", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        elif kind == "answer":
            self._answer(value)
        elif kind in ("reviewed", "approved", "refused"):
            waiting = self._waiting.pop(value["id"], None)
            if waiting is not None:
                waiting({kind: value})
        elif kind == "opened":
            self._opened.set()
        else:
            self._failure = value.get("message", kind) if isinstance(value, dict) else kind
            self._ended()

    def _to_server(self, message: dict[str, Any]) -> None:
        identifier = message.get("id")
        if identifier in self._replayed:
            self._write("server", {"jsonrpc": "2.0", "id": identifier, "result": self._handshake})
        elif self._host.carries_messages or (isinstance(identifier, str) and identifier.startswith("hp-")):
            self._host.to_server(message)
        elif isinstance(identifier, int):
            self._host.send(identifier, True)

    def _answer(self, message: dict[str, Any]) -> None:
        error = message.get("error")
        if error is None or error["code"] != HELD:
            if error is None or self._host.carries_messages:
                self._host.answer(message["id"], message)
            else:
                self._host.refuse(message["id"], Refused(error))
            return
        # Fetch what waits before reporting the hold, so that the application can show it.
        tool = (error.get("data") or {}).get("tool")

        def reviewed(answer: dict[str, Any]) -> None:
            entries = answer.get("reviewed", {}).get("entries") or []
            entry = entries[0] if entries else None
            refusal = dict(error)
            if entry is not None:
                refusal["entry"] = {"type": entry["type"], "key": entry["key"]}
                refusal["evidence"] = entry.get("findings") or []
            held = Held(refusal, self)
            from ._gate import tell

            tell(self._on_held, held)
            if self._host.carries_messages:
                self._host.answer(message["id"], message)
            else:
                self._host.refuse(message["id"], held)

        self._request("review", {} if tool is None else {"tool": tool}, reviewed)

    def _request(self, kind: str, members: dict[str, Any], done: Callable[[dict[str, Any]], None]) -> None:
        self._requests += 1
        self._waiting[self._requests] = done
        self._write(kind, {"id": self._requests, **members})

    async def _ask(self, kind: str, members: dict[str, Any]) -> dict[str, Any]:
        import anyio

        event, answers = anyio.Event(), []

        def done(answer: dict[str, Any]) -> None:
            answers.append(answer)
            event.set()

        self._request(kind, members, done)
        await event.wait()
        return answers[0]

    async def waiting(self) -> list[dict[str, Any]]:
        return await self._reviewed({})

    async def review(self, held: Held) -> dict[str, Any] | None:
        entries = await self._reviewed({} if held.tool_name is None else {"tool": held.tool_name})
        return entries[0] if entries else None

    async def _reviewed(self, members: dict[str, Any]) -> list[dict[str, Any]]:
        answer = await self._ask("review", members)
        if "refused" in answer:
            raise HoldpointError(answer["refused"]["message"])
        return answer["reviewed"]["entries"]

    async def repin(self, held: Held, by: str) -> None:
        if held.held_hash is None:
            raise HoldpointError("this hold is not about one entry, so that there is nothing to accept")
        members = {"hash": held.held_hash}
        if held.tool_name is not None:
            members["tool"] = held.tool_name
        answer = await self._ask("approve", members)
        if "refused" in answer:
            raise HoldpointError(answer["refused"]["message"])

    def client(self, ticket: int, message: str) -> bool:
        self._write_text(f'{{"client":{message}}}')
        return False

    def server(self, message: str) -> bool:
        self._write_text(f'{{"server":{message}}}')
        return False

    def lost(self) -> None:
        """A list could not be asked for. The gate answers what waits for it once its patience ends."""

    def tick(self) -> None:
        pass

    def _ended(self) -> None:
        if self._failure is None:
            self._failure = "the gate has ended"
        if self._opened is not None:
            self._opened.set()
        waiting, self._waiting = self._waiting, {}
        gone = _ended(self._server, self._failure)
        for done in waiting.values():
            done({"refused": {"message": str(gone)}})
        self._host.fail_all(gone)

    def close(self) -> None:
        """Lets the gate end, and waits a moment for its last receipts."""
        if self._failure is None:
            self._failure = "the session was closed"
        process = self._process
        if process is None:
            return
        import subprocess

        try:
            if process.stdin is not None:
                process.stdin.close()
        except OSError:
            pass
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _ended(server: str, failure: str | None) -> Refused:
    from ._gate import broken

    return broken(server, f"{failure or 'the gate has ended'}, so nothing is sent")


def _soon() -> Callable[..., Any]:
    """Calls something in the thread of the application's event loop."""
    import sys

    trio = sys.modules.get("trio")
    if trio is not None:
        try:
            return trio.lowlevel.current_trio_token().run_sync_soon
        except RuntimeError:
            pass
    import asyncio

    return asyncio.get_running_loop().call_soon_threadsafe
