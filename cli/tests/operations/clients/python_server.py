"""A server made with the `mcp` package of PyPI over HTTP: `python_server.py PORT`, for tests only."""

import sys

PORT = int(sys.argv[1])

try:
    from mcp.server import MCPServer

    server = MCPServer("python")
    options = {"host": "127.0.0.1", "port": PORT}
except ImportError:
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("python", host="127.0.0.1", port=PORT)
    options = {}


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"the sum is {a + b}"


server.run(transport="streamable-http", **options)
