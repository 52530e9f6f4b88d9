"""The three shapes of failure are told apart by where they end and how long they take, with no network at all."""

from __future__ import annotations

import pytest

from seawall.faults.loopback import black_hole, refusing
from seawall.measure.probe import KINDS, probe
from seawall.measure.url import Url
from tests.hub.raw import RawConnection, answering, raw_server, response

pytestmark = pytest.mark.req("BUDGET-2")


def test_refused_comes_at_once_and_the_others_at_their_limits() -> None:
    refused, connecting, reading = probe(connect=0.15, read=0.3)
    assert (refused.kind, connecting.kind, reading.kind) == KINDS
    assert all(one.shown for one in (refused, connecting, reading))
    assert (refused.called.phase, refused.called.error) == ("connect", "connection refused")
    assert (connecting.called.phase, connecting.called.error) == ("connect", "no connection within 0.15 s")
    assert (reading.called.phase, reading.called.error) == ("read", "no byte for 0.3 s")
    assert connecting.called.elapsed >= 0.15
    assert reading.called.elapsed >= 0.3
    assert all(one.target.startswith("127.0.0.1:") for one in (refused, connecting, reading))


def test_a_partner_is_asked_to_sleep_longer_than_it_is_waited_for() -> None:
    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.hang()

    with raw_server(script) as partner:
        *_, reading = probe(connect=0.2, read=0.1, partner=Url.parse(partner.url + "/"))
    assert reading.shown
    assert reading.target == f"{partner.url}/slow?ms=1100"
    assert partner.requests[0].startswith(b"GET /slow?ms=1100 HTTP/1.1\r\n")


def test_an_address_can_be_given() -> None:
    with black_hole() as port:
        _, connecting, _ = probe(connect=0.1, read=0.05, unreachable=Url.at("127.0.0.1", port))
    assert connecting.shown
    assert connecting.target == f"127.0.0.1:{port}"


def test_what_ends_in_another_way_shows_no_shape() -> None:
    with refusing() as port, raw_server(answering(response(200))) as partner:
        refused, connecting, reading = probe(
            connect=10, read=10, unreachable=Url.at("127.0.0.1", port), partner=Url.parse(partner.url))
    assert (refused.shown, connecting.shown, reading.shown) == (True, False, False)
    assert (connecting.called.error, reading.called.phase) == ("connection refused", "done")
