"""`wrap`: the gate in a session of the `mcp` package. Every request of the session goes through it."""

from __future__ import annotations

import itertools
import json

from ._errors import UNREACHABLE, HoldpointError, Refused
from ._gate import LocalGate, broken
from ._home import HomeGate, HomePin
from ._pins import PreflightPin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, TypeVar

    from ._errors import Held
    from ._gate import Gate, Host

    Session = TypeVar("Session")

LIST_CHANGED = ("tools", "prompts", "resources")


def options_of(
    server_id: str, posture: str | None, relist_max_age: float | None, settings: dict[str, Any] | None
) -> dict[str, Any]:
    options: dict[str, Any] = {"server": server_id, **(settings or {})}
    if posture is not None:
        options["posture"] = posture
    if relist_max_age is not None:
        options["relistMaxAge"] = relist_max_age
    return options


def gate_of(
    pin: PreflightPin | HomePin,
    options: dict[str, Any],
    host: Host,
    on_held: Callable[[Held], None] | None,
) -> Gate:
    if isinstance(pin, HomePin):
        return HomeGate(pin, options, host, on_held)
    if isinstance(pin, PreflightPin):
        return LocalGate(pin, options, host, on_held)
    raise TypeError("`pin` is a PreflightPin or a HomePin")


def wrap(
    session: Session,
    *,
    pin: PreflightPin | HomePin,
    server_id: str,
    posture: str | None = None,
    relist_max_age: float | None = None,
    on_held: Callable[[Held], None] | None = None,
    settings: dict[str, Any] | None = None,
) -> Session:
    """Puts the gate into an `mcp.ClientSession` (or an `mcp.Client` of 2.x that is connected), and returns it.

    The session keeps all its members. A request whose tool changed raises `Held` before anything is sent. `on_held` hears of
    every hold, also where a framework replaces the exception. `posture` is `monitor`, `shield`, `guard` or `strict`.
    """
    inner = getattr(session, "session", session)
    if getattr(inner, "_holdpoint", None) is not None:
        raise HoldpointError("this session has a gate already")
    options = options_of(server_id, posture, relist_max_age, settings)
    # Lists that the client cached were never compared.
    if inner is not session and hasattr(session, "_response_cache"):
        session._response_cache = None  # type: ignore[attr-defined]
    SessionGate(inner, pin, options, on_held)
    return session


async def waiting(session: Any) -> list[dict[str, Any]]:
    """All that waits for a person in a wrapped session, deferred changes included: the documents of `Held.review`."""
    gate = getattr(getattr(session, "session", session), "_holdpoint", None)
    if gate is None:
        raise HoldpointError("this session has no gate")
    return await gate.waiting()


class Pending:
    """A request that waits at the gate."""

    __slots__ = ("error", "event", "outcome")

    def __init__(self) -> None:
        # ("send", is_watched), ("answer", message) or ("refuse", exception)
        self.outcome: tuple[str, Any] | None = None
        self.event: Any = None
        # The library's exception, if the server answered with an error.
        self.error: Exception | None = None

    def settle(self, kind: str, value: Any) -> None:
        self.outcome = (kind, value)
        self.wake()

    def wake(self) -> None:
        if self.event is not None:
            self.event.set()


class SessionGate:
    """Takes over `send_request` of a session. Requests of the gate's own are made by a caller that waits for them."""

    carries_messages = False

    def __init__(
        self,
        session: Any,
        pin: PreflightPin | HomePin,
        options: dict[str, Any],
        on_held: Callable[[Held], None] | None,
    ):
        from . import _mcp

        self._mcp, self._session, self._server = _mcp, session, options["server"]
        self._tickets = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._own: list[dict[str, Any]] = []
        # The server's response that is being passed to the gate.
        self._heard: dict[str, Any] = {}
        self._patience = 30.0
        self._is_ready = False
        self._gate = gate_of(pin, options, self, on_held)
        self._send: Callable[..., Awaitable[Any]] = session.send_request
        self._greet()
        session._holdpoint = self
        session.send_request = self.send_request
        if hasattr(session, "send_discover"):
            self._discover = session.send_discover
            session.send_discover = self.send_discover
        self._handler = session._message_handler
        session._message_handler = self.hear
        if self._gate.is_home:
            self._end_with(session)

    def _end_with(self, session: Any) -> None:
        """Lets the gate's process end with the session."""
        stack = getattr(session, "_exit_stack", None)
        if stack is not None:
            stack.callback(self._gate.close)
        elif hasattr(session, "_close_binding_queues"):
            closing = session._close_binding_queues

            def close() -> None:
                closing()
                self._gate.close()

            session._close_binding_queues = close

    def _greet(self) -> None:
        """Tells the gate what a session that is connected already knows of its server."""
        session = self._session
        known = getattr(session, "initialize_result", None) or getattr(session, "discover_result", None)
        if known is not None:
            handshake = known.model_dump(by_alias=True, mode="json", exclude_none=True)
        elif (capabilities := getattr(session, "_server_capabilities", None)) is not None:
            handshake = {"capabilities": capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)}
        else:
            return
        accepted = self._gate.greet(handshake)
        if known is not None and known.instructions != accepted:
            shown = known.model_copy(update={"instructions": accepted})
            name = "_initialize_result" if getattr(session, "initialize_result", None) else "_discover_result"
            setattr(session, name, shown)

    # The gate's actions on the session.

    def send(self, ticket: int, is_watched: bool) -> None:
        self._settle(ticket, "send", is_watched)

    def drop(self, ticket: int) -> None:
        self._pending.pop(ticket, None)

    def to_server(self, message: dict[str, Any]) -> None:
        self._own.append(message)
        # The waiting caller makes the request.
        for pending in self._pending.values():
            pending.wake()

    def to_client(self, message: dict[str, Any]) -> None:
        self._settle(message.get("id"), "answer", message)

    def answer(self, ticket: int, message: dict[str, Any]) -> None:
        self._settle(ticket, "answer", message)

    def answer_as_sent(self, ticket: int, identifier: str) -> None:
        if self._heard.get("id") != identifier:
            raise HoldpointError("the list is no longer there")
        result = {**self._heard["result"], "ttlMs": 0}
        self._settle(ticket, "answer", {"jsonrpc": "2.0", "id": ticket, "result": result})

    def refuse(self, ticket: int, refused: Refused) -> None:
        self._settle(ticket, "refuse", refused)

    def wake(self, milliseconds: int) -> None:
        self._patience = milliseconds / 1000

    def _settle(self, ticket: Any, kind: str, value: Any) -> None:
        pending = self._pending.get(ticket) if isinstance(ticket, int) else None
        if pending is not None:
            pending.settle(kind, value)

    def fail_all(self, refused: Refused) -> None:
        self._own.clear()
        for pending in self._pending.values():
            pending.settle("refuse", refused)

    async def waiting(self) -> list[dict[str, Any]]:
        return await self._gate.waiting()

    # The session's messages to the gate.

    async def hear(self, message: Any) -> None:
        """A notification of the server, on its way to the application's handler."""
        root = getattr(message, "root", message)
        method = getattr(root, "method", None)
        if isinstance(method, str) and method.endswith("/list_changed"):
            self._hand_in({"jsonrpc": "2.0", "method": method})
        await self._handler(message)

    def _hand_in(self, message: dict[str, Any]) -> bool:
        """Hands a message of the server to the gate. If the gate itself fails, nothing goes on."""
        self._heard = message
        try:
            return self._gate.server(json.dumps(message))
        except BaseException as error:
            self.fail_all(broken(self._server, f"the gate failed: {error}"))
            raise
        finally:
            self._heard = {}

    async def send_request(self, request: Any, result_type: Any, *arguments: Any, **options: Any) -> Any:
        ticket = next(self._tickets)
        text = self._text(ticket, request)
        actions = None
        if isinstance(self._gate, LocalGate):
            actions = self._gate.offer(ticket, text)
            if actions is None:
                # The ordinary call, with as little overhead as possible.
                return await self._send(request, result_type, *arguments, **options)

        async def original(as_type: Any) -> Any:
            return await self._send(request, as_type, *arguments, **options)

        return await self._request(ticket, text, result_type, original, actions)

    def _text(self, ticket: int, request: Any) -> str:
        """The message that a request becomes, with the ticket for its id."""
        stamp = getattr(self._session, "_stamp", None)
        if self._gate.is_home and stamp is not None:
            # Without a session, each request carries its own metadata.
            data = request.model_dump(by_alias=True, mode="json", exclude_none=True)
            stamp(data, {})
            return json.dumps({"jsonrpc": "2.0", "id": ticket, **data})
        return f'{{"jsonrpc":"2.0","id":{ticket},{self._mcp.text_of(request)[1:]}'

    async def send_discover(self, version: str) -> dict[str, Any]:
        async def original(_: Any) -> Any:
            return self._mcp.Loose(await self._discover(version))

        ticket = next(self._tickets)
        text = f'{{"jsonrpc":"2.0","id":{ticket},"method":"server/discover","params":{{}}}}'
        return (await self._request(ticket, text, self._mcp.Loose, original)).root

    async def _request(
        self,
        ticket: int,
        text: str,
        result_type: Any,
        original: Callable[[Any], Awaitable[Any]],
        actions: str | None = None,
    ) -> Any:
        if not self._is_ready:
            await self._gate.start()
            self._is_ready = True
        pending = self._pending[ticket] = Pending()
        try:
            if actions is not None and isinstance(self._gate, LocalGate):
                self._gate.take(actions, ticket, text)
            elif self._gate.client(ticket, text):
                return await original(result_type)
            return await self._wait(ticket, pending, result_type, original)
        finally:
            self._pending.pop(ticket, None)
            if pending.outcome is None:
                # The caller gave up while the request waited at the gate: cancel it there, without
                # ever sending it.
                params = f'{{"requestId":{ticket}}}'
                self._gate.client(0, f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}')

    async def _wait(
        self,
        ticket: int,
        pending: Pending,
        result_type: Any,
        original: Callable[[Any], Awaitable[Any]],
    ) -> Any:
        import anyio

        while True:
            if pending.outcome is None:
                if self._own:
                    await self._ask_lists()
                else:
                    pending.event = anyio.Event()
                    await pending.event.wait()
                continue
            kind, value = pending.outcome
            if kind == "refuse":
                raise value
            if kind == "answer":
                if "error" in value:
                    raise pending.error or self._mcp.error_of(value["error"])
                return self._mcp.validated(result_type, value["result"])
            if not value:
                return await original(result_type)
            pending.outcome = None
            answer = await self._answer(ticket, pending, original)
            if self._hand_in(answer):
                pending.settle("answer", answer)

    async def _answer(
        self, ticket: int, pending: Pending, original: Callable[[Any], Awaitable[Any]]
    ) -> dict[str, Any]:
        """Makes the request, and returns the answer as the message that it came as."""
        head = {"jsonrpc": "2.0", "id": ticket}
        try:
            return {**head, "result": (await original(self._mcp.Loose)).root}
        except Exception as error:
            pending.error = error
            found = self._mcp.is_error(error)
            return {**head, "error": found or {"code": UNREACHABLE, "message": "the request failed"}}

    async def _ask_lists(self) -> None:
        """Makes the gate's own requests. A caller that is cancelled meanwhile leaves them to the next one."""
        import anyio

        own, self._own = self._own, []
        unfinished = list(own)
        try:
            async with anyio.create_task_group() as group:
                for message in own:
                    group.start_soon(self._ask_list, message, unfinished)
        finally:
            if unfinished:
                self._own[:0] = unfinished
                for pending in self._pending.values():
                    pending.wake()

    async def _ask_list(self, message: dict[str, Any], unfinished: list[dict[str, Any]]) -> None:
        import anyio

        head = {"jsonrpc": "2.0", "id": message["id"]}
        answer: dict[str, Any] | None = None
        is_late = False
        try:
            with anyio.fail_after(self._patience):
                result = await self._send(self._mcp.list_request(message), self._mcp.Loose)
            answer = {**head, "result": result.root}
        except TimeoutError:
            is_late = True
        except ValueError:
            answer = {**head, "error": {"code": -32603, "message": "the list is not what the protocol says"}}
        except Exception as error:
            found = self._mcp.is_error(error)
            answer = None if found is None else {**head, "error": found}
        unfinished.remove(message)
        if answer is not None:
            self._hand_in(answer)
            return
        if is_late:
            self._gate.tick()
        self._gate.lost()
