"""A wrapped transport, for clients that a framework makes."""

from __future__ import annotations

import pytest
from conftest import BINARY, text_of

from holdpoint import HomePin, PreflightPin, wrap_transport

pytestmark = pytest.mark.anyio

CALL = {"title": "held", "owner": "ada"}


def pins(tmp_path):
    return {"memory": PreflightPin(), "home": HomePin(tmp_path / "home", program=BINARY)}


@pytest.mark.parametrize("kind", ["memory", "home"])
async def test_a_held_call_is_answered_with_an_error_and_told(scenario, tmp_path, kind):
    from mcp import ClientSession

    held_calls = []
    transport = wrap_transport(
        scenario.transport(), pin=pins(tmp_path)[kind], server_id="reports", on_held=held_calls.append
    )
    async with transport as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        assert [tool.name for tool in (await session.list_tools()).tools] == ["make_report"]
        assert "first" in text_of(await session.call_tool("make_report", {"title": "first"}))
        scenario.change()
        await session.send_ping()
        with pytest.raises(Exception, match="caught a silent change") as caught:
            await session.call_tool("make_report", CALL)
        assert caught.value.error.code == -32010
        assert caught.value.error.data["kinds"] == ["added-required-param"]
        assert [held.tool_name for held in held_calls] == ["make_report"]
        if kind == "memory":
            await held_calls[0].repin()
            assert "accepted" in text_of(await session.call_tool("make_report", {**CALL, "title": "accepted"}))
    assert '"held"' not in scenario.read()


async def test_raw_messages_are_gated_too(scenario):
    """Whatever a client writes to its transport passes the gate."""
    from holdpoint._mcp import message_of

    async with wrap_transport(scenario.transport(), pin=PreflightPin(), server_id="reports", relist_max_age=0) as streams:
        read, write = streams

        async def ask(identifier, method, params):
            await write.send(message_of({"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}))
            while True:
                answer = await read.receive()
                document = answer.message.model_dump(by_alias=True, exclude_none=True)
                if document.get("id") == identifier:
                    return document

        info = {"name": "raw", "version": "1"}
        await ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info})
        await write.send(message_of({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        call = {"name": "make_report", "arguments": {"title": "raw"}}
        assert "result" in await ask(2, "tools/call", call)
        scenario.change()
        held = await ask(3, "tools/call", {**call, "arguments": {"title": "held"}})
        assert held["error"]["code"] == -32010
        task = await ask(4, "tools/call", {**call, "arguments": {"title": "held"}, "task": {"ttl": 1000}})
        assert task["error"]["code"] == -32010
    assert '"held"' not in scenario.read()
