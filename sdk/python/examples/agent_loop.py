"""An agent loop without a model: a list of calls in the model's place, and a person who decides on holds.

    python agent_loop.py COMMAND [ARGUMENT…]

starts an MCP server, wraps its session, and calls every tool that takes no required argument.
"""

from __future__ import annotations

import asyncio
import sys

from holdpoint import Held, PreflightPin, wrap
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client


async def decide(held: Held) -> bool:
    """A review screen: what was accepted, what is there now, and a person's answer."""
    review = await held.review()
    print(f"\n{held.tool_name} changed: {', '.join(held.kinds)}")
    for finding in held.evidence:
        print(f"  {finding['path']}: {finding['before']} -> {finding['after']}")
    print(f"  before: {review and review['before']}")
    print(f"  after:  {review and review['after']}")
    return sys.stdin.isatty() and input("Accept exactly this? [y/N] ") == "y"


async def run(session: ClientSession) -> None:
    for tool in (await session.list_tools()).tools:
        schema = getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", {})
        if schema.get("required"):
            continue
        try:
            result = await session.call_tool(tool.name, {})
        except Held as held:
            # Nothing was sent. The message is written for the model; `decide` shows the change to a
            # person.
            print(held)
            if not await decide(held):
                continue
            await held.repin(by="the person at the screen")
            result = await session.call_tool(tool.name, {})
        print(f"{tool.name}: {str(result.content)[:100]}")


async def main(command: str, *arguments: str) -> None:
    server = StdioServerParameters(command=command, args=list(arguments))
    async with stdio_client(server) as (read, write, *_), ClientSession(read, write) as session:
        # Wrap before the handshake, so that the gate sees everything the server declares.
        session = wrap(session, pin=PreflightPin("~/.cache/agent-loop/pins"), server_id="example")
        await session.initialize()
        await run(session)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
