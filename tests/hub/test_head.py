"""A head is read in exactly one way, or refused: every rule of its form as a row of a table."""

from __future__ import annotations

import pickle

import pytest

from seawall.hub import fields
from seawall.hub.head import BadHead, parse_request, parse_response
from tests.heads import fields_of, old, request, response


def test_a_plain_request_has_every_field_set() -> None:
    data = b"GET /a?b=%2f HTTP/1.1\r\nHost: h:80\r\nAccept:  x\t\r\n\r\nrest"
    head = parse_request(data)
    assert head is not None
    assert fields_of(head) == {
        "end": len(data) - 4, "method": b"GET", "target": b"/a?b=%2f", "v11": True, "host": b"h:80",
        "lines": [b"Accept:  x\t"], "length": None, "chunked": False, "keep_alive": True, "expect": False,
        "upgrade": None, "budgets": None, "forwarded": None, "proto": None, "via": None, "request_id": None,
        "idempotency_key": False,
    }  # fmt: skip


def test_a_plain_response_has_every_field_set() -> None:
    data = b"HTTP/1.1 404 Not  Found\r\nServer: x\r\nContent-Length: 4\r\n\r\nrest"
    head = parse_response(data)
    assert head is not None
    assert fields_of(head) == {
        "end": len(data) - 4, "status": 404, "line": b"HTTP/1.1 404 Not  Found",
        "lines": [b"Server: x", b"Content-Length: 4"], "length": 4, "chunked": False, "keep_alive": True,
        "upgrade": None, "code": None, "retry_after": None,
    }  # fmt: skip


FULL_REQUEST = (
    b"\r\n\r\nPOST http://a/b HTTP/1.1\r\nHost: h\r\nX-Budget-Ms: 5\r\nContent-Length: 3\r\nVia: 1.1 x\r\n"
    b"Connection: X-Gone\r\nX-Gone: 1\r\nX-Kept: 2\r\n\r\nabcGET / HTTP/1.1\r\n\r\n"
)
FULL_RESPONSE = b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive, X-Gone\r\nX-Gone: 1\r\nRetry-After: 2\r\n\r\nbody\r\n\r\n"


def test_a_request_is_none_until_it_is_whole_and_then_the_same_whatever_follows() -> None:
    whole = parse_request(FULL_REQUEST)
    assert whole is not None
    for cut in range(len(FULL_REQUEST) + 1):
        head = parse_request(FULL_REQUEST[:cut])
        assert (head is None) == (cut < whole.end), cut
        if head is not None:
            assert fields_of(head) == fields_of(whole)


def test_a_response_is_none_until_it_is_whole_and_then_the_same_whatever_follows() -> None:
    whole = parse_response(FULL_RESPONSE)
    assert whole is not None
    for cut in range(len(FULL_RESPONSE) + 1):
        head = parse_response(FULL_RESPONSE[:cut])
        assert (head is None) == (cut < whole.end), cut
        if head is not None:
            assert fields_of(head) == fields_of(whole)


@pytest.mark.parametrize(
    ("first", "status"),
    [
        (b"GET /a", 400), (b"GET", 400), (b"", 400), (b"GET  /a HTTP/1.1", 400), (b"GET /a  HTTP/1.1", 400),
        (b"GET /a HTTP/1.1 ", 400), (b" GET /a HTTP/1.1", 400), (b"GET\t/a HTTP/1.1", 400), (b"GET /a b HTTP/1.1", 400),
        (b"GET  HTTP/1.1", 400), (b" /a HTTP/1.1", 400), (b"G(T /a HTTP/1.1", 400), (b"G\xc9T /a HTTP/1.1", 400),
        (b"GET a HTTP/1.1", 400), (b"GET /a\tb HTTP/1.1", 400), (b"GET /\xc3\xa9 HTTP/1.1", 400),
        (b"GET /\x00 HTTP/1.1", 400), (b"GET /\x7f HTTP/1.1", 400), (b"GET * HTTP/1.1", 400),
        (b"GET ftp://h/a HTTP/1.1", 400), (b"GET http:///a HTTP/1.1", 400), (b"GET http://u@h/a HTTP/1.1", 400),
        (b"GET http://h,i/a HTTP/1.1", 400), (b"GET http://h/\xe9 HTTP/1.1", 400), (b"GET http:/h HTTP/1.1", 400),
        (b"CONNECT h:443 HTTP/1.1", 501), (b"CONNECT http://h/ HTTP/1.1", 501),
        (b"GET /a HTTP/2.0", 505), (b"GET /a HTTP/1.2", 505), (b"GET /a HTTP/0.9", 505), (b"GET /a HTTP/1.01", 505),
        (b"PRI * HTTP/2.0", 505), (b"GET /a http/1.1", 400), (b"GET /a ICY/1.1", 400),
    ],
)  # fmt: skip
def test_a_request_line_is_three_words_with_single_spaces(first: bytes, status: int) -> None:
    with pytest.raises(BadHead) as refusal:
        request(first=first)
    assert refusal.value.status == status


@pytest.mark.parametrize(
    ("first", "target", "host"),
    [
        (b"GET / HTTP/1.1", b"/", b"h"), (b"GET //a/../%2e?x=[#'\" HTTP/1.1", b"//a/../%2e?x=[#'\"", b"h"),
        (b"M-SEARCH /a HTTP/1.1", b"/a", b"h"), (b"connect /a HTTP/1.1", b"/a", b"h"),
        (b"OPTIONS * HTTP/1.1", b"*", b"h"), (b"GET http://b:81/c?d HTTP/1.1", b"/c?d", b"b:81"),
        (b"GET HTTPS://b HTTP/1.1", b"/", b"b"), (b"GET http://b?c HTTP/1.1", b"/?c", b"b"),
        (b"GET http://[::1]:8/c#d HTTP/1.1", b"/c", b"[::1]:8"),
        (b"OPTIONS http://b HTTP/1.1", b"*", b"b"), (b"OPTIONS http://b/ HTTP/1.1", b"/", b"b"),
    ],
)  # fmt: skip
def test_the_target_passes_byte_for_byte_and_an_absolute_one_says_the_host(
    first: bytes, target: bytes, host: bytes
) -> None:
    head = request(first=first)
    assert (head.method, head.target, head.host) == (first.split()[0], target, host)


@pytest.mark.parametrize(("empty", "ok"), [(0, True), (1, True), (2, True), (3, False), (4, False)])
def test_two_empty_lines_before_a_request_are_forgiven_and_none_before_a_response(empty: int, ok: bool) -> None:
    data = b"\r\n" * empty + b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
    if ok:
        head = parse_request(data + b"more")
        assert head is not None
        assert (head.end, head.target) == (len(data), b"/a")
        assert parse_request(b"\r\n" * empty) is None
    else:
        with pytest.raises(BadHead, match="400"):
            parse_request(data)
    if empty:
        with pytest.raises(BadHead, match="502"):
            parse_response(b"\r\n" * empty + b"HTTP/1.1 200 OK\r\n\r\n")


BAD_LINES = [
    b"Foo: a\rb\r\n", b"Foo: a\nBar: b\r\n", b"Foo: a\r\r\n", b"Foo: a\n\r\n", b"Foo: a\0b\r\n", b"Foo: a\x0bb\r\n",
    b"Foo: a\x7fb\r\n", b"Foo: \x1b[1m\r\n", b"Foo: a\r\n b\r\n", b"Foo: a\r\n\tb: c\r\n", b" Foo: a\r\n",
    b"Foo : a\r\n", b"Foo\t: a\r\n", b": a\r\n", b"Foo\r\n", b"Foo Bar: a\r\n", b"F\xf6o: a\r\n", b"Foo(: a\r\n",
    b"Foo=a\r\n", b"{}: a\r\n",
]  # fmt: skip


@pytest.mark.parametrize("lines", BAD_LINES)
def test_a_malformed_header_line_is_refused_both_ways(lines: bytes) -> None:
    for where in (lines, b"A: b\r\n" + lines, lines + b"A: b\r\n"):
        with pytest.raises(BadHead, match="400"):
            request(where)
        with pytest.raises(BadHead, match="502"):
            response(where)


def test_a_known_name_without_a_colon_is_refused_too() -> None:
    request(b"Accept: x\r\nX-Request-Id: 1\r\n")
    for line in (b"Accept\r\n", b"X-Request-Id\r\n", b"Content-Length\r\n"):
        with pytest.raises(BadHead, match="no colon"):
            request(line)


def test_odd_but_legal_lines_pass_untouched() -> None:
    lines = [b"A:", b"a:\t x \t", b"!#$%&'*+.^_`|~-9: \x80\xff", b"Set-Cookie: a=1", b"set-cookie: a=1"]
    lines += [b"Trailer: x", b"C: :,;"]
    block = b"\r\n".join(lines) + b"\r\n"
    assert request(block).lines == lines
    assert response(block).lines == lines


@pytest.mark.parametrize(
    "host",
    [
        b"", b"Host: h\r\nHost: h\r\n", b"Host: h\r\nhost: i\r\n", b"Host: a b\r\n",
        b"Host: a\tb\r\n", b"Host: a,b\r\n", b"Host: a/b\r\n", b"Host: u@a\r\n", b"Host: a?b\r\n",
        b"Host: a#b\r\n", b"Host: a\\b\r\n", b"Host: \xe4\r\n", b"Host: <a>\r\n",
    ],
)  # fmt: skip
def test_there_is_one_host_and_it_is_a_host(host: bytes) -> None:
    for first in (b"GET / HTTP/1.1", b"GET http://b/ HTTP/1.1"):
        with pytest.raises(BadHead, match="400"):
            request(first=first, host=host)


def test_http_1_0_may_leave_the_host_out_but_not_say_it_twice() -> None:
    assert old().host is None
    assert old(b"Host: \r\n").host == b""
    with pytest.raises(BadHead, match="two Host"):
        old(b"Host: h\r\nHost: h\r\n")
    for value in (b"a.b-c_d", b"127.0.0.1:80", b"[fe80::1%25e]:80", b"%41", b""):
        assert request(host=b"HOST:\t" + value + b" \r\n").host == value


@pytest.mark.parametrize(
    ("first", "status", "line"),
    [
        (b"HTTP/1.1 200 OK", 200, b"HTTP/1.1 200 OK"), (b"HTTP/1.0 599 a  b", 599, b"HTTP/1.1 599 a  b"),
        (b"HTTP/1.1 100 ", 100, b"HTTP/1.1 100 "), (b"HTTP/1.0 204", 204, b"HTTP/1.1 204"),
        (b"HTTP/1.1 404 \xe4\t!", 404, b"HTTP/1.1 404 \xe4\t!"),
        (b"HTTP/1.1 200 " + b"x" * 99, 200, b"HTTP/1.1 200 " + b"x" * 99),
    ],
)  # fmt: skip
def test_a_status_line_passes_as_http_1_1_with_its_reason(first: bytes, status: int, line: bytes) -> None:
    for _ in range(2):  # the second time from memory
        head = response(first=first)
        assert (head.status, head.line, head.keep_alive) == (status, line, first[7:8] == b"1")


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.1 099 x", b"HTTP/1.1 600 x", b"HTTP/1.1 20 x", b"HTTP/1.1 2000 x", b"HTTP/1.1  200 x",
        b"HTTP/1.1 200x", b"HTTP/2 200", b"HTTP/1.2 200 OK", b"http/1.1 200 OK", b"HTTP/1.1",
        b"", b" HTTP/1.1 200 OK", b"HTTP/1.1 +20 x", b"HTTP/1.1\t200 OK", b"HTTP/1.1 2\xb20 OK", b"SSH-2.0-x",
    ],
)  # fmt: skip
def test_anything_else_is_no_status_line(first: bytes) -> None:
    for _ in range(2):
        with pytest.raises(BadHead, match="502"):
            response(first=first)


def test_what_does_not_begin_like_http_is_refused_before_any_line_ends() -> None:
    for data in (b"SSH-2.0", b"\x16\x03\x01", b"HTTPS", b"h"):
        with pytest.raises(BadHead, match="502"):
            parse_response(data)
    for data in (b"", b"H", b"HTTP/", b"HTTP/1.1 2"):
        assert parse_response(data) is None


def test_a_head_may_be_as_long_as_the_limit_and_no_longer() -> None:
    data = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
    size = len(data)
    assert parse_request(data + b"x" * 99, size) is not None
    assert parse_request(data[: size - 2], size) is None
    for piece in (data, data[: size - 1], data + b"x" * 99):
        with pytest.raises(BadHead, match="431"):
            parse_request(piece, size - 1)
    answer = b"HTTP/1.1 200 OK\r\n\r\n"
    assert parse_response(answer, len(answer)) is not None
    with pytest.raises(BadHead, match="502"):
        parse_response(answer, len(answer) - 1)


def test_the_memory_of_names_is_bounded_and_survives_a_flood_of_new_ones() -> None:
    names = fields.Names(400, {b"host": fields.HOST})
    for number in range(5000):
        fields.read(b"GET\r\nX-%d: a\r\nHost: b\r\n%b: c" % (number, b"y" * (60 + number)), names)
        assert len(names.known) <= 1024
    assert max(map(len, names.known)) <= 64
    assert fields.read(b"GET\r\nhOST: b", names)[1:] == ([], [None, None, b"b", *[None] * 15])


def test_a_refusal_never_repeats_what_was_sent_and_survives_pickling() -> None:
    with pytest.raises(BadHead) as refusal:
        request(b"S3cret name: x\r\n")
    error = refusal.value
    assert "S3cret" not in error.why
    assert error.why.endswith(".")
    again = pickle.loads(pickle.dumps(error))
    assert (again.status, again.why) == (error.status, error.why)
