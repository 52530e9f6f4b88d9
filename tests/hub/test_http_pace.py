"""The slower side sets the pace: whoever does not read or does not take, the hub holds little, and loses nothing."""

from __future__ import annotations

import hashlib
import socket
import threading
from functools import partial

import pytest

from seawall.hub import phases
from seawall.hub.server import Hub
from tests.hub.bed import LOOPS, Caller, HubBed, RawConnection, answering, hub_bed, raw_server, response
from tests.hub.raw import Wire

PATIENT = "read=60,connect=60,budget-ms=600000,body-gap=60"
GET = b"GET /CORE/x HTTP/1.1\r\nHost: h\r\n\r\n"
MANY = 48 << 20  # bytes; far more than the buffers of all sockets on the way together
LITTLE = 2 << 20  # bytes the hub itself may hold at a time for one call, generously


def held(hub: Hub) -> int:
    """Bytes on their way that the hub has in memory."""
    total = 0
    for client in hub.clients:
        total += client.transport.get_write_buffer_size() + len(client.buffer)
        upstream = client.exchange.upstream if client.exchange is not None else None
        if upstream is not None:
            total += upstream.transport.get_write_buffer_size() + len(upstream.buffer)
        total += sum(map(len, getattr(client.exchange, "pieces", None) or ()))
    return total


def settle(number: list[int]) -> int:
    """Wait until what is counted has stood still for a fifth of a second; how far it came."""
    before = -1
    while number[0] != before or not before:
        before = number[0]
        threading.Event().wait(0.2)
    return before


def reluctant(port: int) -> Caller:
    """A client with a small window, so that little is in flight when it stops reading."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    sock.connect(("127.0.0.1", port))
    return Caller.on(sock)


def push(sock: socket.socket, sent: list[int], data: bytes) -> None:
    """Send ``data`` and count how far that got."""
    view = memoryview(data)
    try:
        while sent[0] < len(data):
            sent[0] += sock.send(view[sent[0] : sent[0] + 65536])
    except OSError:
        pass


def pushing(sock: socket.socket, data: bytes) -> tuple[threading.Thread, list[int]]:
    sent = [0]
    thread = threading.Thread(target=push, args=(sock, sent, data), daemon=True)
    thread.start()
    return thread, sent


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("framed", ["counted", "chunked", "unframed"])
def test_a_client_that_does_not_read_stops_the_target_and_then_gets_everything(framed: str, loop: str) -> None:
    sent = [0]
    data = bytes(range(256)) * (MANY // 256)

    def script(connection: RawConnection) -> None:
        connection.read_request()
        coding = {"counted": b"Content-Length: %d\r\n" % MANY, "chunked": b"Transfer-Encoding: chunked\r\n"}
        connection.send(b"HTTP/1.1 200 OK\r\n" + coding.get(framed, b"") + b"\r\n")
        if framed == "chunked":
            connection.send(b"%x\r\n" % MANY)
        push(connection.sock, sent, data)
        if framed == "chunked":
            connection.send(b"\r\n0\r\n\r\n")

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop=loop) as bed:
        caller = reluctant(bed.port)
        caller.send(GET)
        assert settle(sent) < MANY // 2
        assert bed.run(held) < LITTLE
        caller.upto(b"\r\n\r\n")
        got = hashlib.sha256()
        while size := MANY if framed == "counted" else int(caller.upto(b"\r\n"), 16):
            take(caller, size, got)
            if framed == "counted" or caller.upto(b"\r\n") != b"\r\n":
                break
        assert got.digest() == hashlib.sha256(data).digest()
        caller.close()


def take(wire: Wire, size: int, digest: hashlib._Hash) -> None:
    """Read ``size`` bytes without keeping them."""
    digest.update(wire.rest[:size])
    size, wire.rest = size - len(wire.rest[:size]), wire.rest[size:]
    while size:
        piece = wire.sock.recv(min(size, 1 << 20))
        assert piece
        digest.update(piece)
        size -= len(piece)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_target_that_does_not_take_the_body_stops_the_client_and_then_gets_everything(loop: str) -> None:
    go_on = threading.Event()
    data = bytes(range(256)) * (MANY // 256)
    digest = hashlib.sha256()

    def script(connection: RawConnection) -> None:
        assert go_on.wait(60)
        connection.upto(b"\r\n\r\n")
        take(connection, MANY, digest)
        connection.send(response(200, b"got it"))

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop=loop) as bed:
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % MANY)
            thread, sent = pushing(caller.sock, data)
            assert settle(sent) < MANY // 2
            assert bed.run(held) < LITTLE
            go_on.set()
            assert caller.answer().body == b"got it"
            thread.join(20)
        assert digest.digest() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_collected_in_line_and_not_taken_afterwards_still_stops_the_client(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thing the target hears is already more than it takes."""
    monkeypatch.setattr("seawall.hub.exchange.HIGH", 16 << 20)
    go_on = threading.Event()

    def script(connection: RawConnection) -> None:
        assert go_on.wait(60)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},max-inflight=1,max-queue=1,{PATIENT}", loop=loop) as bed:
        bed.run(lambda hub: hub.backends["CORE"].bulkhead.try_acquire())
        with Caller(bed.port) as caller:
            caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % MANY)
            _, sent = pushing(caller.sock, b"x" * MANY)
            assert settle(sent) < MANY * 3 // 4  # besides what is collected, the kernel takes some
            bed.run(lambda hub: hub.backends["CORE"].bulkhead.release())
            bed.wait_for(lambda hub: [c for c in hub.clients if getattr(c.exchange, "phase", None) == phases.SENDING])
            assert settle(sent) < MANY
            caller.sock.shutdown(socket.SHUT_RDWR)
        go_on.set()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_body_in_line_is_held_up_to_a_bound(loop: str) -> None:
    with raw_server(answering(response(200))) as server:
        with hub_bed(f"CORE={server.url},max-inflight=1,max-queue=1,{PATIENT}", loop=loop) as bed:
            bed.run(lambda hub: hub.backends["CORE"].bulkhead.try_acquire())
            with Caller(bed.port) as caller:
                caller.send(b"PUT /CORE/x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % MANY)
                _, sent = pushing(caller.sock, b"x" * MANY)
                assert settle(sent) < MANY // 2
                assert bed.run(held) < LITTLE
            bed.run(lambda hub: hub.backends["CORE"].bulkhead.release())  # now that the client has gone
            bed.wait_for(lambda hub: not hub.clients)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("asked", [GET, b"GET /NONE HTTP/1.1\r\nHost: h\r\n\r\n"], ids=["answers", "refusals"])
def test_who_asks_on_and_reads_no_answers_is_made_to_wait(asked: bytes, loop: str) -> None:
    """Otherwise a small request sent again and again would fill the memory with its answers."""
    answer = response(200, b"z" * 100_000)
    with raw_server(answering(answer)) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop=loop) as bed:
        caller = reluctant(bed.port)
        count = (6 << 20) // len(asked)
        thread, sent = pushing(caller.sock, asked * count)
        settle(sent)
        assert bed.run(held) < LITTLE
        assert len(server.requests) < 500
        for _ in range(50):  # and once it reads, it goes on
            assert caller.answer().status == (200 if asked == GET else 404)
        caller.close()
        thread.join(20)


@pytest.mark.parametrize("loop", LOOPS)
def test_nor_is_one_that_asks_one_by_one_answered_for_ever(loop: str) -> None:
    """Each request comes after the answer to the one before has gone out, if not to the client's hands."""
    with raw_server(answering(response(200, b"z" * 30_000))) as server:
        with hub_bed(f"CORE={server.url},{PATIENT}", loop=loop) as bed:
            caller = reluctant(bed.port)
            answered = 0
            while not bed.run(lambda hub: any(client.blocked for client in hub.clients)):
                caller.send(GET)
                answered += 1
                bed.wait_for(partial(has_answered, answered))
            for _ in range(20):
                caller.send(GET)
                threading.Event().wait(0.005)
            assert bed.run(partial(has_answered, answered))
            assert [caller.answer().status for _ in range(answered + 20)] == [200] * (answered + 20)
            caller.close()


def has_answered(number: int, hub: Hub) -> bool:
    return hub.backends["CORE"].codes.get("0000", 0) == number


def tunnel(bed: HubBed) -> Caller:
    caller = Caller(bed.port)
    caller.send(b"GET /CORE/x HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    return caller


@pytest.mark.parametrize("loop", LOOPS)
def test_in_a_tunnel_the_slower_side_sets_the_pace_too(loop: str) -> None:
    """What the client sent before it heard that the protocol was switched is not lost either."""
    go_on = threading.Event()
    got = bytearray()

    def script(connection: RawConnection) -> None:
        connection.read_request()
        threading.Event().wait(0.2)
        connection.send(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        assert go_on.wait(60)
        got.extend(connection.rest)
        while piece := connection.sock.recv(1 << 20):
            got.extend(piece)

    with raw_server(script) as server, hub_bed(f"CORE={server.url},{PATIENT}", loop=loop) as bed:
        with tunnel(bed) as caller:
            thread, sent = pushing(caller.sock, b"y" * MANY)
            caller.upto(b"\r\n\r\n")
            assert 65536 * 4 < settle(sent) < MANY * 3 // 4
            assert bed.run(held) < LITTLE
            go_on.set()
            thread.join(20)
            caller.sock.shutdown(socket.SHUT_WR)
            assert caller.ended()
        assert got == b"y" * MANY
