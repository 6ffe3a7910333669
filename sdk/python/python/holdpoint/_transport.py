"""`wrap_transport`: the gate between any client and its transport, for frameworks that make their own session."""

from __future__ import annotations

import itertools
import json
from collections import deque

from ._errors import UNREACHABLE, HoldpointError, Refused, refusal_of
from ._gate import broken
from ._session import gate_of, options_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from ._errors import Held
    from ._home import HomePin
    from ._pins import PreflightPin

# The most messages queued for delivery before no more are accepted.
MAX_OUT = 1_000


def wrap_transport(
    transport: AbstractAsyncContextManager[Any],
    *,
    pin: PreflightPin | HomePin,
    server_id: str,
    posture: str | None = None,
    relist_max_age: float | None = None,
    on_held: Callable[[Held], None] | None = None,
    settings: dict[str, Any] | None = None,
) -> AbstractAsyncContextManager[Any]:
    """Puts the gate into a transport of the `mcp` package: what `stdio_client` or `streamablehttp_client` returns.

    A held call is answered with the error -32010, which the client raises in its own way; `on_held` has the `Held`.
    """
    from contextlib import asynccontextmanager

    options = options_of(server_id, posture, relist_max_age, settings)

    @asynccontextmanager
    async def gated() -> AsyncIterator[Any]:
        import anyio

        async with transport as streams:
            read, write, *rest = streams
            gate = TransportGate(read, write, pin, options, on_held)
            await gate.start()
            try:
                async with anyio.create_task_group() as group:
                    for work in (gate.from_client, gate.from_server, gate.deliver):
                        group.start_soon(work)
                    yield (gate.read, gate.write, *rest)
                    group.cancel_scope.cancel()
            finally:
                gate.close()

    return gated()


class TransportGate:
    """Carries messages between a client and its transport, through the gate."""

    carries_messages = True

    def __init__(
        self,
        read: Any,
        write: Any,
        pin: PreflightPin | HomePin,
        options: dict[str, Any],
        on_held: Callable[[Held], None] | None,
    ):
        import anyio

        from . import _mcp

        self._mcp, self._inner_read, self._inner_write = _mcp, read, write
        self._server: str = options["server"]
        self._tickets = itertools.count(1)
        # Messages that wait at the gate, and the ids of requests whose responses it must see.
        self._kept: dict[int, Any] = {}
        self._watched: set[Any] = set()
        # The queue of messages to deliver, each with its stream.
        self._out: deque[tuple[Any, Any]] = deque()
        self._has_out = anyio.Event()
        self._has_room = anyio.Event()
        self._to_client, self.read = anyio.create_memory_object_stream(0)
        self.write, self._from_client = anyio.create_memory_object_stream(0)
        # The text of the server's message that is being passed to the gate.
        self._heard = ""
        self._deadline: float | None = None
        self._refused: Refused | None = None
        self._gate = gate_of(pin, options, self, on_held)

    async def start(self) -> None:
        await self._gate.start()

    def close(self) -> None:
        self._gate.close()
        for stream in (self._to_client, self.read, self.write, self._from_client):
            stream.close()

    # The gate's actions on the transport.

    def _put(self, stream: Any, message: Any) -> None:
        self._out.append((stream, message))
        self._has_out.set()

    def send(self, ticket: int, is_watched: bool) -> None:
        message = self._kept.pop(ticket, None)
        if message is None:
            return
        if is_watched:
            self._watched.add(self._mcp.id_of(message))
        self._put(self._inner_write, message)

    def drop(self, ticket: int) -> None:
        self._kept.pop(ticket, None)

    def to_server(self, message: dict[str, Any]) -> None:
        identifier = message.get("id")
        kept = None
        if not (isinstance(identifier, str) and identifier.startswith("hp-")):
            # A message of the client comes back from the gate unchanged.
            found = [ticket for ticket, kept in self._kept.items() if self._mcp.id_of(kept) == identifier]
            kept = self._kept.pop(found[0], None) if found else None
        self._put(self._inner_write, kept or self._mcp.message_of(message))

    def to_client(self, message: dict[str, Any]) -> None:
        self._put(self._to_client, self._mcp.message_of(message))

    def answer(self, ticket: int, message: dict[str, Any]) -> None:
        self._kept.pop(ticket, None)
        self.to_client(message)

    def answer_as_sent(self, ticket: int, identifier: str) -> None:
        heard = json.loads(self._heard or "{}")
        message = self._kept.pop(ticket, None)
        if heard.get("id") != identifier:
            raise HoldpointError("the list is no longer there")
        if message is not None:
            result = {**heard["result"], "ttlMs": 0}
            self.to_client({"jsonrpc": "2.0", "id": self._mcp.id_of(message), "result": result})

    def refuse(self, ticket: int, refused: Refused) -> None:
        message = self._kept.pop(ticket, None)
        identifier = None if message is None else self._mcp.id_of(message)
        if identifier is not None:
            error = {"code": refused.code, "message": str(refused), "data": refused.data}
            self.to_client({"jsonrpc": "2.0", "id": identifier, "error": error})

    def wake(self, milliseconds: int) -> None:
        self._deadline = milliseconds / 1000
        self._has_out.set()

    def fail_all(self, refused: Refused) -> None:
        self._refused = refused
        for ticket in list(self._kept):
            self.refuse(ticket, refused)

    # The loops that forward messages.

    async def from_client(self) -> None:
        async with self._from_client:
            async for message in self._from_client:
                self._take(message)
                await self._room()
        await self._inner_write.aclose()

    def _take(self, message: Any) -> None:
        ticket = next(self._tickets)
        self._kept[ticket] = message
        if self._refused is not None:
            return self.refuse(ticket, self._refused)
        try:
            if self._gate.client(ticket, self._mcp.text_of(message.message)):
                self.send(ticket, False)
        except Refused as refused:
            self.fail_all(refused)
        except HoldpointError as error:
            self.refuse(ticket, broken(self._server, str(error)))
        except BaseException as error:
            self.fail_all(broken(self._server, f"the gate failed: {error}"))
            raise

    async def from_server(self) -> None:
        async with self._to_client:
            async for message in self._inner_read:
                await self._room()
                if isinstance(message, Exception) or not self._is_seen(message):
                    self._put(self._to_client, message)
                    continue
                self._heard = self._mcp.text_of(message.message)
                try:
                    if self._gate.server(self._heard):
                        self._put(self._to_client, message)
                except Refused as refused:
                    self.fail_all(refused)
                except BaseException as error:
                    self.fail_all(broken(self._server, f"the gate failed: {error}"))
                    raise
                finally:
                    self._heard = ""
            self.fail_all(Refused(refusal_of(UNREACHABLE, "upstream_unreachable", self._server, "the connection ended")))
            while self._out:
                await self._deliver_some()

    def _is_seen(self, message: Any) -> bool:
        """Whether the gate has to see a message. Answers to calls that went on are none of its business."""
        if self._gate.is_home or not self._mcp.is_response(message):
            return True
        identifier = self._mcp.id_of(message)
        if identifier in self._watched:
            self._watched.discard(identifier)
            return True
        return isinstance(identifier, str) and identifier.startswith("hp-")

    async def _room(self) -> None:
        """Waits while the other side does not take what is there for it."""
        import anyio

        while len(self._out) > MAX_OUT:
            self._has_room = anyio.Event()
            await self._has_room.wait()

    async def deliver(self) -> None:
        import anyio

        while True:
            with anyio.move_on_after(self._deadline):
                await self._has_out.wait()
            if self._has_out.is_set():
                self._has_out = anyio.Event()
            else:
                self._deadline = None
                self._gate.tick()
            await self._deliver_some()

    async def _deliver_some(self) -> None:
        import anyio

        while self._out:
            stream, message = self._out.popleft()
            try:
                await stream.send(message)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                pass
            self._has_room.set()


