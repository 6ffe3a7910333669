"""`HomePin`: the pins, approvals and receipts of a home that the binary also uses."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest
from conftest import BINARY, text_of

from holdpoint import Held, HoldpointError, HomePin, PinError, Refused, waiting, wrap

pytestmark = pytest.mark.anyio

CALL = {"title": "held", "owner": "ada"}


class Home:
    def __init__(self, folder):
        self.path = folder / "home"
        self.pin = HomePin(self.path, program=BINARY)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([BINARY, *words, "--home", str(self.path)], capture_output=True, text=True, check=False)

    def configure(self, text: str) -> None:
        self.run("status")
        (self.path / "holdpoint.toml").write_text(text)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


async def test_an_approval_in_a_terminal_counts_for_the_next_call(home, scenario):
    home.configure("[approve]\nunattended = true\n")
    held_calls = []
    async with scenario.session(pin=home.pin, on_held=held_calls.append) as session:
        assert [tool.name for tool in (await session.list_tools()).tools] == ["make_report"]
        assert "first" in text_of(await session.call_tool("make_report", {"title": "first"}))
        scenario.change()
        await session.send_ping()
        with pytest.raises(Held) as caught:
            await session.call_tool("make_report", CALL)
        held = caught.value
        assert held_calls == [held] and held.kinds == ["added-required-param"]
        assert held.evidence[0]["path"] == "/inputSchema/properties/owner"
        assert "owner" in (await held.review())["after"]["inputSchema"]["properties"]
        assert [entry["key"] for entry in await waiting(session)] == ["make_report"]
        approved = home.run("approve", "reports", "make_report", "--hash", held.held_hash)
        assert approved.returncode == 0, approved.stderr
        assert "accepted" in text_of(await session.call_tool("make_report", {**CALL, "title": "accepted"}))
        process = session._holdpoint._gate._process
    assert process.poll() == 0, "the gate ends with the session"
    record = scenario.read()
    assert '"held"' not in record and '"accepted"' in record
    assert home.run("receipts", "verify").returncode == 0
    lines = [json.loads(line) for line in home.run("receipts", "list", "--json").stdout.splitlines()]
    calls = [line for line in lines if line.get("mcp", {}).get("method") == "tools/call"]
    assert len(calls) == 3


async def test_repin_through_a_home_is_a_persons_act_unless_it_is_configured(home, scenario):
    async with scenario.session(pin=home.pin, relist_max_age=0) as session:
        await session.list_tools()
        scenario.change()
        with pytest.raises(Held) as caught:
            await session.call_tool("make_report", CALL)
        with pytest.raises(HoldpointError, match="a person approves this in a terminal"):
            await caught.value.repin()
        home.configure("[approve]\nunattended = true\n")
        await caught.value.repin()
        assert "held" in text_of(await session.call_tool("make_report", CALL))


async def test_a_gate_that_dies_lets_nothing_through(home, scenario):
    async with scenario.session(pin=home.pin) as session:
        await session.list_tools()
        os.kill(session._holdpoint._gate._process.pid, signal.SIGKILL)
        with pytest.raises(Refused) as caught:
            await session.call_tool("make_report", {"title": "sent"})
        assert caught.value.code == -32012
        with pytest.raises(Refused):
            await session.call_tool("make_report", {"title": "sent"})
    assert "sent" not in scenario.read()


async def test_a_home_that_cannot_be_used_is_a_clear_error(home, scenario):
    home.configure("posture = 7\n")
    async with scenario.session(pin=home.pin, initialize=False) as session:
        with pytest.raises(PinError, match="posture"):
            await session.initialize()
    assert "initialize" not in scenario.read()


def test_the_program_is_named_by_its_absolute_path(tmp_path):
    with pytest.raises(PinError, match="absolute"):
        HomePin(tmp_path, program="holdpoint")
    with pytest.raises(PinError, match="is not there"):
        HomePin(tmp_path, program=tmp_path / "holdpoint")


async def test_what_the_homes_configuration_says_cannot_be_said_twice(home, scenario):
    class Nothing:
        send_request = _message_handler = None

    with pytest.raises(HoldpointError, match="configuration says posture"):
        wrap(Nothing(), pin=home.pin, server_id="reports", posture="monitor")
