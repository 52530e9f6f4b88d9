"""Reads a plan or a probe from a file or from standard input: JSON, or TOML where the name ends in ``.toml``."""

from __future__ import annotations

import json
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .places import Places, places_in

__all__ = ["LARGEST", "Source", "UnreadableError", "label", "read"]

LARGEST = 1 << 20
"""Bytes; a plan has a few hundred, and a device that never ends must not be read to its end."""
_DIGITS = 18  # a longer whole number is out of every range; as a float it is read in no time


class UnreadableError(Exception):
    """There is no document to look at.

    Attributes:
        what: What happened.
        why: The reason.
        hint: What to do.
    """

    def __init__(self, what: str, why: str, hint: str) -> None:
        super().__init__(f"{what} ({why})")
        self.what = what
        self.why = why
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Source:
    """What stands in a file.

    Attributes:
        name: The file as it was named; ``-`` is standard input.
        document: The object.
        places: Where its values stand; empty for TOML.
    """

    name: str
    document: dict[str, Any]
    places: Places


def label(name: str) -> str:
    """The name of a file in messages."""
    return "<stdin>" if name == "-" else name


def read(name: str, what: str, hint: str) -> Source:
    """Read a file.

    Args:
        name: The file, ``-`` for standard input, which is JSON.
        what: What it should be, for messages: ``budget plan``.
        hint: How to come by one.

    Raises:
        UnreadableError: It cannot be read, is not JSON (or TOML), or not one object.
    """
    try:
        text = _bytes(name, what, hint).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{label(name)} is no {what}", f"byte {error.start + 1} is not UTF-8", hint) from None
    source = _toml(name, text) if name.endswith(".toml") else _json(name, text)
    if source is None:
        raise UnreadableError(f"{label(name)} is no {what}", "it is not one object", f"it begins with {{; {hint}")
    return source


def _bytes(name: str, what: str, hint: str) -> bytes:
    try:
        if name == "-":
            data = b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise UnreadableError(f"cannot read {label(name)}", why, hint) from None
    if len(data) > LARGEST:
        raise UnreadableError(f"{label(name)} is no {what}", f"it is larger than {LARGEST >> 20} MiB", hint)
    if not data.strip():
        raise UnreadableError(f"{label(name)} is no {what}", "it is empty", hint)
    return data


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _DIGITS else float(digits)


def _json(name: str, text: str) -> Source | None:
    hint = "TOML is read from files whose names end in .toml" if name != "-" else "standard input takes JSON"
    try:
        document = json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        why = f"line {error.lineno}, column {error.colno}: {error.msg[:1].lower()}{error.msg[1:]}"
        raise UnreadableError(f"{label(name)} is not JSON", why, hint) from None
    except RecursionError:
        why = "brackets within brackets, a thousand deep"
        raise UnreadableError(f"{label(name)} is no document of ours", why, hint) from None
    return Source(name, document, places_in(text)) if isinstance(document, dict) else None


def _toml(name: str, text: str) -> Source:
    try:
        return Source(name, tomllib.loads(text.replace("\r\n", "\n")), Places())
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, ValueError) else "nested too deeply"
        raise UnreadableError(f"{name} is not TOML", f"{why[:1].lower()}{why[1:]}",
                              "JSON is read from files with other names than .toml") from None  # fmt: skip
