"""What goes wrong, and what is held."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._gate import Gate

HELD = -32010
UNREACHABLE = -32011
INTERNAL = -32012


class HoldpointError(Exception):
    """Everything that this package raises."""


class PinError(HoldpointError):
    """The pins cannot be read, or the home cannot be used. Nothing is called without them."""


class Refused(HoldpointError):
    """A request was not sent. `code` and `reason` are those of the gate's refusals."""

    def __init__(self, refusal: dict[str, Any]):
        super().__init__(refusal["message"])
        data = refusal.get("data") or {}
        self.code: int = refusal["code"]
        self.data: dict[str, Any] = data
        self.reason: str | None = data.get("reason")
        self.server_id: str | None = data.get("server")


class Held(Refused):
    """A call was held before it was sent: the contract of its tool is not the one that was accepted.

    The message is for the model: it has no text of the server that was not accepted. `evidence` and `review()` have such
    text, and are for a person's screen.
    """

    def __init__(self, refusal: dict[str, Any], gate: Gate):
        super().__init__(refusal)
        data = self.data
        self.tool_name: str | None = data.get("tool")
        self.kinds: list[str] = data.get("kinds") or []
        self.verdict: str = data.get("verdict", "HOLD")
        self.tier_reached: int | None = data.get("tier_reached")
        self.verdict_scope: str | None = data.get("verdict_scope")
        self.framing: str | None = data.get("framing")
        self.definition_hash: dict[str, str | None] = data.get("definition_hash") or {}
        self.entry_hash: dict[str, str | None] = data.get("entry_hash") or {}
        self.evidence: list[dict[str, Any]] = refusal.get("evidence") or []
        self.entry: dict[str, str] | None = refusal.get("entry")
        self._gate = gate

    @property
    def held_hash(self) -> str | None:
        """The hash of the entry that was held: as it is now, or as it was if it is gone."""
        return self.entry_hash.get("after") or self.entry_hash.get("before")

    async def review(self) -> dict[str, Any] | None:
        """What waits, with the whole definition `before` and `after`. `None` if it is no longer waiting."""
        return await self._gate.review(self)

    async def repin(self, by: str = "application") -> None:
        """Accepts exactly what was held, by its hash. Raises `HoldpointError` if something else waits now."""
        await self._gate.repin(self, by)


def refusal_of(code: int, reason: str, server: str, sentence: str) -> dict[str, Any]:
    return {"code": code, "message": f"○ holdpoint — {sentence}", "data": {"reason": reason, "server": server}}
