"""Where a call goes: an ``http://`` or ``https://`` URL, taken apart and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from seawall.errors import ConfigError

__all__ = ["Url"]

PORTS = {"http": 80, "https": 443}
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))
_UNFIT = re.compile(r"[\x00-\x20\x7f]")  # blanks and control characters
_NO_HOST = re.compile(r"[\"%<>\\^`{|}]")


@dataclass(frozen=True, slots=True)
class Url:
    """An address to call.

    Attributes:
        text: As it was given.
        scheme: ``http`` or ``https``.
        host: A name in ASCII (others are written as IDNA has it), or an IP address without brackets.
        port: 1 to 65535; 80 or 443 where none was given.
        target: Path and query, as a request names them; characters beyond ASCII as ``%XX``.
    """

    text: str
    scheme: str
    host: str
    port: int
    target: str = "/"

    @classmethod
    def parse(cls, text: str) -> Url:
        """The URL that ``text`` says.

        Raises:
            ConfigError: It says none; the message tells why and what to write.
        """
        try:
            return cls._parse(text)
        except ValueError as fault:
            raise ConfigError(f"{text!r} is no URL to call: {fault}") from None

    @classmethod
    def _parse(cls, text: str) -> Url:
        if _UNFIT.search(text):
            raise ValueError("there is a blank or a control character in it; a blank is written %20")
        scheme, colon, _ = text.partition("://")
        if not colon:
            raise ValueError(f"it has no scheme; write http://{text}" if text else "it is empty")
        if scheme.lower() not in PORTS:
            raise ValueError(f"its scheme is http or https, not {scheme!r}")
        parts = urlsplit(text)
        if "@" in parts.netloc:
            raise ValueError("a name and a password are not taken from it; send them in a header Authorization")
        port = PORTS[parts.scheme] if parts.port is None else parts.port
        if port == 0:
            raise ValueError("a port is from 1 to 65535")
        path = parts.path or "/"
        target = quote(f"{path}?{parts.query}" if parts.query else path, safe=_PRINTABLE)
        return cls(text, parts.scheme, _host(parts.hostname or ""), port, target)

    @classmethod
    def at(cls, address: str, port: int = 80) -> Url:
        """The root of whatever listens at ``HOST``, ``HOST:PORT`` or ``[IPV6]:PORT``; a URL will do as well.

        Args:
            address: The address.
            port: Where it names no port.

        Raises:
            ConfigError: It is no address.
        """
        if "://" in address:
            return cls.parse(address)
        bare = address.count(":") > 1 and not address.startswith("[")
        netloc = f"[{address}]" if bare else address
        if not re.search(r":\d+$", netloc):
            netloc = f"{netloc}:{port}"
        try:
            if re.search(r"[/?#]", address):
                raise ValueError("an address has no path")
            return cls._parse(f"http://{netloc}/")
        except ValueError as fault:
            raise ConfigError(f"{address!r} is no address: {fault}; write 192.0.2.1, or 192.0.2.1:80") from None

    @property
    def authority(self) -> str:
        """Host and port: ``127.0.0.1:8014``, ``[::1]:8014``."""
        return f"{_bracketed(self.host)}:{self.port}"

    @property
    def host_field(self) -> str:
        """What the header ``Host`` says: the port only where it is not the usual one."""
        host = _bracketed(self.host.partition("%")[0])
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def below(self, target: str) -> Url:
        """The URL of ``target``, a path with its query, under the path of this one.

        Raises:
            ConfigError: This one has a query, so nothing is under it.
        """
        if "?" in self.target:
            raise ConfigError(f"{self.text!r} has a query; give the URL that {target} is to stand behind")
        base = self.target.rstrip("/")
        return Url(f"{self.scheme}://{self.authority}{base}{target}", self.scheme, self.host, self.port, base + target)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _host(host: str) -> str:
    if not host:
        raise ValueError("it names no host")
    if ":" in host:
        return host  # an IPv6 address, which urlsplit has checked
    if _NO_HOST.search(host):
        raise ValueError(f"{host!r} is no name of a host")
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ValueError(f"{host!r} is no name of a host") from None
