"""Judges whether a message can be read in one way only."""

from __future__ import annotations

import re

__all__ = ["assert_one_framing"]

_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")


def assert_one_framing(message: bytes) -> None:
    """Fail unless the head of ``message`` is sound, and says in at most one way where the body ends."""
    head, end, _ = message.partition(b"\r\n\r\n")
    assert end, f"no whole head: {message[:200]!r}"
    first, *lines = head.split(b"\r\n")
    assert b"\n" not in first
    assert b"\r" not in first
    assert [line for line in lines if not _LINE.fullmatch(line)] == []
    names = [line.partition(b":")[0].lower() for line in lines]
    framings = [name for name in names if name in (b"content-length", b"transfer-encoding")]
    assert len(framings) <= 1, f"framed in {len(framings)} ways: {head!r}"
    for line in lines:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            assert re.fullmatch(rb"[0-9]+", value.strip()), head
        if name.lower() == b"transfer-encoding":
            assert value.strip().lower() == b"chunked", head
