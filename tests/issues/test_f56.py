"""F56: a total limit on a relayed stream, download or tunnel cut it after 3 s; the budget covers the head, unless asked."""

from __future__ import annotations

import pytest

from tests.hub.bed import LOOPS, Caller, RawConnection, hub_bed, raw_server

BUDGET = 150  # ms
PIECES = 20
GAP = 0.03  # s, so that all of them take four budgets


def drip(connection: RawConnection) -> None:
    connection.drip(b"." * PIECES, GAP)


def stream(connection: RawConnection) -> None:
    """An answer that goes on: the head at once, then a byte now and then."""
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % PIECES)
    drip(connection)


def unframed(connection: RawConnection) -> None:
    """The same, ended by the end of the connection."""
    connection.read_request()
    connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
    drip(connection)


@pytest.mark.fault("F56")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("script", [stream, unframed], ids=lambda script: script.__name__)
def test_a_download_that_lasts_longer_than_the_budget_arrives_whole(script: object, loop: str) -> None:
    assert callable(script)
    with raw_server(script) as server, hub_bed(f"CORE={server.url},budget-ms={BUDGET}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            assert caller.ask("GET", "/CORE/x").body == b"." * PIECES
        assert bed.codes() == {"0000": 1}


@pytest.mark.fault("F56")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("script", [stream, unframed], ids=lambda script: script.__name__)
def test_a_client_that_sent_a_budget_gets_what_fits_into_it(script: object, loop: str) -> None:
    """It asked for that; and the end is no proper one, so that half an answer is not taken for a whole."""
    assert callable(script)
    with raw_server(script) as server, hub_bed(f"CORE={server.url}", loop=loop) as bed, Caller(bed.port) as caller:
        with pytest.raises((EOFError, ConnectionError)):
            caller.ask("GET", "/CORE/x", headers={"X-Budget-Ms": str(BUDGET)})
        bed.assert_at_rest()
        assert bed.codes() == {"E906": 1}


@pytest.mark.fault("F56")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("framing", ["counted", "chunked"])
def test_an_upload_that_lasts_longer_than_the_budget_arrives_whole(framing: str, loop: str) -> None:
    """Large enough to be passed on as it comes; the answer's time begins when it is in."""
    first, rest = b"a" * 20_000, b"b" * PIECES

    def script(connection: RawConnection) -> None:
        request = connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(request[-5:]), request[-5:]))

    with raw_server(script) as server, hub_bed(f"CORE={server.url},budget-ms={BUDGET},read=5", loop=loop) as bed:
        with Caller(bed.port) as caller:
            if framing == "counted":
                caller.begin("PUT", "/CORE/x", None, {"Content-Length": str(len(first + rest))})
                caller.send(first)
                caller.drip(rest, GAP)
            else:
                caller.begin("PUT", "/CORE/x", None, {"Transfer-Encoding": "chunked"})
                caller.send(b"%x\r\n%b\r\n" % (len(first), first))
                caller.drip(b"1\r\nb\r\n" * 4 + b"0\r\n\r\n", GAP)
            answer = caller.answer()
            assert (answer.status, answer.code) == (200, None)
        assert bed.codes() == {"0000": 1}


@pytest.mark.fault("F56")
@pytest.mark.parametrize("loop", LOOPS)
def test_a_tunnel_lives_as_long_as_it_is_used(loop: str) -> None:
    """Whatever budget its opening had."""

    def script(connection: RawConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        while piece := connection.sock.recv(100):
            connection.send(piece.upper())

    with raw_server(script) as server, hub_bed(f"CORE={server.url},budget-ms={BUDGET}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            headers = {"Connection": "Upgrade", "Upgrade": "echo", "X-Budget-Ms": str(BUDGET)}
            assert caller.ask("GET", "/CORE/x", headers=headers).status == 101
            for _ in range(PIECES):
                caller.drip(b"x", GAP)
                assert caller.exactly(1) == b"X"
        bed.assert_at_rest()
        assert bed.codes() == {"0000": 1}
