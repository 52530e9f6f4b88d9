"""Places on 127.0.0.1 where nobody answers, each in its own way: refusing, a black hole, silent. They need no network."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator

__all__ = ["black_hole", "refusing", "silent"]

HOST = "127.0.0.1"
QUEUE_FULL_AFTER = 0.05  # s; on loopback a connection stands within microseconds, or its first packet was dropped
MOST_FILLERS = 300  # systems differ in what they make of a queue of length 0; 128 is the longest default


@contextlib.contextmanager
def refusing() -> Iterator[int]:
    """A port where connections are refused, and which nobody else can take meanwhile."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))  # bound, and not listening
        yield sock.getsockname()[1]


@contextlib.contextmanager
def silent() -> Iterator[int]:
    """A port where connections stand, requests are taken, and no byte ever comes back.

    The system completes the connection and buffers what is sent; that nobody accepts it is seen by nobody.
    """
    with socket.create_server((HOST, 0), backlog=128) as listener:
        yield listener.getsockname()[1]


@contextlib.contextmanager
def black_hole() -> Iterator[int]:
    """A port where an attempt to connect is answered neither with yes nor with no: its queue is full.

    The system drops what asks to come into a full queue, as a firewall or a dead host would, and whoever asks goes on
    asking until its own limit.

    Raises:
        OSError: The queue does not fill up on this system.

    Cost: a twentieth of a second, which is how long it takes to see that the queue is full.
    """
    with contextlib.ExitStack() as held:
        listener = held.enter_context(socket.socket())
        listener.bind((HOST, 0))
        listener.listen(0)
        for _ in range(MOST_FILLERS):
            filler = held.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(listener.getsockname())
            if not _settled(filler):
                break
        else:
            raise OSError(f"after {MOST_FILLERS} connections that nobody accepts the queue of this system is not full")
        yield listener.getsockname()[1]


def _settled(sock: socket.socket) -> bool:
    """Whether the connection stands, or was refused."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    return bool(poll.poll(QUEUE_FULL_AFTER * 1000))
