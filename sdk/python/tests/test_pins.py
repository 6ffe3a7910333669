"""Pins in files: torn, of another version, unwritable, killed while writing, and two processes on one folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from conftest import BINARY, Scenario, text_of

from holdpoint import Held, PinError, PreflightPin, Refused, wrap

pytestmark = pytest.mark.anyio


async def pinned(scenario: Scenario, pins) -> str:
    async with scenario.session(pin=PreflightPin(pins)) as session:
        await session.list_tools()
    return (pins / "reports.json").read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a document of Holdpoint"),
        ('{"holdpoint":"pins","version":1,"server":"re', "not a document of Holdpoint"),
        ("[]", "not a document of Holdpoint"),
        ('{"holdpoint":"pins","version":2}', "another version"),
        ('{"holdpoint":"pins","version":1,"server":"other","revision":1,"entries":[]}', "belong to the server `other`"),
        ('{"holdpoint":"pins","version":1,"server":"reports","revision":1,"entries":[{"type":"tool","key":"a","pins":'
         '[{"basis":"person","at":1,"by":"a","definition":"{"}]}]}', "cannot be read"),
        ("\xff", "UTF-8"),
    ],
)
def test_pins_that_cannot_be_read_leave_no_session(tmp_path, text, words):
    pins = tmp_path / "pins"
    pins.mkdir()
    (pins / "reports.json").write_bytes(text.encode("latin-1"))
    session = type("Session", (), {"send_request": None, "_message_handler": None})()
    with pytest.raises(PinError, match=words):
        wrap(session, pin=PreflightPin(pins), server_id="reports")
    assert session.send_request is None


def test_pins_that_others_can_write_are_refused(tmp_path):
    path = tmp_path / "reports.json"
    path.write_text('{"holdpoint":"pins","version":1,"server":"reports","revision":1,"entries":[]}')
    for mode, is_fine in [(0o600, True), (0o644, True), (0o620, False), (0o602, False)]:
        path.chmod(mode)
        if is_fine:
            assert PreflightPin(tmp_path).read("reports") is not None
        else:
            with pytest.raises(PinError, match="others can write"):
                PreflightPin(tmp_path).read("reports")


async def test_pins_that_cannot_be_written_leave_nothing_sent(scenario, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    async with scenario.session(pin=PreflightPin(tmp_path / "pins")) as session:
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", full)
            for _ in range(2):
                with pytest.raises(Refused) as caught:
                    await session.call_tool("make_report", {"title": "sent"})
                assert caught.value.code == -32012
        assert list((tmp_path / "pins").iterdir()) == [], "nothing is left behind"
        assert "sent" not in scenario.read()
        assert "later" in text_of(await session.call_tool("make_report", {"title": "later"}))


async def test_a_process_that_is_killed_while_it_writes_leaves_the_old_pins(scenario, tmp_path):
    pins = tmp_path / "pins"
    before = await pinned(scenario, pins)
    program = textwrap.dedent(
        """
        import json, os, signal, sys
        from holdpoint import PreflightPin
        replace = os.replace
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        pin = PreflightPin(sys.argv[1])
        text = pin.read("reports")
        document = json.loads(text)
        document["revision"] += 1
        pin.write("reports", json.dumps(document))
        """
    )
    killed = subprocess.run([sys.executable, "-c", program, str(pins)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (pins / "reports.json").read_text() == before
    # The lock is left behind. It counts as abandoned once it is old.
    lock = pins / "reports.json.lock"
    assert lock.exists()
    os.utime(lock, (1, 1))
    scenario.change()
    async with scenario.session(pin=PreflightPin(pins)) as session:
        with pytest.raises(Held) as caught:
            await session.call_tool("make_report", {"title": "a"})
        await caught.value.repin()
        assert "b" in text_of(await session.call_tool("make_report", {"title": "b"}))
    assert not lock.exists()


async def test_an_approval_of_another_process_counts_for_the_next_call(scenario, tmp_path):
    pins = tmp_path / "pins"
    await pinned(scenario, pins)
    scenario.change()
    async with (
        scenario.session(pin=PreflightPin(pins)) as one,
        scenario.session(pin=PreflightPin(pins)) as other,
    ):
        with pytest.raises(Held) as caught:
            await one.call_tool("make_report", {"title": "a"})
        with pytest.raises(Held):
            await other.call_tool("make_report", {"title": "a"})
        await caught.value.repin()
        assert "b" in text_of(await other.call_tool("make_report", {"title": "b"}))


def test_two_processes_write_one_file_and_lose_nothing(tmp_path):
    """Each adds to the document that the other wrote: every revision is written once."""
    program = textwrap.dedent(
        """
        import json, sys
        from holdpoint import PreflightPin
        pin, count = PreflightPin(sys.argv[1]), 0
        while count < 50:
            text = pin.read("reports")
            revision = json.loads(text)["revision"] if text else 0
            if pin.write("reports", json.dumps({"revision": revision + 1})) is None:
                count += 1
        """
    )
    words = [sys.executable, "-c", program, str(tmp_path)]
    for process in [subprocess.Popen(words) for _ in range(2)]:
        assert process.wait(60) == 0
    assert json.loads((tmp_path / "reports.json").read_text())["revision"] == 100
    assert sorted(path.name for path in tmp_path.iterdir()) == ["reports.json"]


def test_an_extension_that_cannot_be_loaded_is_a_clear_error(tmp_path):
    import shutil

    import holdpoint

    folder = tmp_path / "holdpoint"
    shutil.copytree(os.path.dirname(holdpoint.__file__), folder)
    for extension in folder.glob("_core*.so"):
        extension.write_bytes(b"not a library")
    done = subprocess.run(
        [sys.executable, "-c", "import holdpoint"], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "holdpoint's extension cannot be loaded, so no session can be gated" in done.stderr


def test_the_binary_is_there():
    assert os.access(BINARY, os.X_OK), f"{BINARY}: cargo build -p holdpoint"
