"""One HTTP/1.1 request as bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from seawall import __version__
from seawall.errors import ConfigError

from .url import Url

__all__ = ["Headers", "header", "written"]

Headers = Iterable[tuple[str, str]]

OURS = ("content-length", "transfer-encoding", "connection")
"""What the connection depends on; a caller that sets it would measure its own mistake."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")


def header(text: str) -> tuple[str, str]:
    """Name and value of a header written ``Name: value``.

    Raises:
        ConfigError: It is none, or one that is not to be set by hand.
    """
    name, colon, value = text.partition(":")
    if not colon:
        raise ConfigError(f"{text!r} is no header: write 'Name: value'")
    _check(name, value.strip())
    return name, value.strip()


def written(url: Url, method: str, headers: Headers, body: bytes | None) -> bytes:
    """The request. Headers of ``headers`` replace those that are sent by default (Host, User-Agent, Accept).

    Raises:
        ConfigError: The method or a header cannot be sent.
    """
    if not _TOKEN.fullmatch(method):
        raise ConfigError(f"{method!r} is no method: a word such as GET or POST")
    given = list(headers)
    for name, value in given:
        _check(name, value)
    names = {name.lower() for name, _ in given}
    own = [("Host", url.host_field), ("User-Agent", f"seawall/{__version__}"), ("Accept", "*/*")]
    fields = [field for field in own if field[0].lower() not in names] + given + [("Connection", "close")]
    if body is not None:
        fields.append(("Content-Length", str(len(body))))
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields)
    return f"{method} {url.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + (body or b"")


def _check(name: str, value: str) -> None:
    if not _TOKEN.fullmatch(name):
        raise ConfigError(f"{name!r} is no name of a header: letters, digits and hyphens")
    if not _VALUE.fullmatch(value) or any(ord(letter) > 255 for letter in value):
        raise ConfigError(f"the value of the header {name} has a character that cannot be sent: {value[:60]!r}")
    if name.lower() in OURS:
        raise ConfigError(f"the header {name} is written by the call itself")
