"""A real server over stdio that changes under the same name (`holdpoint scenario`), and a session with it."""

from __future__ import annotations

import os
import pathlib
from contextlib import asynccontextmanager

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BINARY = os.environ.get("HOLDPOINT_BINARY") or str(ROOT / "target/debug/holdpoint")


@pytest.fixture
def anyio_backend():
    return "asyncio"


class Scenario:
    """The server of a case of the drift battery. A file says what it shows, another has what it read."""

    def __init__(self, folder: pathlib.Path, case: str = "added_required"):
        self.case, self.state, self.record = case, folder / "state", folder / "record"
        self.state.write_text("before")

    def change(self) -> None:
        self.state.write_text("after")

    def revert(self) -> None:
        self.state.write_text("before")

    def read(self) -> str:
        return self.record.read_text() if self.record.exists() else ""

    def transport(self, withhold: bool = False):
        from mcp.client.stdio import StdioServerParameters, stdio_client

        words = ["scenario", self.case, "--state", str(self.state), "--record", str(self.record)]
        return stdio_client(StdioServerParameters(command=BINARY, args=words + ["--withhold"] * withhold))

    @asynccontextmanager
    async def session(self, *, withhold: bool = False, initialize: bool = True, **options):
        """A session that is wrapped before its handshake."""
        from mcp import ClientSession

        from holdpoint import wrap

        async with self.transport(withhold) as (read, write, *_), ClientSession(read, write) as session:
            wrapped = wrap(session, **{"server_id": "reports", **options})
            if initialize:
                await wrapped.initialize()
            yield wrapped


@pytest.fixture
def scenario(tmp_path):
    return Scenario(tmp_path)


def text_of(result) -> str:
    return result.content[0].text
