"""Whatever a target answers, the client gets one sound answer or none, and the hub keeps nothing of it."""

from __future__ import annotations

import random

import h11
import pytest

from tests.hub.bed import RawConnection, hub_bed, raw_server, response, talk
from tests.hub.framing import assert_one_framing

OK = response(200, b"ok")
QUICK = "read=0.2,connect=0.1,budget-ms=5000,fail-threshold=1000"

BASES = (
    OK,
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\nContent-Type: a/b\r\n\r\nok",
    b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 2\r\nConnection: X-B, close\r\nX-B: 1\r\n\r\nno",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: \"a\"\r\n\r\n",
)
BITS = (b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b"0", b"HTTP/1.1 ", b"Content-Length: 3\r\n", b"\xff",
        b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding:\x0bchunked\r\n", b"101", b"\r\n\r\n", b"Content-Length\r\n")


def mutated(chance: random.Random) -> bytes:
    """An answer with one to three things wrong with it, or none that matters."""
    data = bytearray(chance.choice(BASES))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        match chance.randrange(4):
            case 0:
                data[at:at] = chance.choice(BITS)
            case 1:
                del data[at : at + chance.randint(1, 8)]
            case 2:
                data[at] = chance.randrange(256)
            case _:
                data[at : at + 4] = chance.choice(BITS)
        if not data:
            return b"H"
    return bytes(data)


def assert_readable(raw: bytes) -> None:
    """What a client got can be read by another reader of HTTP, as far as it goes."""
    assert_one_framing(raw)
    reader = h11.Connection(h11.CLIENT)
    reader.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(raw)
    event = reader.next_event()
    while isinstance(event, (h11.InformationalResponse, h11.Response, h11.Data)):
        event = reader.next_event()
    assert event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.EndOfMessage)


@pytest.mark.parametrize(("seed", "loop"), [(1, "uvloop"), (2, "uvloop"), (3, "asyncio")])
def test_whatever_a_target_answers_the_client_gets_one_sound_answer_or_none(seed: int, loop: str) -> None:
    chance = random.Random(seed)
    answers = [mutated(chance) for _ in range(150)]
    turn = iter(answers)

    def script(connection: RawConnection) -> None:
        if connection.read_request():
            connection.send(next(turn))

    got: dict[int, int] = {}
    with raw_server(script) as server, hub_bed(f"CORE={server.url},{QUICK}", loop=loop) as bed:
        for number, answer in enumerate(answers):
            raw = talk(bed.port, b"POST /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            assert raw, f"answer {number} of seed {seed}: {answer!r}"
            assert_readable(raw)
            status = int(raw[9:12])
            got[status] = got.get(status, 0) + 1
        assert bed.in_flight() == 0
    assert {200, 502} <= got.keys()
