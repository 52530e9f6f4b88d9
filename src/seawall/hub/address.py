"""Where the hub listens: an IP address or host name with a port, or the path of a Unix socket."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, replace
from typing import Literal, cast

from seawall.errors import ConfigError

__all__ = ["Address"]

BUDGETS = ("heed", "ignore")
UNIX_PATH_LIMIT = 107  # bytes; sun_path of Linux is 108 with its final zero
_FORMS = "write 127.0.0.1:8080, [::1]:8080, :8080 (every IPv4 address), or unix:/run/hub.sock"
_OPTION = re.compile(r"(.*),([a-z-]+)=([^,]*)")
_HOST_NAME = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_-]{1,63})*\.?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Somewhere to listen.

    Attributes:
        kind: ``tcp`` or ``unix``.
        host: For ``tcp``: an IP address without brackets, or a host name.
        port: For ``tcp``: 0 to 65535; 0 lets the system choose one.
        path: For ``unix``: the path of the socket, at most 107 bytes.
        budget: What becomes of the budgets of clients that come in here: ``heed``, or ``ignore``, for strangers.

    Raises:
        ConfigError: The parts do not make an address.
    """

    kind: Literal["tcp", "unix"] = "tcp"
    host: str = ""
    port: int = 0
    path: str = ""
    budget: Literal["heed", "ignore"] = "heed"

    def __post_init__(self) -> None:
        fault = self._fault()
        if fault:
            raise ConfigError(fault)

    def _fault(self) -> str:
        if self.budget not in BUDGETS:
            return f"budget is heed or ignore, not {self.budget!r}"
        if self.kind == "unix":
            if self.host or self.port:
                return "a unix address has a path, no host and no port"
            if not self.path or "\0" in self.path:
                return "a unix address needs the path of its socket, as in unix:/run/hub.sock"
            if len(self.path.encode()) > UNIX_PATH_LIMIT:
                return f"the path of a unix socket is at most {UNIX_PATH_LIMIT} bytes: {self.path!r}"
            return ""
        if self.kind != "tcp":
            return f"an address is of kind tcp or unix, not {self.kind!r}"
        if self.path:
            return "a tcp address has a host and a port, no path"
        if not is_host(self.host):
            return f"{self.host!r} is no IP address and no host name"
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not 0 <= self.port <= 65535:
            return f"a port is a whole number from 0 to 65535, not {self.port!r}"
        return ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """The address that ``text`` says: ``HOST:PORT``, ``[IPV6]:PORT``, ``:PORT`` or ``unix:PATH``.

        ``,budget=ignore`` may follow.

        Raises:
            ConfigError: It says none; the message shows how to write one.
        """
        option = _OPTION.fullmatch(text)
        if option is None:
            return cls._parse_place(text)
        place, key, value = option.groups()
        if key != "budget" or value not in BUDGETS:
            raise ConfigError(f"{text!r}: behind an address stands budget=heed or budget=ignore, not {key}={value}")
        address = cls._parse_place(place)
        return replace(address, budget=cast("Literal['heed', 'ignore']", value))

    @classmethod
    def _parse_place(cls, text: str) -> Address:
        if text.startswith("unix:"):
            return cls(kind="unix", path=text.removeprefix("unix:"))
        if text.isdigit():
            raise ConfigError(f"{text} is a bare port: write 127.0.0.1:{text} for this machine alone, or :{text}")
        host, colon, port = text.rpartition(":")
        if not colon or not re.fullmatch(r"[0-9]{1,5}", port):
            raise ConfigError(f"{text!r} is no address with a port: {_FORMS}")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
            if not _is_ip(host, 6):
                raise ConfigError(f"{text!r}: {host!r} is no IPv6 address")
        elif ":" in host:
            raise ConfigError(f"{text!r}: an IPv6 address stands in brackets, as in [::1]:8080")
        elif host == "*":
            raise ConfigError(f"{text!r}: write :{port} for every IPv4 address, [::]:{port} for every IPv6 address")
        try:
            return cls(host=host or "0.0.0.0", port=int(port))
        except ConfigError as error:
            raise ConfigError(f"{text!r}: {error}") from None

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it; a host name other than ``localhost`` counts as reachable."""
        if self.kind == "unix" or self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        if self.kind == "unix":
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_host(text: object) -> bool:
    """Whether this is an IP address without brackets, or a host name of ASCII letters."""
    if not isinstance(text, str):
        return False
    if _is_ip(text, 4) or _is_ip(text, 6):
        return True
    # A name of digits and dots alone is an IPv4 address gone wrong, which resolvers read in surprising ways.
    return bool(_HOST_NAME.fullmatch(text)) and not re.fullmatch(r"[0-9.]+", text)


def _is_ip(text: str, version: int) -> bool:
    try:
        return ipaddress.ip_address(text).version == version
    except ValueError:
        return False
