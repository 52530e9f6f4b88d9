"""Listening sockets, and taking connections from them one batch at a time.

The loop's own servers are not used: when descriptors run out, libuv accepts and closes what is waiting, and a client is
dropped that only had to wait. Here accepting pauses instead, and what waits in the backlog is taken up later.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import os
import socket
import stat
import struct
import sys
from collections.abc import Callable

from .settings import Address

__all__ = ["Listener", "open_listener"]

log = logging.getLogger("seawall.hub")
BACKLOG = 4096  # as nginx and HAProxy are commonly set for load; the kernel cuts it to net.core.somaxconn
BATCH = 64  # connections taken before other work of the loop gets its turn
PAUSE = 0.1  # s, after descriptors ran out
_ATTACH_FILTER = 26  # SO_ATTACH_FILTER, which the socket module does not name
_DROP_SYN = (  # a BPF program over a TCP segment: drop what has SYN set without ACK
    (0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF),
)  # fmt: skip
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    """One listening socket. ``take`` is called with each connection, and answers whether there is room for more."""

    def __init__(
        self, sock: socket.socket, loop: asyncio.AbstractEventLoop, take: Callable[[socket.socket], bool]
    ) -> None:
        self.sock, self._loop, self._take = sock, loop, take
        self._paused = True
        self._said = False
        self._timer: asyncio.TimerHandle | None = None
        self.resume()

    @property
    def name(self) -> str:
        """The address, as it is written in ``--listen``."""
        where = self.sock.getsockname()
        if isinstance(where, tuple):
            return f"[{where[0]}]:{where[1]}" if ":" in where[0] else f"{where[0]}:{where[1]}"
        return f"unix:{where}"

    def pause(self) -> None:
        """Leave what connects in the backlog."""
        if not self._paused:
            self._paused = True
            self._loop.remove_reader(self.sock)

    def resume(self) -> None:
        """Take connections again."""
        if self._paused and self.sock.fileno() >= 0:
            self._paused = False
            self._loop.add_reader(self.sock, self._on_readable)

    def deafen(self) -> None:
        """Let no new handshake begin, so that the backlog can be emptied for good before :meth:`close`.

        A connection that is made between the last look into the backlog and the closing would be reset, and its request
        lost; measured under load, once in ten ends. Who comes now is refused by the closed port at the second try.
        """
        if sys.platform == "linux" and self.sock.family != socket.AF_UNIX and self.sock.fileno() >= 0:
            code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in _DROP_SYN))
            try:
                self.sock.setsockopt(
                    socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", len(_DROP_SYN), ctypes.addressof(code))
                )
            except OSError:
                pass  # not allowed in this container: the gap stays, a few microseconds wide

    def accept(self, most: int = BATCH) -> int:
        """Take what waits, up to ``most``; how many that were."""
        for taken in range(most):
            try:
                sock, _ = self.sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return taken
            except OSError as error:
                if error.errno in _NO_DESCRIPTORS:
                    self._out_of_descriptors(error)
                    return taken
                raise
            self._said = False
            sock.setblocking(False)
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if not self._take(sock):
                self.pause()
                return taken + 1
        return most

    def close(self) -> None:
        """Stop listening; the path of a Unix socket goes with it. Safe to repeat."""
        if self.sock.fileno() < 0:
            return
        self.pause()
        if self._timer is not None:
            self._timer.cancel()
        where = self.sock.getsockname()
        self.sock.close()
        if isinstance(where, str) and where:
            try:
                os.unlink(where)
            except OSError:
                pass

    def _on_readable(self) -> None:
        try:
            self.accept()
        except OSError:
            log.exception("accepting on %s failed; trying again", self.name)

    def _out_of_descriptors(self, error: OSError) -> None:
        if not self._said:
            self._said = True
            log.warning(
                "no descriptors left on %s (%s): new clients wait in the backlog. Raise the limit (ulimit -n) or lower "
                "--max-connections", self.name, error.strerror,
            )  # fmt: skip
        self.pause()
        self._timer = self._loop.call_later(PAUSE, self.resume)


def open_listener(address: Address) -> socket.socket:
    """A listening, non-blocking socket; :class:`OSError` with its reason and the address where that cannot be had."""
    try:
        sock = _bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        error.filename = str(address)
        raise
    sock.setblocking(False)
    return sock


def _bind(address: Address) -> socket.socket:
    if address.kind == "unix":
        return _open_unix(address.path)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address.host, address.port))
    except OSError:
        sock.close()
        raise
    return sock


def _open_unix(path: str) -> socket.socket:
    """Bind to ``path``; a socket that a dead process left there is replaced, one in use is not."""
    try:
        stale = stat.S_ISSOCK(os.stat(path).st_mode)
    except FileNotFoundError:
        stale = False
    if stale:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(0.5)
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
            except OSError:
                pass  # somebody listens, if too busy to answer; binding says so
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
    except OSError:
        sock.close()
        raise
    return sock
