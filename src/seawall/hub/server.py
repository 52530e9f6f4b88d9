"""The hub as a whole: starts, lets clients in, drains, ends."""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import logging
import os
import resource
import secrets
import signal
import socket
import time
from functools import partial
from typing import TYPE_CHECKING

from ..events import Event
from .answers import head_of, problem
from .backend import Backend
from .client import HEAD, TUNNEL, Client
from .doors import Doors
from .exchange import Exchange
from .listen import Listener, open_listener
from .logfile import LogFile, breaker_line
from .relayed import Relayed
from .settings import HubSettings, arithmetic
from .timing import times
from .tx import TxExchange, TxRequest
from .wheel import Wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ghost import Ghost
    from .head import RequestHead

__all__ = ["Hub", "run", "serve"]

log = logging.getLogger("seawall.hub")
RESERVED = 64  # descriptors kept for logs, the admin port and whatever the loop needs
HANDSHAKE = 0.05  # s; a handshake that had begun when we went deaf has ended by then, but for the slowest lines
SETTLED = 0.25  # s; a client idle for that long has nothing on its way to us


class Hub:
    """Everything one process relays. One event loop, and its thread only."""

    def __init__(
        self, settings: HubSettings, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.settings, self.loop = settings, loop
        self.now = clock  # not loop.time, which on uvloop is in whole milliseconds
        self.wheel = Wheel(loop)
        self.backends = {target.name: Backend(target, loop, clock) for target in settings.targets}
        self.doors = Doors(settings, self.backends)
        self.clients: dict[Client, None] = {}
        self.ghosts: set[Ghost] = set()
        self.arriving = 0
        self.listeners: list[Listener] = []
        self.draining = False
        self.ready = False
        self.bad_budgets = self.ignored_budgets = 0
        self.times_all = settings.server_timing == "all"
        for backend in self.backends.values():
            backend.times = times(backend.settings, settings.server_timing)
        self.refused: dict[str, int] = {}
        self.started_at = time.time()
        self.most = settings.max_connections or _room_for_clients(settings)
        self.breaker_log = LogFile(settings.breaker_log)
        self.access_log = LogFile(settings.access_log) if settings.access_log else None
        self._id_prefix = secrets.token_hex(6).encode() + b"-%x"
        self._ids = itertools.count(1)
        self._sweeper: asyncio.TimerHandle | None = None

    # -- life
    def open_logs(self) -> None:
        """Open the logs, so that what cannot be written is said at start; :class:`OSError` then."""
        self.breaker_log.open()
        if self.access_log is not None:
            self.access_log.open()
        for backend in self.backends.values():
            backend.target.listen(self._on_event)

    def listen(self, sockets: list[socket.socket]) -> None:
        """Take clients from ``sockets``, one for each address of the settings."""
        self.listeners = [
            Listener(sock, self.loop, partial(self._take, address.budget == "heed"))
            for sock, address in zip(sockets, self.settings.listen, strict=True)
        ]
        self.ready = True
        self._sweep()

    async def drain(self) -> int:
        """Lose nobody: serve what is here and in the backlog, then end. How many had to be cut at the end."""
        self.ready = False
        if self.settings.drain_delay:
            await asyncio.sleep(self.settings.drain_delay)
        self.draining = True
        await self._empty_backlogs()
        began = self.now()
        end = began + self.settings.drain_timeout
        while (self.clients or self.ghosts or self.arriving) and self.now() < end:
            if self.now() >= began + SETTLED:
                for client in [c for c in self.clients if c.state == HEAD and c.idle()]:
                    client.transport.close()
            await asyncio.sleep(0.02)
        cut = [client for client in self.clients if client.exchange is not None]
        for client in cut:
            exchange = client.exchange
            if exchange is not None and client.state != TUNNEL:
                exchange.fail("E908", "the hub is draining and waits no longer")
        await asyncio.sleep(0)
        return len(cut)

    async def _empty_backlogs(self) -> None:
        for listener in self.listeners:
            listener.deafen()
        settled = self.loop.time() + HANDSHAKE
        while sum(listener.accept() for listener in self.listeners) or self.loop.time() < settled:
            await asyncio.sleep(0.005)
        for listener in self.listeners:
            listener.close()

    async def close(self) -> None:
        """End everything at once."""
        for listener in self.listeners:
            listener.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for client in list(self.clients):
            client.transport.close()
        for backend in self.backends.values():
            backend.close()
        await self._see_them_off(0.05)
        for client in list(self.clients):
            client.transport.abort()
        self.wheel.close()
        self.breaker_log.close()
        if self.access_log is not None:
            self.access_log.close()

    async def _see_them_off(self, seconds: float) -> None:
        """Let what was closed end, and with it what runs on for nobody."""
        end = self.loop.time() + seconds
        while self.loop.time() < end:
            for ghost in list(self.ghosts):
                if ghost.exchange is not None:
                    ghost.exchange.fail("E908", "the hub ends")
            if not self.clients and not any(backend.connections for backend in self.backends.values()):
                return
            await asyncio.sleep(0.001)

    # -- clients
    def _take(self, heeds_budgets: bool, sock: socket.socket) -> bool:
        self.arriving += 1
        self.loop.create_task(self._adopt(sock, heeds_budgets))
        return self._has_room()

    async def _adopt(self, sock: socket.socket, heeds_budgets: bool) -> None:
        try:
            await self.loop.connect_accepted_socket(lambda: Client(self, heeds_budgets), sock)
        except OSError:
            sock.close()  # it had gone again already
            self.arriving -= 1

    def _has_room(self) -> bool:
        """Whether one more client may come. At the cap it may where somebody is idle, and then the longest idle one goes.

        Who is idle only since a moment ago may have its next request on the way. Cost: nothing below the cap.
        """
        crowd = len(self.clients) + self.arriving
        if crowd < self.most:
            return True
        settled = self.now() + self.settings.idle_timeout - SETTLED
        idle = [c for c in self.clients if c.state == HEAD and not c.buffer and c.due <= settled]
        if idle and crowd > self.most:
            min(idle, key=lambda client: client.due).transport.abort()  # close() would wait for one that does not read
            return False  # until it is gone
        return bool(idle)

    def gone(self, client: Client) -> None:
        """A client's connection has ended."""
        self.clients.pop(client, None)
        self.wheel.drop(client)
        self._let_in()

    def _let_in(self) -> None:
        if not self.draining and self._has_room():
            for listener in self.listeners:
                listener.resume()

    # -- requests
    def open(self, client: Client, head: RequestHead, now: float) -> Exchange | TxRequest | None:
        """What takes the request from here; ``None`` when it has been answered already."""
        way = self.doors.way(head.target)
        if way is not None:
            backend, path = way
            return TxRequest(client, head, now) if backend is None else Relayed(client, head, backend, path, now)
        if self.doors.health is not None and head.target.partition(b"?")[0] == self.doors.health:
            self._answer_health(client, head)
            return None
        self.count_refused("E404")
        detail = f"this path names no target: /NAME/... with one of {', '.join(self.doors.names)}"
        keep = self._may_go_on(head)
        answer, body = problem("E404", detail, request_id=head.request_id, close=not keep)
        client.reply(answer, b"" if head.method == b"HEAD" else body, keep)
        return None

    def _answer_health(self, client: Client, head: RequestHead) -> None:
        body = b'{"ready": %b}\n' % (b"true" if self.ready else b"false")
        keep = self._may_go_on(head)
        code = b"X-Seawall-Code: %b\r\n" % (b"0000" if self.ready else b"E908")
        answer = head_of(200 if self.ready else 503, len(body), b"application/json", code, close=not keep)
        client.reply(answer, b"" if head.method == b"HEAD" else body, keep)

    def _may_go_on(self, head: RequestHead) -> bool:
        """Whether a connection outlives an answer given at the head. HTTP/1.0 would have to be told so, for little."""
        return head.keep_alive and head.v11 and not head.chunked and not head.length and not self.draining

    def new_request_id(self) -> bytes:
        """An id for a request that came without: random for the process, counted within it."""
        return self._id_prefix % next(self._ids)

    # -- evidence
    def count_refused(self, code: str) -> None:
        """A request ended before it had a target."""
        self.refused[code] = self.refused.get(code, 0) + 1

    def access_line(self, exchange: Exchange, seconds: float) -> str:
        """One JSON object a line."""
        request = exchange.request
        return json.dumps(
            {
                "time": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime()),
                "target": exchange.backend.name,
                "code": exchange.code,
                "status": exchange.status,
                "ms": round(seconds * 1000, 3),
                "door": "tx" if isinstance(exchange, TxExchange) else "path",
                "method": request.method.decode("latin-1"),
                "path": request.target.partition(b"?")[0].decode("latin-1"),  # queries carry secrets
                "client": exchange.client.peer.decode("latin-1"),
                "request_id": (exchange.request_id or b"").decode("latin-1"),
            }
        )

    def _on_event(self, event: Event) -> None:
        self.breaker_log.write(breaker_line(event.target, event.old, event.new))
        log.warning("%s: %s -> %s (%s)", event.target, event.old, event.new, event.reason)

    def _sweep(self) -> None:
        now = self.now()
        for backend in self.backends.values():
            backend.sweep(now)
        self._let_in()  # at the cap somebody may have become idle since
        self._sweeper = self.loop.call_later(1.0, self._sweep)


def _room_for_clients(settings: HubSettings) -> int:
    """How many clients the descriptor limit leaves room for, once it has been raised as far as it goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    except (OSError, ValueError):
        pass
    if soft == resource.RLIM_INFINITY:
        soft = 1 << 20
    return max(16, soft - RESERVED - sum(target.max_inflight for target in settings.targets))


async def serve(settings: HubSettings) -> int:
    """Run a hub until SIGTERM or SIGINT; the exit code: 0, or 1 when requests had to be cut."""
    loop = asyncio.get_running_loop()
    hub = Hub(settings, loop)
    hub.open_logs()
    sockets = [open_listener(address) for address in settings.listen]
    ended: asyncio.Queue[signal.Signals] = asyncio.Queue()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.put_nowait, number)
    admin = None
    if settings.admin is not None:
        from .admin import AdminDoor

        admin = AdminDoor(hub, open_listener(settings.admin))
    hub.listen(sockets)
    for target in settings.targets:
        print(arithmetic(target), flush=True)
    where = ", ".join(listener.name for listener in hub.listeners)
    print(f"hub listening on {where}" + (f"; admin on {admin.name}" if admin else ""), flush=True)
    gc.collect()
    gc.freeze()  # what lives as long as the process need not be looked through by each collection
    await ended.get()
    code = await _drain(hub, ended)
    if admin is not None:
        admin.close()
    await hub.close()
    return code


async def _drain(hub: Hub, ended: asyncio.Queue[signal.Signals]) -> int:
    """Drain until done, or until a second signal."""
    draining = asyncio.ensure_future(hub.drain())
    again = asyncio.ensure_future(ended.get())
    await asyncio.wait((draining, again), return_when=asyncio.FIRST_COMPLETED)
    again.cancel()
    if not draining.done():
        draining.cancel()
        print("ended at once by a second signal", flush=True)
        return 1
    cut = draining.result()
    if cut:
        print(f"drained; {cut} requests did not end within {hub.settings.drain_timeout:g} s and were cut", flush=True)
    return 1 if cut else 0


def run(settings: HubSettings) -> int:
    """:func:`serve` on uvloop where it is installed, else on asyncio's own loop."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(serve(settings))
    if os.environ.get("SEAWALL_LOOP") == "asyncio":
        return asyncio.run(serve(settings))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(settings))
