"""Heads mutated at random are read as h11 reads them, or refused for a reason that can be named and checked.

h11 is the oracle, not the goal: it is kinder on purpose. Each kindness that the codec refuses stands in ``KINDER`` with
a test of the bytes that must hold when that reason is given, so a refusal for the wrong reason fails. The other way
round there is one tolerance: h11 takes no empty lines before a request line, so they are taken off before it is asked.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

import h11

from seawall.headers import FORMS
from seawall.hub.head import BadHead, RequestHead, ResponseHead, parse_request, parse_response

ROUNDS = 10000
BIG = 1 << 20
HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"transfer-encoding", b"upgrade"}
TAKEN = {b"host", b"proxy-authorization", b"expect", b"x-budget-ms", b"x-forwarded-for", b"x-forwarded-proto", b"via"}
TAKEN |= {b"x-request-id", b"grpc-timeout", b"x-envoy-expected-rq-timeout-ms"}
STAYS = {b"content-length", b"idempotency-key"}
STAYS_IN_ANSWERS = {b"content-length", b"x-seawall-code", b"retry-after"}
Pairs = list[tuple[bytes, bytes]]

REQUESTS = [
    b"GET /1k HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: x/1 (a; b)\r\nAccept: */*;q=0.8\r\n"
    b"Connection: keep-alive\r\nX-Request-Id: 7b0c\r\nCookie: sid=a; t=b\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nIdempotency-Key: k\r\n\r\nhello",
    b"POST /a HTTP/1.1\r\nhost:h\r\nTransfer-Encoding:chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"HEAD /x?y HTTP/1.1\r\nHost: h\r\nConnection: close, x-a\r\nX-A: 1\r\nX-Budget-Ms: 5\r\nx-budget-ms: 6\r\n\r\n",
    b"GET /1 HTTP/1.0\r\nConnection: keep-alive\r\ngrpc-timeout: 5S\r\nX-Envoy-Expected-Rq-Timeout-Ms: 7\r\n\r\n",
    b"GET http://h/abs HTTP/1.1\r\nHost: q\r\nKeep-Alive: 5\r\nTE: x\r\nProxy-Authorization: z\r\nVia: 1.1 v\r\n\r\n",
    b"\r\nPUT /p HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: http\r\nExpect: 100-continue\r\n"
    b"Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET / HTTP/1.2\r\nHost: h\r\n\r\n",
    b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n",
]  # fmt: skip
RESPONSES = [
    b'HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 4\r\nConnection: keep-alive\r\nETag: "6567-400"\r\n\r\nbody',
    b"HTTP/1.1 503 Service Unavailable\r\nX-Seawall-Code: E904\r\nRetry-After: 7\r\n"
    b"Connection: close, x-a\r\nX-A: 1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nKeep-Alive: 5\r\nVia: 1.1 v\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    b"HTTP/1.0 404 \r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.2 200 OK\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nDate: x\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x00",
]
BITS = [
    b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"\0", b"\x7f", b"\xff", b",", b"Content-Length: 3\r\n", b"Host: a\r\n",
    b"/", b"Content-Length: 4\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: x\r\n", b"close", b"chunked",
    b"0", b"9", b"+", b"HTTP/1.1", b"HTTP/1.0", b"\r\n\r\n", b"X: y\r\n", b" X: y\r\n", b"\x01",
    b"Content-Length: 3, 3\r\n", b"Expect: a\r\n", b"@", b"CONNECT ", b"* ", b"6",
]  # fmt: skip


def mutated(chance: random.Random, seeds: list[bytes]) -> bytes:
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 6))):
        at = chance.randrange(len(data) + 1)
        kind = chance.random()
        if kind < 0.2:  # at the start of a line, where a header fits
            starts = [0, *(match.end() for match in re.finditer(b"\n", data))]
            at = chance.choice(starts)
            data[at:at] = chance.choice(BITS)
        elif kind < 0.45:
            data[at:at] = chance.choice(BITS)
        elif kind < 0.65:
            del data[at : at + chance.choice((1, 1, 2, 5))]
        elif kind < 0.85 and at < len(data):
            data[at] = chance.randrange(256)
        else:
            lines = bytes(data).split(b"\r\n")
            one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[one]
            data = bytearray(b"\r\n".join(lines))
    return bytes(data)


def without_empty_lines(data: bytes) -> bytes:
    for _ in range(2):
        data = data.removeprefix(b"\r\n")
    return data


def read_by_h11(data: bytes, role: type[h11.CLIENT] | type[h11.SERVER]) -> tuple[h11.Event, bytes] | None:
    """The event and the bytes behind its head; ``None`` if h11 refuses it or wants more."""
    oracle = h11.Connection(role, max_incomplete_event_size=BIG)
    if role is h11.CLIENT:
        offer = [("Host", "h"), ("Connection", "upgrade"), ("Upgrade", "websocket")]
        oracle.send(h11.Request(method="GET", target="/", headers=offer))
        oracle.send(h11.EndOfMessage())
    oracle.receive_data(data)
    try:
        event = oracle.next_event()
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, (h11.Request, h11.Response, h11.InformationalResponse)):
        return None
    return event, bytes(oracle.trailing_data[0])


def values(headers: Pairs, name: bytes) -> list[bytes]:
    return [value for key, value in headers if key.lower() == name]


def tokens(headers: Pairs, name: bytes) -> set[bytes]:
    return {token.strip(b" \t") for value in values(headers, name) for token in value.lower().split(b",")}


def joined(headers: Pairs, name: bytes, by: bytes = b", ") -> bytes | None:
    return by.join(values(headers, name)) if values(headers, name) else None


def passed(headers: Pairs, gone: set[bytes], stays: set[bytes]) -> Pairs:
    gone = gone | (tokens(headers, b"connection") - stays - {b"close", b"keep-alive", b"upgrade"})
    return [(name, value) for name, value in headers if name.lower() not in gone]


def pairs(lines: list[bytes]) -> Pairs:
    return [(name, value.strip(b" \t")) for name, _, value in (line.partition(b":") for line in lines)]


def check_common(head: RequestHead | ResponseHead, headers: Pairs, v11: bool) -> None:
    assert head.length == (int(values(headers, b"content-length")[0]) if values(headers, b"content-length") else None)
    assert head.chunked == bool(values(headers, b"transfer-encoding"))
    options = tokens(headers, b"connection")
    assert head.keep_alive == (b"close" not in options and (v11 or b"keep-alive" in options))
    offered = joined(headers, b"upgrade") if v11 and b"upgrade" in options else None
    assert head.upgrade == (offered or None)


def check_request(head: RequestHead, event: h11.Request) -> None:
    headers = event.headers.raw_items()
    assert (head.method, head.v11) == (event.method, event.http_version == b"1.1")
    host = joined(headers, b"host")
    if event.target[:1] in (b"/", b"*"):
        assert (head.target, head.host) == (event.target, host)
    else:
        authority, path = re.split(b"(?=[/?#])", event.target.partition(b"://")[2] + b"#", maxsplit=1)
        path = path.partition(b"#")[0]
        asterisk = not path and head.method == b"OPTIONS"
        assert head.host == authority
        assert head.target == (b"*" if asterisk else path if path.startswith(b"/") else b"/" + path)
    assert pairs(head.lines) == passed(headers, HOP | TAKEN, STAYS)
    budgets = tuple(joined(headers, form.name.lower().encode()) for form in FORMS)
    assert head.budgets == (budgets if any(value is not None for value in budgets) else None)
    assert (head.forwarded, head.proto) == (joined(headers, b"x-forwarded-for"), joined(headers, b"x-forwarded-proto"))
    assert (head.via, head.request_id) == (joined(headers, b"via"), joined(headers, b"x-request-id"))
    assert head.idempotency_key == bool(values(headers, b"idempotency-key"))
    assert head.expect == (head.v11 and bool(values(headers, b"expect")))
    check_common(head, headers, head.v11)


def check_sent_on(wire: bytes, head: RequestHead | ResponseHead) -> None:
    """What is sent on has one way to be read: no stray line end or control, one framing at most, nothing hop-by-hop."""
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)", wire)
    names = [name.lower() for name, _ in pairs(head.lines)]
    assert names.count(b"content-length") == (head.length is not None)
    assert not (head.chunked and b"content-length" in names)
    assert not HOP & set(names)


def head_of(data: bytes) -> bytes:
    return without_empty_lines(data).partition(b"\r\n\r\n")[0] + b"\r\n"


def raw(data: bytes, name: bytes) -> list[bytes]:
    return [found.strip(b" \t\r") for found in re.findall(rb"(?im)^" + name + rb":([^\n]*)", head_of(data))]


def target_of(data: bytes) -> bytes:
    return head_of(data).split(b" ")[1]


HOST = re.compile(rb"[A-Za-z0-9\-._~%!$&'()*+;=:\[\]]*")
KINDER: dict[str, Callable[[bytes], object]] = {
    "control character, or a line": lambda data: re.search(
        rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|(?<!\r)\n|\r(?!\n)", head_of(data)
    ),
    "header name is empty or holds": lambda data: re.search(rb"\r\n[ \t]", head_of(data)),  # a folded line
    "two Content-Length": lambda data: len(raw(data, b"content-length")) > 1,
    "not one number": lambda data: any(b"," in value or len(value) > 18 for value in raw(data, b"content-length")),
    "stand together": lambda data: raw(data, b"content-length") and raw(data, b"transfer-encoding"),
    "does not exist in HTTP/1.0": lambda data: b"HTTP/1.0" in head_of(data) and raw(data, b"transfer-encoding"),
}
KINDER_TO_REQUESTS = KINDER | {
    "Only HTTP/1.1 and HTTP/1.0": lambda data: not re.match(rb"\S+ \S+ HTTP/1\.[01]\r\n", head_of(data)),
    "Host header holds": lambda data: not all(HOST.fullmatch(value) for value in raw(data, b"host")),
    "host in the target": lambda data: not HOST.fullmatch(re.split(b"[/?#]", target_of(data), maxsplit=3)[2]),
    "target * is": lambda data: target_of(data) == b"*" and not head_of(data).startswith(b"OPTIONS "),
    "neither a path nor": lambda data: not re.match(rb"/|(?i:https?)://[^/?#]", target_of(data)),
    "CONNECT is not": lambda data: head_of(data).startswith(b"CONNECT "),
    "Only 100-continue": lambda data: [value for value in raw(data, b"expect") if value.lower() != b"100-continue"]
    or len(raw(data, b"expect")) > 1,
}
KINDER_TO_RESPONSES = KINDER | {
    "status line is not": lambda data: not re.match(rb"HTTP/1\.[01] [1-5]\d\d[ \r]", head_of(data)),
}


def check_refusal(data: bytes, error: BadHead | None, kinder: dict[str, Callable[[bytes], object]]) -> str:
    """h11 accepted it: the reason given must be a listed one, and true."""
    if error is None:  # h11 also takes LF LF for the end of a head
        assert b"\r\n\r\n" not in without_empty_lines(data), data
        assert re.search(rb"(?<!\r)\n", data), data
        return "incomplete"
    reasons = [reason for reason in kinder if reason in error.why]
    assert len(reasons) == 1, (data, error.why)
    assert kinder[reasons[0]](data), (data, error.why)
    return reasons[0]


def test_requests_are_read_as_h11_reads_them_or_refused_for_a_listed_reason() -> None:
    chance = random.Random(20261129)
    seen: Counter[str] = Counter()
    for _ in range(ROUNDS):
        data = mutated(chance, REQUESTS)
        oracle = read_by_h11(without_empty_lines(data), h11.SERVER)
        head = error = None
        try:
            head = parse_request(data)
        except BadHead as refusal:
            error = refusal
        if head is None:
            assert error is None or error.status in (400, 417, 501, 505)
            seen["" if oracle is None else check_refusal(data, error, KINDER_TO_REQUESTS)] += 1
            continue
        seen["accepted"] += 1
        assert oracle is not None, data
        event, rest = oracle
        assert isinstance(event, h11.Request)
        assert data[head.end :] == rest
        check_request(head, event)
        first = head.method + b" " + head.target + b" HTTP/1.1"
        wire = b"\r\n".join([first, b"Host: " + (head.host or b""), *head.lines, b"", b""])
        check_sent_on(wire, head)
        again = parse_request(wire)
        assert again is not None
        assert (again.end, again.method, again.target) == (len(wire), head.method, head.target)
        assert (again.lines, again.length) == (head.lines, head.length)
    assert seen["accepted"] > ROUNDS / 5
    assert set(seen) == {"", "accepted", "incomplete", *KINDER_TO_REQUESTS}


def test_responses_are_read_as_h11_reads_them_or_refused_for_a_listed_reason() -> None:
    chance = random.Random(20261129)
    seen: Counter[str] = Counter()
    for _ in range(ROUNDS):
        data = mutated(chance, RESPONSES)
        oracle = read_by_h11(data, h11.CLIENT)
        head = error = None
        try:
            head = parse_response(data)
        except BadHead as refusal:
            error = refusal
        if head is None:
            assert error is None or error.status == 502
            seen["" if oracle is None else check_refusal(data, error, KINDER_TO_RESPONSES)] += 1
            continue
        seen["accepted"] += 1
        assert oracle is not None, data
        event, rest = oracle
        assert isinstance(event, (h11.Response, h11.InformationalResponse))
        assert data[head.end :] == rest
        v11 = event.http_version == b"1.1"
        headers = event.headers.raw_items()
        assert head.status == event.status_code
        assert head.line.removeprefix(b"HTTP/1.1 %d" % head.status).removeprefix(b" ") == event.reason
        assert pairs(head.lines) == passed(headers, HOP, STAYS_IN_ANSWERS)
        assert (head.code, head.retry_after) == (joined(headers, b"x-seawall-code"), joined(headers, b"retry-after"))
        check_common(head, headers, v11)
        check_sent_on(b"\r\n".join([head.line, *head.lines, b"", b""]), head)
    assert seen["accepted"] > ROUNDS / 5
    assert set(seen) == {"", "accepted", "incomplete", *KINDER_TO_RESPONSES}
