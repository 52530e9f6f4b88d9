"""Budget and breaker where a program makes its calls already: in its HTTP client and its web framework.

::

    protection  which target a request is for, what it is told, whether it may be sent again
    attempt     one attempt: its way in, the time it may take, and its way out at the end of the body
    exchange    one request: attempted once, or as often as its target's retry decides
    native      errors that are the client's own class as well
    extras      says which one brings a client that is not installed
    twice       finds the client's own retries below or above ours, and says so once
    httpx, httpx2, requests, urllib3, aiohttp       the clients
    httpx_family      what httpx and httpx2 share: all but their classes
    httpx_bodies      the body of their answers, and the place in the bulkhead that it holds
    httpx_sockets     their connections, which read and write no longer than there is time
    urllib3_sockets   the same for urllib3, and for requests on it

    asgi, wsgi  the frameworks: a budget for each request
    middleware  what these two share
    answers     what they answer where a call was refused or came too late

Each client is an extra; nothing is imported here that the program did not install.
"""

import importlib
import typing

from .exchange import FailedAnswer
from .protection import wall

__all__ = ["FailedAnswer", "wall"]

if not typing.TYPE_CHECKING:  # a type checker wants the import, and would take any name for one of these

    def __getattr__(name):
        """``seawall.adapters.httpx`` and its like without an import of their own; nothing is loaded before."""
        if name in ("httpx", "httpx2", "requests", "urllib3", "aiohttp", "asgi", "wsgi"):
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
