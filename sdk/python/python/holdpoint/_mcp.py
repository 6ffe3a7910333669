"""What differs between the major versions of the `mcp` package. Imported when a session is wrapped, never before."""

from __future__ import annotations

import json
from typing import Any

import mcp.types as types
from mcp.shared.message import SessionMessage
from pydantic import RootModel

# In 2.x each request has its own type; in 1.x it is wrapped in `ClientRequest`, and messages have a
# `root`.
IS_V1 = hasattr(types, "ClientRequest") and isinstance(types.ClientRequest, type)


class Loose(RootModel[dict[str, Any]]):
    """A result as it came: the typed results of a library drop members that it does not know."""


_LISTS: dict[str, Any] = {
    "tools/list": types.ListToolsRequest,
    "prompts/list": types.ListPromptsRequest,
    "resources/list": types.ListResourcesRequest,
    "resources/templates/list": types.ListResourceTemplatesRequest,
}


def list_request(message: dict[str, Any]) -> Any:
    """A list that the gate asks for, as a request of the library."""
    cursor = (message.get("params") or {}).get("cursor")
    params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
    request = _LISTS[message["method"]](params=params)
    return types.ClientRequest(request) if IS_V1 else request


def error_of(error: dict[str, Any]) -> Exception:
    """The exception that the library raises for an error answer."""
    if IS_V1:
        from mcp.shared.exceptions import McpError

        return McpError(types.ErrorData(**error))
    from mcp.shared.exceptions import MCPError  # type: ignore[attr-defined]

    return MCPError(error["code"], error["message"], error.get("data"))


def is_error(error: BaseException) -> dict[str, Any] | None:
    """The error answer that an exception of the library stands for."""
    data = getattr(error, "error", None)
    if data is None or not hasattr(data, "code"):
        return None
    found = {"code": data.code, "message": data.message}
    return found if data.data is None else {**found, "data": data.data}


def validated(result_type: Any, result: dict[str, Any]) -> Any:
    """A result as the caller asked for it."""
    if hasattr(result_type, "validate_python"):
        return result_type.validate_python(result)
    return result_type.model_validate(result)


def text_of(message: Any) -> str:
    """The JSON of a message."""
    return message.model_dump_json(by_alias=True, exclude_none=True)


def message_of(document: dict[str, Any]) -> SessionMessage:
    """A message that the gate made."""
    if IS_V1:
        return SessionMessage(types.JSONRPCMessage.model_validate(document))
    adapter = types.jsonrpc_message_adapter  # type: ignore[attr-defined]
    return SessionMessage(adapter.validate_json(json.dumps(document), by_name=False))


def id_of(message: SessionMessage) -> Any:
    inner = getattr(message.message, "root", message.message)
    return getattr(inner, "id", None)


def is_response(message: SessionMessage) -> bool:
    inner = getattr(message.message, "root", message.message)
    return not hasattr(inner, "method")
