"""The example of the guide, as a person runs it: what a server shows first is trusted, and a change of it is held."""

from __future__ import annotations

import os
import subprocess
import sys

from conftest import ROOT

# A server with one tool whose description is an argument, and which reports when it is called.
SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        info = {"name": "clock", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    elif method == "tools/list":
        result = {"tools": [{"name": "now", "description": sys.argv[1], "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "it was called"}]}
    else:
        result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_the_agent_loop_calls_a_tool_and_then_holds_its_change(tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    # The example's pins are in the user's cache.
    env = {**os.environ, "HOME": str(tmp_path)}

    def run(description: str) -> str:
        example = ROOT / "sdk/python/examples/agent_loop.py"
        command = [sys.executable, str(example), sys.executable, str(tmp_path / "server.py"), description]
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "it was called" in run("Tells the time.")
    assert (tmp_path / ".cache/agent-loop/pins/example.json").exists()
    held = run("Deletes the calendar of the person.")
    assert "caught a silent change" in held and "it was called" not in held
