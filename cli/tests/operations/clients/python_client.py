"""A client made with the `mcp` package of PyPI over HTTP: `python_client.py URL TOKEN CALLS`, for tests only.

CALLS is a JSON list of names and arguments. Prints one JSON object: the names of the tools, and the text of each call.
With version 2 of the package the newest way to begin is tried first.
"""

import asyncio
import contextlib
import json
import sys

import mcp

DEADLINE_SECONDS = 100


@contextlib.asynccontextmanager
async def connected(url, headers):
    if hasattr(mcp, "Client"):
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
            async with mcp.Client(streamable_http_client(url, http_client=http_client)) as client:
                yield client
        return
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(url, headers=headers) as (read, write, _):
        async with mcp.ClientSession(read, write) as session:
            await session.initialize()
            yield session


async def play(url, token, calls):
    async with connected(url, {"Authorization": f"Bearer {token}"}) as session:
        tools = [tool.name for tool in (await session.list_tools()).tools]
        texts = []
        for name, arguments in calls:
            result = await session.call_tool(name, arguments)
            texts.append(result.content[0].text)
        print(json.dumps({"tools": tools, "texts": texts}))


def main():
    url, token, calls = sys.argv[1:4]
    asyncio.run(asyncio.wait_for(play(url, token, json.loads(calls)), DEADLINE_SECONDS))


main()
