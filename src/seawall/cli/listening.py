"""Runs one of the servers that misbehave, and says why it cannot listen."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from . import say

if TYPE_CHECKING:
    from seawall.faults.server import Server

__all__ = ["serve"]


def serve(server: Server, kind: str) -> int:
    """Serve until a signal ends it.

    Args:
        server: What to serve.
        kind: What it is: ``target``, ``partner``.

    Returns:
        The exit code: 0 after SIGTERM, 130 after SIGINT.

    Raises:
        say.Stop: It cannot listen there.
    """
    from seawall.faults.running import run

    try:
        return run(server, say.line)
    except BrokenPipeError:
        raise
    except OSError as error:
        if say.is_of_output(error):
            raise
        raise _cannot_listen(error, f"{server.host}:{server.port}", kind) from error


def _cannot_listen(error: OSError, place: str, kind: str) -> say.Stop:
    what = f"cannot listen on {place}"
    if error.errno == errno.EADDRINUSE:
        return say.Stop(
            what, "the port is in use", f"another {kind} may be running there; --port takes another", say.UNAVAILABLE
        )
    why = (error.strerror or str(error)).lower()
    if error.errno in (errno.EACCES, errno.EPERM):
        return say.Stop(what, why, "ports below 1024 need privileges; --port takes another", say.UNAVAILABLE)
    return say.Stop(what, why, "--host takes an address of this machine", say.UNAVAILABLE)
