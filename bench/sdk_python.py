"""What the Python SDK costs, side by side with the session without it: ./scripts/sdk-python bench

A server in this process answers over memory streams, so that nothing but the library and the gate is measured. Exits with 1
if a bound of docs/performance.md is missed.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

import anyio
from mcp import ClientSession

from holdpoint import PreflightPin, _core, wrap
from holdpoint._mcp import message_of

CALLS = 4_000
TOOLS = 1_000


def tool(number: int, text: str = "") -> dict:
    properties = {f"p{index}": {"type": "string", "description": "A parameter of the tool " * 3} for index in range(8)}
    schema = {"type": "object", "properties": properties, "required": ["p0", "p1"]}
    return {"name": f"tool_{number}", "description": f"Does number {number}. {text}" + "It does it well. " * 20, "inputSchema": schema}


async def serve(read, write, tools) -> None:
    async for message in read:
        document = json.loads(message.message.model_dump_json(by_alias=True, exclude_none=True))
        if "id" not in document:
            continue
        method = document["method"]
        if method == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bench", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": tools}
        else:
            result = {"content": [{"type": "text", "text": "done"}]}
        await write.send(message_of({"jsonrpc": "2.0", "id": document["id"], "result": result}))


async def time_calls(is_wrapped: bool) -> list[float]:
    to_server, from_client = anyio.create_memory_object_stream(10)
    to_client, from_server = anyio.create_memory_object_stream(10)
    times = []
    async with anyio.create_task_group() as group:
        group.start_soon(serve, from_client, to_client, [tool(0)])
        async with ClientSession(from_server, to_server) as session:
            if is_wrapped:
                wrap(session, pin=PreflightPin(), server_id="bench", relist_max_age=3600)
            await session.initialize()
            await session.list_tools()
            arguments = {"p0": "x" * 450, "p1": "y" * 450, "p2": "z" * 60}
            for _ in range(CALLS):
                begun = time.perf_counter()
                await session.call_tool("tool_0", arguments)
                times.append(time.perf_counter() - begun)
        group.cancel_scope.cancel()
    return times


def best(work, rounds: int = 15) -> float:
    """The quickest of several rounds, in seconds."""
    times = []
    for _ in range(rounds):
        begun = time.thread_time()
        work()
        times.append(time.thread_time() - begun)
    return min(times)


def time_lists() -> dict[str, float]:
    tools = [tool(number) for number in range(TOOLS)]
    answer = json.dumps({"jsonrpc": "2.0", "id": "ID", "result": {"tools": tools}})
    parse = best(lambda: json.loads(answer))
    moment = [1_000_000]

    def listed(session, text: str) -> None:
        """One list, from the question to the judgement."""
        moment[0] += 60_000
        asked = json.loads(session.client(1, '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tool_0"}}', moment[0]))
        identifier = next(action["toServer"]["id"] for action in asked if "toServer" in action)
        actions = json.loads(session.server(text.replace('"ID"', json.dumps(identifier), 1), moment[0]))
        if any("save" in action for action in actions):
            session.pins(moment[0])
            session.saved(moment[0])

    def fresh() -> None:
        session = _core.Session('{"server":"bench"}', None, "seed")
        session.greet('{"capabilities":{"tools":{}}}')
        listed(session, answer)

    new = best(fresh)
    session = _core.Session('{"server":"bench"}', None, "seed")
    session.greet('{"capabilities":{"tools":{}}}')
    listed(session, answer)
    unchanged = best(lambda: listed(session, answer))
    return {"bytes": len(answer), "json.loads": parse, "unchanged": unchanged, "new": new}


def time_import() -> float:
    program = "import time; t=time.perf_counter(); import holdpoint; print(time.perf_counter()-t)"
    # The modules of an installed package are compiled.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    words = [sys.executable, "-c", program]
    return min(float(subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout) for _ in range(9))


def main() -> int:
    missed = []

    def line(what: str, found: str, is_within: bool, bound: str) -> None:
        print(f"{what:44} {found:>18}   {'within' if is_within else 'MISSED'} {bound}")
        if not is_within:
            missed.append(what)

    rounds = [(asyncio.run(time_calls(False)), asyncio.run(time_calls(True))) for _ in range(3)]
    middle = lambda times: sorted(times)[len(times) // 2] * 1e6
    plain = min(middle(one) for one, _ in rounds)
    wrapped = min(middle(other) for _, other in rounds)
    added = wrapped - plain
    print(f"a call of 1 KB, p50: {plain:.1f} µs without, {wrapped:.1f} µs with the gate")
    line("added to a call of 1 KB (p50)", f"{added:.1f} µs", added <= 10, "10 µs")
    lists = time_lists()
    print(f"{TOOLS} tools, {lists['bytes'] / 1e6:.2f} MB: json.loads {lists['json.loads'] * 1e3:.1f} ms")
    for name, bound in (("unchanged", 3), ("new", 8)):
        times = lists[name] / lists["json.loads"]
        line(f"{name} list", f"{lists[name] * 1e3:.1f} ms, {times:.1f} times", times <= bound, f"{bound} times json.loads")
    imported = time_import()
    line("import holdpoint", f"{imported * 1e3:.1f} ms", imported <= 0.02, "20 ms")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
