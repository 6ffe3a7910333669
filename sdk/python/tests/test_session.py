"""A wrapped session: first use, a hold, a review, a re-pin, a restart, and changes that are not announced."""

from __future__ import annotations

import json

import pytest
from conftest import ROOT, Scenario, text_of

from holdpoint import Held, HoldpointError, PreflightPin, Refused, waiting, wrap

pytestmark = pytest.mark.anyio

CALL = {"title": "held", "owner": "ada"}


async def test_a_change_is_held_reviewed_and_accepted_by_its_hash(scenario):
    held_calls = []
    pin = PreflightPin()
    async with scenario.session(pin=pin, on_held=held_calls.append) as session:
        listed = await session.list_tools()
        assert [tool.name for tool in listed.tools] == ["make_report"]
        assert "first" in text_of(await session.call_tool("make_report", {"title": "first"}))
        scenario.change()
        await session.send_ping()
        with pytest.raises(Held) as caught:
            await session.call_tool("make_report", CALL)
        held = caught.value
        assert held_calls == [held]
        assert str(held).startswith("○ holdpoint — caught a silent change")
        assert (held.server_id, held.tool_name, held.verdict) == ("reports", "make_report", "HOLD")
        assert (held.kinds, held.reason, held.code) == (["added-required-param"], "contract_drift", -32010)
        assert (held.tier_reached, held.verdict_scope) == (0, "structural")
        assert held.framing == "contract-diff-not-safety"
        assert held.entry_hash["before"] != held.entry_hash["after"]
        assert held.evidence[0]["path"] == "/inputSchema/properties/owner"
        review = await held.review()
        assert await waiting(session) == [review]
        assert "owner" in review["after"]["inputSchema"]["properties"]
        assert "owner" not in review["before"]["inputSchema"]["properties"]
        # The caller sees the accepted definition.
        shown = (await session.list_tools()).tools[0]
        assert "owner" not in json.dumps(shown.model_dump(by_alias=True, mode="json"))
        await held.repin(by="ada")
        assert "accepted" in text_of(await session.call_tool("make_report", {**CALL, "title": "accepted"}))
        assert await held.review() is None
        with pytest.raises(HoldpointError, match="nothing of this entry waits"):
            await held.repin()
    record = scenario.read()
    assert '"held"' not in record and '"accepted"' in record


async def test_a_repin_of_something_else_than_was_held_is_refused(scenario):
    async with scenario.session(pin=PreflightPin(), relist_max_age=0) as session:
        await session.list_tools()
        scenario.change()
        with pytest.raises(Held) as caught:
            await session.call_tool("make_report", CALL)
        caught.value.entry_hash["after"] = "0" * 64
        with pytest.raises(HoldpointError, match="its hash differs"):
            await caught.value.repin()
        with pytest.raises(Held):
            await session.call_tool("make_report", CALL)


async def test_a_change_while_the_application_was_down_is_held(scenario, tmp_path):
    pins = tmp_path / "pins"
    async with scenario.session(pin=PreflightPin(pins)) as session:
        await session.list_tools()
    path = pins / "reports.json"
    assert path.stat().st_mode & 0o777 == 0o600 and pins.stat().st_mode & 0o777 == 0o700
    scenario.change()
    async with scenario.session(pin=PreflightPin(pins)) as session:
        with pytest.raises(Held):
            await session.call_tool("make_report", CALL)
    assert '"held"' not in scenario.read()


@pytest.mark.parametrize("age", [0, 3600])
async def test_a_change_that_is_not_announced_is_found_when_the_view_is_too_old(scenario, age):
    async with scenario.session(pin=PreflightPin(), relist_max_age=age, withhold=True) as session:
        await session.list_tools()
        scenario.change()
        if age == 0:
            with pytest.raises(Held):
                await session.call_tool("make_report", CALL)
        else:
            # The counterpart: within the age that the application allows, no list is requested.
            assert "held" in text_of(await session.call_tool("make_report", CALL))


async def test_the_applications_handler_still_hears_that_a_list_changed(scenario):
    from mcp import ClientSession

    heard = []

    async def handler(message):
        heard.append(getattr(getattr(message, "root", message), "method", None))

    async with scenario.transport() as (read, write), ClientSession(read, write, message_handler=handler) as session:
        wrap(session, pin=PreflightPin(), server_id="reports")
        await session.initialize()
        await session.list_tools()
        scenario.change()
        await session.send_ping()
        with pytest.raises(Held):
            await session.call_tool("make_report", CALL)
    assert "notifications/tools/list_changed" in heard


async def test_a_session_that_is_connected_already_can_be_wrapped(scenario):
    from mcp import ClientSession

    async with scenario.transport() as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        assert wrap(session, pin=PreflightPin(), server_id="reports") is session
        await session.call_tool("make_report", {"title": "first"})
        scenario.change()
        await session.send_ping()
        with pytest.raises(Held):
            await session.call_tool("make_report", CALL)
        with pytest.raises(HoldpointError, match="has a gate already"):
            wrap(session, pin=PreflightPin(), server_id="reports")


async def test_an_unknown_tool_is_refused_and_not_sent(scenario):
    async with scenario.session(pin=PreflightPin()) as session:
        with pytest.raises(Refused) as caught:
            await session.call_tool("nowhere", {})
        assert caught.value.reason == "unknown_tool" and not isinstance(caught.value, Held)
    assert "nowhere" not in scenario.read()


async def test_calls_at_the_same_time_share_one_list(scenario):
    import anyio

    async with scenario.session(pin=PreflightPin()) as session:
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(session.call_tool, "make_report", {"title": f"t{number}"})
    record = scenario.read()
    assert record.count('"tools/list"') == 1 and record.count('"tools/call"') == 20


async def test_a_caller_that_gives_up_leaves_the_others_served(scenario):
    import anyio

    async with scenario.session(pin=PreflightPin()) as session:
        with anyio.move_on_after(0) as scope:
            await session.call_tool("make_report", {"title": "given up"})
        assert scope.cancelled_caught
        assert "next" in text_of(await session.call_tool("make_report", {"title": "next"}))
    assert "given up" not in scenario.read()


async def test_monitor_lets_a_change_through(scenario):
    async with scenario.session(pin=PreflightPin(), posture="monitor", relist_max_age=0) as session:
        await session.list_tools()
        scenario.change()
        assert "held" in text_of(await session.call_tool("make_report", CALL))


def test_a_wrong_option_is_an_error_and_leaves_the_session_alone():
    class Nothing:
        send_request = _message_handler = None

    for options in ({"posture": "lax"}, {"relist_max_age": -1}, {"server_id": "No!"}, {"settings": {"token": "x"}}):
        session = Nothing()
        with pytest.raises(HoldpointError):
            wrap(session, **{"pin": PreflightPin(), "server_id": "reports", **options})
        assert session.send_request is None


def battery() -> list[dict]:
    """What the binary itself does with each case."""
    import subprocess

    from conftest import BINARY

    printed = subprocess.run([BINARY, "demo", "--all", "--json"], capture_output=True, text=True, check=True).stdout
    return json.loads(printed)["scenarios"]


def called_in(case: str) -> str:
    """The tool that a case is about: the added one, or the one that there is."""
    document = json.loads((ROOT / "conformance/drift/battery" / f"{case}.json").read_text())
    before, after = ([tool["name"] for tool in document[side]["tools"]] for side in ("old", "new"))
    return next((name for name in after if name not in before), before[0])


async def test_the_battery_through_the_sdk(tmp_path):
    cases = battery()
    assert len(cases) == 14
    for case in cases:
        folder = tmp_path / case["scenario"]
        folder.mkdir()
        scenario = Scenario(folder, case["scenario"])
        async with scenario.session(pin=PreflightPin(), relist_max_age=0) as session:
            await session.list_tools()
            scenario.change()
            try:
                await session.call_tool(called_in(case["scenario"]), {"title": "held"})
                found = ("PROCEED", [])
            except Held as held:
                found = (held.verdict, held.kinds)
        expected = (case["actual"], case["kinds"] if case["actual"] != "PROCEED" else [])
        assert found == expected, case
        is_sent = '"title":"held"' in scenario.read().replace(" ", "")
        assert is_sent == (found[0] == "PROCEED"), case
