"""ASGI: each request has the time its caller gives it, and what Seawall refuses is answered as the hub would answer it.

::

    app.add_middleware(seawall.adapters.asgi.Middleware, max_ms=10_000, default_ms=5_000)      # Starlette, FastAPI

Whose time it is decides how far it reaches. A budget that the caller sent is the caller's patience: it covers the answer
to its last byte. ``default_ms`` is the service's own idea of how long an answer may take to begin; a download or a stream
of events that has begun may go on for as long as it likes.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, TypeAlias

from ..deadline import Deadline, current_deadline, detach
from ..drivers.ends import End
from .answers import Answer, answer
from .middleware import Around

__all__ = ["Middleware"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

START = "http.response.start"
LIFTED = 7 * 24 * 3600.0  # s; as good as no deadline, and a number that every client takes: sockets take 24 days at most
BODIES = frozenset({"http.response.body", "http.response.pathsend", "http.response.zerocopysend"})


class Middleware(Around):
    """An ASGI app around ``app``, with a budget for each HTTP request; websockets and the lifespan pass untouched.

    What the app awaits is cancelled when its time is over. Before the answer has begun the caller gets 504, or for a
    refusal what :func:`seawall.adapters.answers.answer` says; afterwards the error goes on to the server, which breaks the
    connection off. Errors that are not Seawall's go on as they are, and so does a cancellation by the server.

    Arguments as of :class:`~seawall.adapters.middleware.Around`. ``app`` is an ASGI 3 application that runs under asyncio,
    with uvloop or without.

    Raises:
        RuntimeError: At a request, under another loop library than asyncio.

    Cost: a look at the headers; for a request with a budget a timer of the loop, and two small objects.
    """

    __slots__ = ()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI wants it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        _only_asyncio()
        problem = await self._served(scope, receive, send)
        if problem is not None:  # outside of the budget: it is spent
            await _send(problem, send, scope.get("method") == "HEAD")

    async def _served(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> Answer | None:
        """Let the app answer; what to answer instead, where it could not."""
        headers: Iterable[tuple[bytes, bytes]] = list(scope["headers"])
        with self.wire.open(headers) as deadline:
            if deadline is not None and deadline.expired:
                return answer(deadline.exceeded())
            course = _Course(send, deadline, deadline is not None and self.wire.asked(headers))
            try:
                await self.app(scope, receive, course.send)
            except BaseException as error:
                return course.instead(error)
            course.over(None)
            return None


class _Course:
    """One answer on its way: how far it has come, and what ends it."""

    __slots__ = ("_begun", "_deadline", "_end", "_send", "_whole")

    def __init__(self, send: Send, deadline: Deadline | None, whole: bool) -> None:
        self._send, self._deadline, self._whole = send, deadline, whole
        self._begun = False
        self._end = None if deadline is None else End(deadline.remaining())

    async def send(self, message: Message) -> None:
        """The server's ``send``, watched."""
        kind = message["type"]
        if kind == START:
            self._begun = True
            if not self._whole:
                self._lift()
        await self._send(message)
        if kind in BODIES and not message.get("more_body", False):
            self._lift()  # what an app does after its answer, in the background, is not the caller's any more

    def _lift(self) -> None:
        """The time is not limited any more.

        Only the timer is stopped: ``End.over`` is said when the app has returned, by the task that may have been cancelled.
        The deadline is taken from the context of whoever sends, unless it has another one of its own; tasks that have it
        in theirs (a body behind Starlette's ``BaseHTTPMiddleware``) see it far away.
        """
        deadline = self._deadline
        if self._end is not None and deadline is not None:
            self._end.disarm()
            deadline.at = deadline.clock() + LIFTED
            if current_deadline() is deadline:
                detach().__enter__()

    def over(self, error: BaseException | None) -> bool:
        """The app has returned, or raised ``error``; whether that was the end of its time."""
        return self._end is not None and self._end.over(error)

    def instead(self, error: BaseException) -> Answer | None:
        """The answer where the app raised ``error``, which goes on where there is none."""
        late = self._deadline.exceeded() if self.over(error) and self._deadline is not None else None
        problem = None if self._begun else answer(late or error)
        if problem is not None:
            return problem
        if late is not None:
            raise late from error
        raise error


async def _send(problem: Answer, send: Send, head: bool) -> None:
    headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers]
    await send({"type": START, "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else problem.body, "more_body": False})


def _only_asyncio() -> None:
    """At each request, not only at those with a budget: a service should not fail first when a caller sends one."""
    try:
        get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "seawall.adapters.asgi.Middleware cancels by asyncio: run the server on asyncio or uvloop, not on another loop"
        ) from None
