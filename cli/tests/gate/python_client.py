"""A client made with the `mcp` package of PyPI: `python_client.py STEPS -- COMMAND…`, for tests only.

STEPS is a JSON list of steps, each a method of the package's session with its arguments. Each result, or error, is
printed as one line of JSON. With version 2 of the package the newest way to begin is tried first.
"""

import asyncio
import contextlib
import json
import sys

import mcp
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

DEADLINE_SECONDS = 100


@contextlib.asynccontextmanager
async def connected(parameters):
    if hasattr(mcp, "Client"):
        async with mcp.Client(parameters) as client:
            yield client
        return
    async with stdio_client(parameters) as (read, write):
        async with mcp.ClientSession(read, write) as session:
            await session.initialize()
            yield session


async def play(steps, command):
    parameters = StdioServerParameters(command=command[0], args=command[1:])
    async with connected(parameters) as session:
        for name, *arguments in steps:
            try:
                result = await getattr(session, name)(*arguments)
                print(result.model_dump_json(by_alias=True, exclude_none=True), flush=True)
            except Exception as error:
                print(json.dumps({"raised": type(error).__name__, "says": str(error)}), flush=True)


def main():
    at = sys.argv.index("--")
    steps = json.loads(sys.argv[1])
    asyncio.run(asyncio.wait_for(play(steps, sys.argv[at + 1 :]), DEADLINE_SECONDS))


main()
