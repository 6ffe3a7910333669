"""The library opens no connection, writes no file but its pins, and has no place for a credential."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import textwrap

import holdpoint
from conftest import BINARY

PROGRAM = textwrap.dedent(
    """
    import asyncio, json, os, sys
    import anyio, mcp
    from mcp.client.stdio import StdioServerParameters, stdio_client
    binary, state, pins = sys.argv[1:]
    seen = []

    def audit(event, arguments):
        # Only record the library's own accesses: the transport's process and pipes belong to the
        # application.
        if event.split(".")[0] in ("socket", "ftplib", "http", "urllib", "smtplib") or event in ("open", "os.rename", "os.remove", "subprocess.Popen", "os.system"):
            frame = sys._getframe()
            while frame is not None:
                name = frame.f_code.co_filename
                if os.sep + "holdpoint" + os.sep in name:
                    seen.append([event, str(arguments[0]), name])
                    break
                frame = frame.f_back

    async def main():
        from holdpoint import Held, PreflightPin, wrap
        words = ["scenario", "added_required", "--state", state]
        async with stdio_client(StdioServerParameters(command=binary, args=words)) as (read, write):
            async with mcp.ClientSession(read, write) as session:
                sys.addaudithook(audit)
                wrap(session, pin=PreflightPin(pins), server_id="reports", relist_max_age=0)
                await session.initialize()
                await session.list_tools()
                await session.call_tool("make_report", {"title": "s3cret-argument"})
                open(state, "w").write("after")
                try:
                    await session.call_tool("make_report", {"title": "s3cret-argument"})
                except Held as held:
                    await held.review()
                    await held.repin()
                await session.call_tool("make_report", {"title": "s3cret-argument"})
    asyncio.run(main())
    print(json.dumps(seen))
    """
)


def test_nothing_is_opened_but_the_pins(tmp_path):
    state, pins = tmp_path / "state", tmp_path / "pins"
    state.write_text("before")
    done = subprocess.run([sys.executable, "-c", PROGRAM, BINARY, str(state), str(pins)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    package = os.path.dirname(holdpoint.__file__)
    for event, what, _ in seen:
        # Reading the interpreter's own modules does not count as file access.
        is_module = event == "open" and (what.endswith((".py", ".pyc", ".so")) or what.startswith(package))
        assert is_module or what.startswith(str(pins)) or what.isdigit(), (event, what)
        assert not event.startswith("socket")
    assert any(what.startswith(str(pins)) for _, what, _ in seen), "the test saw nothing at all"
    # Neither arguments nor results are stored.
    assert "s3cret" not in (pins / "reports.json").read_text()


def test_there_is_no_place_for_a_credential():
    words = ("token", "secret", "password", "credential", "auth", "key", "header")
    for function in (holdpoint.wrap, holdpoint.wrap_transport, holdpoint.PreflightPin, holdpoint.HomePin):
        for name in inspect.signature(function).parameters:
            assert not any(word in name.lower() for word in words), name
    folder = os.path.dirname(holdpoint.__file__)
    for name in os.listdir(folder):
        if name.endswith(".py"):
            with open(os.path.join(folder, name)) as file:
                text = file.read()
            assert "os.environ" not in text and "getenv" not in text, name


def test_importing_is_quick_and_does_not_import_mcp():
    # Processor time: other programs on the machine do not count.
    program = "import time,sys; t=time.process_time(); import holdpoint; print(time.process_time()-t, 'mcp' in sys.modules, 'asyncio' in sys.modules)"
    fastest = 1.0
    for _ in range(5):
        # The modules of an installed package are compiled.
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        seconds, *imported = done.stdout.split()
        assert imported == ["False", "False"]
        fastest = min(fastest, float(seconds))
    assert fastest < 0.02, f"{fastest * 1000:.1f} ms"
