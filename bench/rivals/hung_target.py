"""A target that hangs on purpose: a path with ``/hang`` in it is never answered.

    python hung_target.py PORT

``/waiting`` answers how many requests hang now; any other path answers 1 KiB at once, so that a relay that knows a
single target can be measured too.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast


class Hung(asyncio.Protocol):
    """One connection."""

    waiting = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with nothing read and nothing kept waiting."""
        self._transport = cast(asyncio.Transport, transport)
        self._buffer = b""
        self._mine = 0

    def connection_lost(self, exc: Exception | None) -> None:
        """Those who waited here are gone."""
        Hung.waiting -= self._mine

    def data_received(self, data: bytes) -> None:
        """Requests without a body, one or many at once."""
        self._buffer += data
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            path = head.split(b" ", 2)[1]
            if b"/hang" in path:
                Hung.waiting += 1
                self._mine += 1
            else:
                self._answer(b"%d" % Hung.waiting if path == b"/waiting" else b"x" * 1024)

    def _answer(self, body: bytes) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def main() -> None:
    """Serve until the process is ended."""
    await asyncio.get_running_loop().create_server(Hung, "127.0.0.1", int(sys.argv[1]), backlog=4096)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
