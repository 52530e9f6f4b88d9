"""A URL to call is taken apart as a client does it, and what cannot be called is refused with what to write instead."""

from __future__ import annotations

import pytest

from seawall.errors import ConfigError
from seawall.measure.url import Url


@pytest.mark.parametrize(("text", "expected"), [
    ("http://core:8014/slow?ms=300", ("http", "core", 8014, "/slow?ms=300", "core:8014")),
    ("http://core", ("http", "core", 80, "/", "core")),
    ("HTTPS://Core.example?x=1#here", ("https", "core.example", 443, "/?x=1", "core.example")),
    ("http://core:80/", ("http", "core", 80, "/", "core")),
    ("https://core:80/", ("https", "core", 80, "/", "core:80")),
    ("http://[::1]:8014/a%20b", ("http", "::1", 8014, "/a%20b", "[::1]:8014")),
    ("http://[fe80::1%eth0]/", ("http", "fe80::1%eth0", 80, "/", "[fe80::1]")),
    ("http://ü.example/ä?q=ä", ("http", "xn--tda.example", 80, "/%C3%A4?q=%C3%A4", "xn--tda.example")),
])
def test_a_url_is_taken_apart(text: str, expected: tuple[str, str, int, str, str]) -> None:
    url = Url.parse(text)
    assert (url.scheme, url.host, url.port, url.target, url.host_field) == expected
    assert url.text == text


@pytest.mark.parametrize(("text", "why"), [
    ("", "it is empty"),
    ("127.0.0.1:8014/slow", "write http://127.0.0.1:8014/slow"),
    ("ftp://core/", "http or https, not 'ftp'"),
    ("http://", "it names no host"),
    ("http:///path", "it names no host"),
    ("http://core:0/", "from 1 to 65535"),
    ("http://core:99999/", "out of range"),
    ("http://core:x/", "'x'"),
    ("http://[::1/", "Invalid IPv6 URL"),
    ("http://core/a b", "a blank is written %20"),
    ("http://core/\r\nX: 1", "control character"),
    ("http://me:secret@core/", "a header Authorization"),
    ("http://co%72e/", "no name of a host"),
    ("http://..ü/", "no name of a host"),
])
def test_what_is_no_url_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Url.parse(text)
    assert str(refused.value).startswith(f"{text!r} is no URL to call: ")
    assert why in str(refused.value)


@pytest.mark.parametrize(("address", "authority"), [
    ("192.0.2.1", "192.0.2.1:80"),
    ("192.0.2.1:81", "192.0.2.1:81"),
    ("::1", "[::1]:80"),
    ("[::1]:81", "[::1]:81"),
    ("[::1]", "[::1]:80"),
    ("core", "core:80"),
    ("http://core:82/x", "core:82"),
])
def test_an_address_is_a_host_with_or_without_a_port(address: str, authority: str) -> None:
    assert Url.at(address).authority == authority


@pytest.mark.parametrize("address", ["", "core/path", "a b", "core:99999", "1:2:3", ":80"])
def test_what_is_no_address_is_refused_with_how_to_write_one(address: str) -> None:
    with pytest.raises(ConfigError, match=r"is no address: .*write 192\.0\.2\.1"):
        Url.at(address)


def test_a_path_stands_below_a_base_with_or_without_its_slash() -> None:
    for base in ("http://core:1/api", "http://core:1/api/"):
        url = Url.parse(base).below("/budget?ms=200")
        assert (url.text, url.target) == ("http://core:1/api/budget?ms=200", "/api/budget?ms=200")
    with pytest.raises(ConfigError, match="has a query"):
        Url.parse("http://core/?x").below("/budget")
