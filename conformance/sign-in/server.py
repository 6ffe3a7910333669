"""An MCP server that demands tokens, with the `mcp` package of PyPI: `server.py ISSUER PORT`, for tests only."""

import base64
import json
import sys
import urllib.parse
import urllib.request

from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings

issuer, port = sys.argv[1], int(sys.argv[2])
resource = f"http://127.0.0.1:{port}/mcp"


class Introspection:
    """Asks the authorization server about each token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        basic = base64.b64encode(b"mcp-server:a-secret-of-the-test").decode()
        form = urllib.parse.urlencode({"token": token}).encode()
        request = urllib.request.Request(f"{issuer}/token/introspection", form, {"Authorization": f"Basic {basic}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            found = json.load(answer)
        if not found.get("active") or found.get("aud") != resource:
            return None
        scopes = found.get("scope", "").split()
        return AccessToken(token=token, client_id=found["client_id"], scopes=scopes, expires_at=found["exp"])


server = MCPServer(
    "guarded",
    token_verifier=Introspection(),
    auth=AuthSettings(issuer_url=issuer, resource_server_url=resource, required_scopes=["tools"]),
)


@server.tool()
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return f"the sum is {a + b}"


print(json.dumps({"url": resource}), flush=True)
server.run(transport="streamable-http", host="127.0.0.1", port=port)
