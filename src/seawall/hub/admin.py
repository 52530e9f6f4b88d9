"""The admin port: is it alive, does it take work, what does it look like. It reads, and changes nothing.

``/livez`` is 200 whenever the loop runs, whatever the targets do: an open circuit is no reason to restart a hub.
``/readyz`` is 200 while the hub takes new work. ``/api/v1/snapshot`` and ``/metrics`` show every target; they are made
in steps of a millisecond, one page at a time, so that a thousand targets and a dozen viewers hold up no call.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING, Any

from .admin_host import HostCheck
from .answers import head_of, problem
from .head import BadHead, RequestHead, parse_request
from .listen import Listener
from .metrics import CONTENT_TYPE, metric_pieces
from .snapshot import json_pieces
from .wheel import Timed

if TYPE_CHECKING:
    from .server import Hub

__all__ = ["PATHS", "AdminDoor"]

log = logging.getLogger("seawall.hub")
MOST = 32  # connections at once; they live on the descriptors the hub keeps in reserve
STEP = 0.001  # s of work on a page before calls get their turn
LINGER_SECONDS = 2.0  # how long what a client still sends is thrown away after our last answer
JSON = b"application/json"
_SAFE = b"X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
_ALLOW = b"Allow: GET, HEAD\r\n"
_CODES = {431: "E431", 408: "E408"}
_PAGES: dict[bytes, tuple[bytes, Callable[[Hub], Iterator[bytes]]]] = {
    b"/api/v1/snapshot": (JSON, json_pieces),
    b"/metrics": (CONTENT_TYPE, metric_pieces),
}
PATHS = ("/livez", "/readyz", *(path.decode() for path in _PAGES))
"""What may be asked for, by GET or HEAD."""

# BUSY: nothing is read meanwhile, because a page is being made, an answer is not being taken, or requests are in wait.
HEAD, BUSY, LINGER, CLOSED = range(4)


class AdminDoor:
    """Listens for operators, orchestrators and scrapers. Made and closed on the hub's loop, after and before the hub.

    Args:
        hub: What it shows.
        sock: A listening, non-blocking socket; it is closed with the door.
    """

    def __init__(self, hub: Hub, sock: socket.socket) -> None:
        self.hub = hub
        admin = hub.settings.admin
        self.meant_for_us = HostCheck(sock.getsockname(), admin.host if admin is not None else "")
        self.clients: dict[AdminClient, None] = {}
        self.one_page = asyncio.Lock()
        self._arriving: set[asyncio.Task[None]] = set()
        self._closed = False
        self._listener = Listener(sock, hub.loop, self._take)
        self.name = self._listener.name
        """The address, as it is written in ``--admin``, with the port the system chose."""

    def close(self) -> None:
        """End it at once: the listener and every connection. Safe to repeat."""
        if self._closed:
            return
        self._closed = True
        self._listener.close()
        for task in self._arriving:
            task.cancel()
        for client in list(self.clients):
            client.end()

    def gone(self, client: AdminClient) -> None:
        """A connection has ended."""
        self.clients.pop(client, None)
        self.hub.wheel.drop(client)
        if not self._closed and self._has_room():
            self._listener.resume()

    def _has_room(self) -> bool:
        return len(self.clients) + len(self._arriving) < MOST

    def _take(self, sock: socket.socket) -> bool:
        task = self.hub.loop.create_task(self._adopt(sock))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)
        if not self._has_room():
            spare = [client for client in self.clients if client.task is None]
            if spare:  # who left connections open must not keep a health check out
                min(spare, key=lambda client: (not client.idle(), client.due)).end()
        return self._has_room()

    async def _adopt(self, sock: socket.socket) -> None:
        try:
            await self.hub.loop.connect_accepted_socket(lambda: AdminClient(self), sock)
        except (OSError, asyncio.CancelledError):
            sock.close()  # it had gone again already, or the hub has


class AdminClient(asyncio.Protocol, Timed):
    """One connection. It takes one request a turn of the loop, and the next only when the answer has left."""

    __slots__ = ("blocked", "buffer", "door", "hub", "state", "task", "transport", "unsent")
    transport: asyncio.Transport

    def __init__(self, door: AdminDoor) -> None:
        Timed.__init__(self)
        self.door, self.hub = door, door.hub
        self.buffer = b""
        self.state = HEAD
        self.blocked = False
        self.unsent = 0
        self.task: asyncio.Task[None] | None = None

    # -- what asyncio calls
    def connection_made(self, transport: Any) -> None:
        """Somebody has connected."""
        self.transport = transport
        self.door.clients[self] = None
        self._await_request()

    def connection_lost(self, error: Exception | None) -> None:
        """They have gone."""
        self.state = CLOSED
        self.door.gone(self)
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request; after our last answer nobody reads them."""
        if self.state != LINGER:
            self.buffer += data
        if self.state == HEAD:
            self._read_request()

    def pause_writing(self) -> None:
        """The answer is not being taken."""
        self.blocked = True

    def resume_writing(self) -> None:
        """It has been taken."""
        self.blocked = False
        self._next_turn()

    # -- requests
    def _await_request(self) -> None:
        self.state = HEAD
        self.transport.resume_reading()
        self.hub.wheel.set(self, self.hub.now() + self.hub.settings.idle_timeout)

    def _hold(self, due: float) -> None:
        self.state = BUSY
        self.transport.pause_reading()
        self.hub.wheel.set(self, due)

    def _next_turn(self) -> None:
        if self.state == BUSY and self.task is None and not self.blocked and not self.transport.is_closing():
            self._await_request()
            if self.buffer:
                self._read_request()

    def _read_request(self) -> None:
        try:
            head = parse_request(self.buffer, self.hub.settings.max_head)
        except BadHead as bad:
            self._refuse(bad.status, bad.why)
            return
        if head is None:
            self.hub.wheel.set(self, min(self.due, self.hub.now() + self.hub.settings.head_timeout))
        else:
            self.buffer = self.buffer[head.end :]
            self._answer(head)

    def _answer(self, head: RequestHead) -> None:
        """Whether it is meant for us comes first: before that nothing is looked up and nothing is read."""
        if not head.host:
            self._refuse(400, "The request has no Host.")
        elif not self.door.meant_for_us(head.host):
            why = "The Host is neither a loopback name nor the address this port is bound to: ask for localhost."
            self._refuse(421, why, title="not meant for this port")
        elif head.method not in (b"GET", b"HEAD"):
            detail = f"This port can only be read: GET or HEAD {', '.join(PATHS)}."
            self._problem(head, "E400", detail, _ALLOW, status=405, title="method not allowed")
        else:
            self._show(head, head.target.partition(b"?")[0])

    def _show(self, head: RequestHead, path: bytes) -> None:
        if path == b"/livez":
            self._reply(head, 200, JSON, b'{"live": true}\n')
        elif path == b"/readyz":
            ready = self.hub.ready
            self._reply(head, 200 if ready else 503, JSON, b'{"ready": %b}\n' % (b"true" if ready else b"false"))
        elif path in _PAGES:
            self._hold(inf)
            self.task = self.hub.loop.create_task(self._make_page(head, *_PAGES[path]))
        else:
            self._problem(head, "E404", f"Here are only {', '.join(PATHS)}.", title="no such page", paths=PATHS)

    async def _make_page(
        self, head: RequestHead, content_type: bytes, pieces: Callable[[Hub], Iterator[bytes]]
    ) -> None:
        try:
            async with self.door.one_page:
                body = await _in_steps(pieces(self.hub))
        except Exception:
            log.exception("the admin port could not make %s", head.target.decode("latin-1"))
            self.task = None
            self._problem(head, "E999", "This page could not be made; the hub's log says why.")
        else:
            self.task = None
            self._reply(head, 200, content_type, body)

    # -- answers
    def _refuse(self, status: int, why: str, **more: Any) -> None:
        """Answer what is not understood or not meant for us, and end."""
        answer, body = problem(_CODES.get(status, "E400"), why, status=status, extra=_SAFE, close=True, **more)
        self._send(answer + body, False)

    def _problem(self, head: RequestHead, code: str, detail: str, extra: bytes = b"", **more: Any) -> None:
        keep = _may_go_on(head)
        answer, body = problem(code, detail, extra=_SAFE + extra, close=not keep, **more)
        self._send(answer if head.method == b"HEAD" else answer + body, keep)

    def _reply(self, head: RequestHead, status: int, content_type: bytes, body: bytes) -> None:
        keep = _may_go_on(head)
        extra = _SAFE if head.v11 or not keep else _SAFE + b"Connection: keep-alive\r\n"
        answer = head_of(status, len(body), content_type, extra, close=not keep)
        self._send(answer if head.method == b"HEAD" else answer + body, keep)

    def _send(self, answer: bytes, keep: bool) -> None:
        if self.transport.is_closing():
            return
        self.transport.write(answer)
        now, settings = self.hub.now(), self.hub.settings
        if not keep:
            self._linger(now)
        elif self.blocked or self.buffer:
            self._hold(now + settings.body_gap)
            self.hub.loop.call_soon(self._next_turn)
        else:
            self._await_request()

    def _linger(self, now: float) -> None:
        """Close our side alone: closing with bytes unread would reset the connection, and the answer could be lost."""
        self.state = LINGER
        self.buffer = b""
        self.transport.write_eof()
        self.transport.resume_reading()
        self.hub.wheel.set(self, now + LINGER_SECONDS)

    def idle(self) -> bool:
        """Whether nothing is under way here."""
        return self.state == HEAD and not self.buffer and not self.transport.get_write_buffer_size()

    def end(self) -> None:
        """Close without waiting for anything."""
        self.transport.abort()

    # -- time
    def on_due(self, now: float) -> None:
        """Nothing has come for too long: no request, not the rest of a head, no sign that the answer is being taken."""
        if self.transport.is_closing():
            return
        before, self.unsent = self.unsent, self.transport.get_write_buffer_size()
        if self.unsent and self.unsent != before:
            self.hub.wheel.set(self, now + self.hub.settings.body_gap)
        elif self.state == HEAD and self.buffer:
            self._refuse(408, f"No whole request head within {self.hub.settings.head_timeout:g} s.")
        else:
            self.end()


def _may_go_on(head: RequestHead) -> bool:
    """Whether the next request may follow: nothing is asked with a body here, so none is read."""
    return head.keep_alive and not head.length and not head.chunked


async def _in_steps(pieces: Iterator[bytes]) -> bytes:
    """The pieces in one, letting calls have their turn after each :data:`STEP` of work."""
    made, began = [], time.perf_counter()  # not the loop's time: uvloop's is in whole milliseconds
    for piece in pieces:
        made.append(piece)
        if time.perf_counter() - began >= STEP:
            await asyncio.sleep(0)
            began = time.perf_counter()
    return b"".join(made)
