"""The gate of one session, with pins in memory or in files. The rules are in `_core`; this carries out what it says."""

from __future__ import annotations

import json
import os
import time

from ._errors import HELD, INTERNAL, Held, HoldpointError, PinError, Refused, refusal_of

try:
    from . import _core
except ImportError as error:
    raise ImportError(
        f"holdpoint's extension cannot be loaded, so no session can be gated: {error}"
    ) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from ._pins import PreflightPin

    class Host(Protocol):
        """What a gate does to the session that it stands in."""

        carries_messages: bool

        def send(self, ticket: int, is_watched: bool) -> None: ...
        def drop(self, ticket: int) -> None: ...
        def to_server(self, message: dict[str, Any]) -> None: ...
        def to_client(self, message: dict[str, Any]) -> None: ...
        def answer(self, ticket: int, message: dict[str, Any]) -> None: ...
        def answer_as_sent(self, ticket: int, identifier: str) -> None: ...
        def refuse(self, ticket: int, refused: Refused) -> None: ...
        def wake(self, milliseconds: int) -> None: ...
        def fail_all(self, refused: Refused) -> None: ...

    class Gate(Protocol):
        is_home: bool

        async def start(self) -> None: ...
        def client(self, ticket: int, message: str) -> bool: ...
        def server(self, message: str) -> bool: ...
        def lost(self) -> None: ...
        def tick(self) -> None: ...
        def greet(self, handshake: dict[str, Any]) -> str | None: ...
        async def waiting(self) -> list[dict[str, Any]]: ...
        async def review(self, held: Held) -> dict[str, Any] | None: ...
        async def repin(self, held: Held, by: str) -> None: ...
        def close(self) -> None: ...


# How often pins that another process has just written are reloaded for one message.
MAX_LOADS = 5


def now() -> int:
    return time.time_ns() // 1_000_000


class LocalGate:
    """The gate inside this process."""

    is_home = False

    def __init__(
        self,
        pin: PreflightPin,
        options: dict[str, Any],
        host: Host,
        on_held: Callable[[Held], None] | None,
    ):
        self._pin, self._host, self._on_held = pin, host, on_held
        self._server: str = options["server"]
        self._seen = None
        # Messages that wait for a list, by ticket. A held message may have to be decided on again.
        self._kept: dict[int, str] = {}
        text = self._read()
        try:
            self._session = _core.Session(json.dumps(options), text, os.urandom(8).hex())
        except ValueError as error:
            where = f"{pin.describe(self._server)}: " if text is not None else ""
            raise PinError(f"{where}{error}") from None

    def _read(self) -> str | None:
        self._seen = self._pin.revision(self._server)
        return self._pin.read(self._server)

    async def start(self) -> None:
        pass

    def close(self) -> None:
        pass

    def greet(self, handshake: dict[str, Any]) -> str | None:
        """What a connected session knows of its server. Returns the instructions that were accepted."""
        if not self._session.greet(json.dumps(handshake)):
            raise HoldpointError("the server's handshake is invalid or ambiguous")
        return self._session.instructions()

    def client(self, ticket: int, message: str) -> bool:
        """Takes a message of the client. `True`: it goes on as it is."""
        actions = self.offer(ticket, message)
        if actions is None:
            return True
        self.take(actions, ticket, message)
        return False

    def offer(self, ticket: int, message: str) -> str | None:
        """What is to be done with a message of the client. `None`, the ordinary case: it goes on as it is."""
        return self._session.client(ticket, message, time.time_ns() // 1_000_000)

    def take(self, actions: str, ticket: int, message: str) -> None:
        """Does what `offer` said."""
        self._carry_out(actions, {ticket: message})

    def server(self, message: str) -> bool:
        """Takes a message of the server. `True`: it goes on as it is."""
        actions = self._session.server(message, now())
        if actions is None:
            return True
        self._carry_out(actions, {})
        return False

    def lost(self) -> None:
        self._carry_out(self._session.lost(), {})

    def tick(self) -> None:
        self._carry_out(self._session.tick(now()), {})

    def _carry_out(self, text: str | None, messages: dict[int, str], loads: int = 0) -> None:
        host = self._host
        for action in json.loads(text) if text is not None else ():
            ((name, value),) = action.items()
            if name == "wait":
                self._kept[value] = messages.get(value, "")
            elif name == "send":
                self._kept.pop(value, None)
                host.send(value, False)
            elif name == "watch":
                host.send(value, True)
            elif name == "drop":
                self._kept.pop(value, None)
                host.drop(value)
            elif name == "toServer":
                host.to_server(value)
            elif name == "toClient":
                host.to_client(value)
            elif name == "answer":
                self._kept.pop(value["ticket"], None)
                host.answer(value["ticket"], value["message"])
            elif name == "answerAsSent":
                self._kept.pop(value["ticket"], None)
                host.answer_as_sent(value["ticket"], value["id"])
            elif name == "refuse":
                self._refuse(value, messages, loads)
            elif name == "save":
                pins = self._session.pins(now())
                if pins is None:
                    raise HoldpointError("no pins wait to be written")
                self._save(pins, loads)
            elif name == "wake":
                host.wake(value)
            elif name != "withhold":
                raise HoldpointError(f"the core asks for `{name}`, which this version does not know")

    def _refuse(self, refusal: dict[str, Any], messages: dict[int, str], loads: int) -> None:
        ticket = refusal["ticket"]
        message = self._kept.pop(ticket, None) or messages.get(ticket)
        if refusal["code"] != HELD:
            self._host.refuse(ticket, Refused(refusal))
            return
        # Another process may have accepted it.
        if message and loads < MAX_LOADS and self._pin.revision(self._server) != self._seen:
            try:
                self._load(self._read(), loads + 1)
            except PinError as error:
                self._host.refuse(ticket, broken(self._server, str(error)))
                return
            actions = self._session.client(ticket, message, now())
            if actions is None:
                self._host.send(ticket, False)
            else:
                self._carry_out(actions, {ticket: message}, loads + 1)
            return
        held = Held(refusal, self)
        tell(self._on_held, held)
        self._host.refuse(ticket, held)

    def _load(self, text: str | None, loads: int) -> None:
        if text is None:
            raise PinError(f"{self._pin.describe(self._server)} is gone, and with it what was accepted")
        try:
            actions = self._session.load(text, now())
        except ValueError as error:
            raise PinError(f"{self._pin.describe(self._server)}: {error}") from None
        self._carry_out(actions, {}, loads)

    def _save(self, text: str, loads: int) -> None:
        try:
            other = self._pin.write(self._server, text)
            if other is None:
                self._seen = self._pin.revision(self._server)
                return self._carry_out(self._session.saved(now()), {}, loads)
            if loads < MAX_LOADS:
                self._seen = self._pin.revision(self._server)
                return self._load(other, loads + 1)
        except (OSError, PinError) as error:
            warn(f"{self._pin.describe(self._server)} cannot be written, so calls are refused: {error}")
        self._carry_out(self._session.unsaved(), {}, loads)

    async def waiting(self) -> list[dict[str, Any]]:
        return [review_of(document) for document in json.loads(self._session.waiting())]

    async def review(self, held: Held) -> dict[str, Any] | None:
        if held.entry is None:
            return None
        text = self._session.review(held.entry["type"], held.entry["key"])
        return None if text is None else review_of(json.loads(text))

    async def repin(self, held: Held, by: str) -> None:
        if held.entry is None or held.held_hash is None:
            raise HoldpointError("this hold is not about one entry, so that there is nothing to accept")
        kind, key = held.entry["type"], held.entry["key"]
        for attempt in range(MAX_LOADS):
            try:
                actions = self._session.repin(kind, key, held.held_hash, by, now())
            except ValueError as error:
                if attempt > 0 and self._session.review(kind, key) is None:
                    return  # Another process accepted it meanwhile.
                raise HoldpointError(str(error)) from None
            self._carry_out(actions, {})
            if self._session.review(kind, key) is None:
                return
        raise PinError(f"{self._pin.describe(self._server)} cannot be written: nothing was accepted")


def review_of(document: dict[str, Any]) -> dict[str, Any]:
    """The definitions as objects, whichever way they came."""
    for member in ("before", "after"):
        value = document.get(member)
        if isinstance(value, str):
            document[member] = json.loads(value)
    return document


def tell(on_held: Callable[[Held], None] | None, held: Held) -> None:
    """Tells the application of a hold. What goes wrong there does not let the call through."""
    if on_held is None:
        return
    try:
        on_held(held)
    except Exception:
        import logging

        logging.getLogger("holdpoint").exception("on_held raised")


def warn(sentence: str) -> None:
    import logging

    logging.getLogger("holdpoint").error(sentence)


def broken(server: str, sentence: str) -> Refused:
    return Refused(refusal_of(INTERNAL, "internal", server, sentence))
