"""Holdpoint: the hold point in front of every tool call that an AI agent makes over MCP.

    from holdpoint import wrap, PreflightPin, Held

    session = wrap(client_session, pin=PreflightPin("~/.cache/app/pins"), server_id="reports")

A call of a tool whose contract changed raises `Held` before anything is sent. See docs/sdk-python.md.
"""

from ._errors import Held, HoldpointError, PinError, Refused
from ._home import HomePin
from ._pins import PreflightPin
from ._session import waiting, wrap
from ._transport import wrap_transport

__all__ = [
    "Held",
    "HoldpointError",
    "HomePin",
    "PinError",
    "PreflightPin",
    "Refused",
    "waiting",
    "wrap",
    "wrap_transport",
]
