"""The same server as server.mjs, with the `mcp` package of PyPI: `server.py PORT ISSUER`, for tests only."""

import json
import sys

import jwt
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings

port, issuer = int(sys.argv[1]), sys.argv[2]
resource = f"http://127.0.0.1:{port}/mcp"
keys = jwt.PyJWKClient(f"{issuer}/jwks")


class Verifier:
    """Takes only tokens of the issuer for this server."""

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = keys.get_signing_key_from_jwt(token).key
            claims = jwt.decode(token, key, algorithms=["RS256"], issuer=issuer, audience=resource)
        except jwt.PyJWTError:
            return None
        scopes = claims.get("scope", "").split()
        subject, expires = claims["sub"], claims["exp"]
        return AccessToken(token=token, client_id=claims["client_id"], scopes=scopes, expires_at=expires, subject=subject)


settings = AuthSettings(issuer_url=issuer, resource_server_url=resource, required_scopes=["read"])
server = MCPServer("notes", token_verifier=Verifier(), auth=settings)


@server.tool()
def whoami() -> str:
    """Says whose account is used."""
    subject = get_access_token().subject
    print(json.dumps({"called": subject}), flush=True)
    return f"you are {subject}"


print(json.dumps({"ready": resource}), flush=True)
server.run(transport="streamable-http", host="127.0.0.1", port=port)
