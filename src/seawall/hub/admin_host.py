"""Whether a request to the admin port was meant for it: its ``Host`` must say so.

A page in a browser on the operator's machine can have its own name resolved to 127.0.0.1 and then read what answers
there as if it were its own (DNS rebinding). The browser still sends the page's name in ``Host``, so a name that is not
ours is turned away. An IP address cannot be rebound, but it is accepted only where it is ours, or may be.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TypeAlias

__all__ = ["HostCheck"]

IP: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"
_HOST = re.compile(r"(?:\[([0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)\]|([^:\[\]]+))(?::[0-9]{0,5})?")  # a colon only in brackets
_LOOPBACK: tuple[IP | str, ...] = ("localhost", ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))


class HostCheck:
    """The names under which one listening socket may be asked.

    Loopback names always, and the address it is bound to; bound to a wildcard, any IP address, since each may be one of
    this machine. The port is not compared: behind a forwarded one (``ssh -L``, a container's) it differs, and rebinding
    does not depend on it. On a Unix socket any name goes: no page can reach it.

    Args:
        bound: What ``getsockname`` says.
        configured: The host as the settings have it: a name of the operator's own choice is not a foreign one.
    """

    def __init__(self, bound: object, configured: str = "") -> None:
        self._any = not isinstance(bound, tuple)
        self._any_ip = False
        self._names: set[IP | str] = set(_LOOPBACK)
        if configured:
            self._names.add(_parsed(configured))
        if isinstance(bound, tuple):
            address = ipaddress.ip_address(str(bound[0]).partition("%")[0])
            self._names.add(address)
            self._any_ip = address.is_unspecified

    def __call__(self, host: bytes) -> bool:
        """Whether ``host``, the value of the header, is one of ours."""
        if self._any:
            return True
        match = _HOST.fullmatch(host.decode("latin-1"))
        if match is None:
            return False
        name = _parsed(match[1] or match[2])
        return name in self._names or (self._any_ip and not isinstance(name, str))


def _parsed(host: str) -> IP | str:
    """An IP address as one, so that each way to write it is the same; a name in lower case."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return host.lower()
