"""Frameworks with a wrapped session or transport, against the reference server of MCP in two releases. No model is called."""

from __future__ import annotations

import os
import pathlib

import pytest
from conftest import ROOT

from holdpoint import Held, PreflightPin, wrap, wrap_transport

pytestmark = pytest.mark.anyio

SERVERS = pathlib.Path(os.environ.get("HOLDPOINT_TEST_SERVERS") or ROOT / ".cache/servers") / "server-everything"
RELEASES = sorted(SERVERS.glob("*/launch")) if SERVERS.is_dir() else []
needs_server = pytest.mark.skipif(len(RELEASES) < 2, reason="server-everything is not installed")


@needs_server
async def test_langchain_mcp_adapters(tmp_path):
    adapters = pytest.importorskip("langchain_mcp_adapters.tools")
    from mcp import ClientSession
    from mcp.client.stdio import StdioServerParameters, stdio_client

    held_calls = []
    for number, release in enumerate(RELEASES[:2]):
        parameters = StdioServerParameters(command=str(release), args=[])
        async with stdio_client(parameters) as (read, write, *_), ClientSession(read, write) as session:
            wrap(session, pin=PreflightPin(tmp_path / "pins"), server_id="everything", on_held=held_calls.append)
            await session.initialize()
            tools = {tool.name: tool for tool in await adapters.load_mcp_tools(session)}
            if number == 0:
                assert "hello" in str(await tools["echo"].ainvoke({"message": "hello"}))
                assert held_calls == []
            else:
                # The newer release changed under the same name.
                with pytest.raises(Held):
                    await tools["echo"].ainvoke({"message": "held"})
                assert [held.tool_name for held in held_calls] == ["echo"]


@needs_server
async def test_openai_agents(tmp_path):
    mcp_module = pytest.importorskip("agents.mcp")
    held_calls = []

    class Gated(mcp_module.MCPServerStdio):
        def create_streams(self):
            return wrap_transport(
                super().create_streams(),
                pin=PreflightPin(tmp_path / "pins"),
                server_id="everything",
                on_held=held_calls.append,
            )

    for number, release in enumerate(RELEASES[:2]):
        async with Gated(params={"command": str(release), "args": []}, client_session_timeout_seconds=60) as server:
            assert "echo" in {tool.name for tool in await server.list_tools()}
            if number == 0:
                assert "hello" in str(await server.call_tool("echo", {"message": "hello"}))
                assert held_calls == []
            else:
                with pytest.raises(Exception, match="caught a silent change"):
                    await server.call_tool("echo", {"message": "held"})
                assert [held.tool_name for held in held_calls] == ["echo"]
