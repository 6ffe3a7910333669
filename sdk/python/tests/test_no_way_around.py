"""Every public method that sends something is gated, or said to be without opinion. A method that a new version of the
library adds fails this test until a person has decided on it."""

from __future__ import annotations

import inspect

import pytest
from conftest import text_of

from holdpoint import Held, PreflightPin
from holdpoint._mcp import IS_V1

pytestmark = pytest.mark.anyio

# `gated`: goes through `send_request`, where the gate is. `handshake`: returns the accepted answer.
# `none`: the gate does not judge what it sends. `quiet`: sends nothing.
SESSION = {
    "send_request": "gated",
    "call_tool": "gated",
    "list_tools": "gated",
    "list_prompts": "gated",
    "get_prompt": "gated",
    "list_resources": "gated",
    "list_resource_templates": "gated",
    "read_resource": "gated",
    "initialize": "handshake",
    "complete": "none",
    "send_notification": "none",
    "send_ping": "none",
    "send_progress_notification": "none",
    "send_roots_list_changed": "none",
    "set_logging_level": "none",
    "subscribe_resource": "none",
    "unsubscribe_resource": "none",
}
V1_SESSION = {**SESSION, "add_response_router": "quiet", "get_server_capabilities": "quiet", "experimental": "gated"}
V1_TASKS = {
    "call_tool_as_task": "gated",
    "get_task": "none",
    "get_task_result": "none",
    "list_tasks": "none",
    "cancel_task": "none",
    "poll_task": "none",
}
V2_SESSION = {
    **SESSION,
    "discover": "handshake",
    "send_discover": "handshake",
    "adopt": "quiet",
    "dispatch_input_request": "quiet",
    "validate_tool_result": "quiet",
    "initialize_result": "quiet",
    "discover_result": "quiet",
    "protocol_version": "quiet",
    "server_info": "quiet",
    "server_capabilities": "quiet",
    "instructions": "quiet",
}
V2_CLIENT = {
    "call_tool": "gated",
    "list_tools": "gated",
    "list_prompts": "gated",
    "get_prompt": "gated",
    "list_resources": "gated",
    "list_resource_templates": "gated",
    "read_resource": "gated",
    "complete": "none",
    "listen": "none",
    "send_ping": "none",
    "send_progress_notification": "none",
    "send_roots_list_changed": "none",
    "set_logging_level": "none",
    "subscribe_resource": "none",
    "unsubscribe_resource": "none",
}


def public(cls) -> set[str]:
    return {name for name, _ in inspect.getmembers(cls, lambda member: callable(member) or isinstance(member, property)) if not name.startswith("_")}


def test_every_public_method_is_in_the_table():
    from mcp import ClientSession

    if IS_V1:
        from mcp.client.experimental.tasks import ExperimentalClientFeatures

        assert public(ClientSession) == set(V1_SESSION)
        assert public(ExperimentalClientFeatures) == set(V1_TASKS)
    else:
        from mcp import Client

        assert public(ClientSession) == set(V2_SESSION)
        methods = {name for name, _ in inspect.getmembers(Client, inspect.isfunction) if not name.startswith("_")}
        assert methods == set(V2_CLIENT)


@pytest.mark.skipif(not IS_V1, reason="2.x has no tasks in its session")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_a_call_as_a_task_is_held(scenario):
    async with scenario.session(pin=PreflightPin(), relist_max_age=0) as session:
        await session.list_tools()
        scenario.change()
        with pytest.raises(Held):
            await session.experimental.call_tool_as_task("make_report", {"title": "held"})
    assert '"held"' not in scenario.read()


async def test_a_request_that_the_application_makes_itself_is_held(scenario):
    import mcp.types as types

    async with scenario.session(pin=PreflightPin(), relist_max_age=0) as session:
        assert "first" in text_of(await session.call_tool("make_report", {"title": "first"}))
        scenario.change()
        request = types.CallToolRequest(params=types.CallToolRequestParams(name="make_report", arguments={"title": "held"}))
        with pytest.raises(Held):
            await session.send_request(types.ClientRequest(request) if IS_V1 else request, types.CallToolResult)
        # Calling the class's method directly does not bypass the gate either: the gate is in the
        # instance.
        assert session.send_request.__self__ is session._holdpoint
    assert '"held"' not in scenario.read()


@pytest.mark.skipif(IS_V1, reason="1.x has no such client")
async def test_the_client_of_2_is_wrapped_with_its_session(scenario):
    from mcp import Client

    from holdpoint import wrap

    # The scenario's server does not implement the newest revision strictly enough for this client,
    # so the older handshake is used.
    async with Client(scenario.transport(), mode="legacy") as client:
        await client.list_tools()
        assert wrap(client, pin=PreflightPin(), server_id="reports", relist_max_age=0) is client
        assert "first" in text_of(await client.call_tool("make_report", {"title": "first"}))
        scenario.change()
        with pytest.raises(Held):
            await client.call_tool("make_report", {"title": "held"})
    assert '"held"' not in scenario.read()
