"""Heads for tests, made of a first line and header lines."""

from __future__ import annotations

from seawall.hub.head import RequestHead, ResponseHead, parse_request, parse_response


def request(lines: bytes = b"", first: bytes = b"GET /a HTTP/1.1", host: bytes = b"Host: h\r\n") -> RequestHead:
    head = parse_request(first + b"\r\n" + host + lines + b"\r\n")
    assert head is not None
    return head


def old(lines: bytes = b"") -> RequestHead:
    return request(lines, b"GET /a HTTP/1.0", b"")


def response(lines: bytes = b"", first: bytes = b"HTTP/1.1 200 OK") -> ResponseHead:
    head = parse_response(first + b"\r\n" + lines + b"\r\n")
    assert head is not None
    return head


def fields_of(head: RequestHead | ResponseHead) -> dict[str, object]:
    return {name: getattr(head, name) for name in type(head).__slots__}
