"""Names into addresses, aside: the system's look-up obeys no limit, so it runs in a thread that nobody has to wait for."""

from __future__ import annotations

import encodings.idna  # noqa: F401  # every look-up uses it: not to be loaded, for 3 ms, inside the first call that is measured
import socket
import threading
from typing import Any, TypeAlias

__all__ = ["Address", "addresses"]

Address: TypeAlias = tuple[socket.AddressFamily, Any]
"""Family and address, as a socket wants them."""


class _Lookup:
    """One look-up under way. It may outlast whoever waits for it; who asks the same meanwhile waits for the same."""

    under_way: dict[tuple[str, int], _Lookup] = {}
    lock = threading.Lock()

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.ended = threading.Event()
        self.found: list[Address] = []
        self.error: OSError | None = None

    def run(self) -> None:
        try:
            self.found = _asked(self.host, self.port)
            if not self.found:
                self.error = OSError(f"{self.host} has no address")
        except OSError as error:
            self.error = error
        except Exception as error:  # such as UnicodeError for a label of 64 letters
            self.error = OSError(f"{self.host} is no name of a host ({error})")
        with self.lock:
            self.under_way.pop((self.host, self.port), None)
        self.ended.set()


def addresses(host: str, port: int, limit: float) -> list[Address]:
    """All addresses of ``host``, in the order in which to try them.

    Args:
        host: A name, or an IP address without brackets, which is asked of nobody.
        port: Goes into the addresses.
        limit: Seconds to wait at the most.

    Raises:
        TimeoutError: No answer within ``limit``; its ``errno`` is ``None``. The look-up goes on, unheard.
        OSError: There is no such name, or no way to ask.
    """
    try:
        return _asked(host, port, socket.AI_NUMERICHOST)
    except (OSError, ValueError):
        pass  # a name; or what can be none, and the look-up will say so
    lookup = _begun(host, port)
    if not lookup.ended.wait(limit):
        raise TimeoutError("the name was not looked up in time")
    if lookup.error is not None:
        raise lookup.error
    return lookup.found


def _begun(host: str, port: int) -> _Lookup:
    with _Lookup.lock:
        lookup = _Lookup.under_way.get((host, port))
        if lookup is None:
            lookup = _Lookup(host, port)
            thread = threading.Thread(target=lookup.run, name=f"seawall-look-up {host}", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # no more threads
                raise OSError(f"cannot look up {host}: {error}") from None
            _Lookup.under_way[host, port] = lookup
    return lookup


def _asked(host: str, port: int, flags: int = 0) -> list[Address]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys((entry[0], entry[4]) for entry in found))
