"""WSGI: each request has the time its caller gives it, and what Seawall refuses is answered as the hub would answer it.

::

    app.wsgi_app = seawall.adapters.wsgi.Middleware(app.wsgi_app, max_ms=10_000, default_ms=5_000)      # Flask
    seawall.adapters.wsgi.flask_errors(app)

A thread cannot be cut: the deadline is in force for guards, waits and clients in the app, in its body and in its ``close``,
and these end in time. A budget that the caller sent covers the body: of what is produced after its end only the first part
is handed on. ``default_ms`` covers the time until that first part.

All steps of one request run in one context of its own (:mod:`contextvars`), so that a body finds in each step what the
step before has set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import Context, copy_context
from http import HTTPStatus
from typing import Any, TypeAlias

from ..deadline import Deadline, current_deadline, detach
from ..errors import SeawallError
from .answers import Answer, answer
from .middleware import Around

__all__ = ["Middleware", "flask_errors"]

Environ: TypeAlias = dict[str, Any]
Write: TypeAlias = Callable[[bytes], object]
StartResponse: TypeAlias = Callable[..., Write]
App: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]


class Middleware(Around):
    """A WSGI app around ``app``, with a budget for each request.

    Refusals and time limits of Seawall's that come out of the app before the first byte of its body are answered as
    :func:`seawall.adapters.answers.answer` says; afterwards, and for all other errors, they go on to the server.

    Arguments as of :class:`~seawall.adapters.middleware.Around`. ``app`` is a WSGI application (PEP 3333).

    Cost: a look at each name of ``environ``, a copy of the context, and a step into it for each part of the body.
    """

    __slots__ = ()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request, as WSGI wants it."""
        with self.wire.open(environ) as deadline:
            context = copy_context()  # the deadline stays in force there
        whole = deadline is not None and self.wire.asked(environ)
        course = _Course(environ, start_response, context, deadline, whole)
        return context.run(course.run, self.app)


class _Course:
    """One answer on its way: the head is held back until the body begins, so that it can still become another one.

    To hand it on and replace it by ``exc_info`` is what the specification foresees; gunicorn (27) then sends the headers of
    both. Empty parts are held back as well: servers send the head with them, though they should not.
    """

    __slots__ = ("_begun", "_body", "_context", "_deadline", "_environ", "_head", "_parts", "_start", "_whole", "_write_on")

    def __init__(
        self, environ: Environ, start: StartResponse, context: Context, deadline: Deadline | None, whole: bool
    ) -> None:
        self._environ, self._start, self._context = environ, start, context
        self._deadline, self._whole = deadline, whole
        self._begun = False
        self._head: tuple[str, list[tuple[str, str]]] | None = None
        self._body: Any = None
        self._parts: Iterator[bytes] | None = None
        self._write_on: Write | None = None

    # -- for the app
    def run(self, app: App) -> Iterable[bytes]:
        """Call the app. Expects to be called in the context, as all that follows."""
        deadline = self._deadline
        if deadline is not None and deadline.expired:
            return self._instead(deadline.exceeded())
        try:
            self._body = app(self._environ, self._start_response)
        except Exception as error:
            return self._instead(error)
        if self._is_ready():
            self._begin()
            ready: Iterable[bytes] = self._body
            return ready
        return self

    def _is_ready(self) -> bool:
        """Whether the body runs none of the app's code: the server may count its parts, or let the system send the file."""
        kind, files = type(self._body), self._environ.get("wsgi.file_wrapper")
        return kind is list or kind is tuple or (isinstance(files, type) and kind is files)

    def _start_response(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Write:
        if self._begun:
            return self._start(status, headers, exc_info)  # which raises what it is given
        if self._head is not None and not exc_info:
            raise AssertionError("start_response was called already: a second time needs exc_info")
        self._head = status, headers
        return self._write

    def _write(self, data: bytes) -> None:
        if data:
            self._begin()
            if self._write_on is not None:
                self._write_on(data)

    # -- for the server
    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return self._context.run(self._next)

    def close(self) -> None:
        """Close the app's body, once."""
        body, self._body = self._body, None
        self._parts = iter(())
        if hasattr(body, "close"):
            self._context.run(body.close)

    def _next(self) -> bytes:
        late = self._deadline if self._begun and self._whole else None
        try:
            part = self._part()
        except StopIteration:
            self._begin()
            raise
        except Exception as error:
            [part] = self._instead(error)
            self._parts = iter(())
        if late is not None:
            late.check()  # not before the step: a body that was complete in time has its proper end
        self._begin()
        return part

    def _part(self) -> bytes:
        if self._parts is None:
            self._parts = iter(self._body)
        part = next(self._parts)
        while not (part or self._begun):
            part = next(self._parts)
        return part

    # -- the turning point
    def _begin(self) -> None:
        """Hand the head on: from here on no other one is possible."""
        if self._begun:
            return
        self._begun = True
        if self._head is not None:
            self._write_on = self._start(*self._head)
        if not self._whole and self._deadline is not None and current_deadline() is self._deadline:
            detach().__enter__()  # the context ends with the request: nobody has to put it back

    def _instead(self, error: Exception) -> list[bytes]:
        """The body of the answer where the app raised ``error``, which goes on where there is none."""
        problem = None if self._begun else answer(error)
        if problem is None:
            raise error
        self._head = _status(problem), problem.headers
        self._begin()
        return [b"" if self._environ.get("REQUEST_METHOD") == "HEAD" else problem.body]


def _status(problem: Answer) -> str:
    return f"{problem.status} {HTTPStatus(problem.status).phrase}"


def flask_errors(app: Any) -> None:
    """Let ``app`` answer Seawall's errors itself: Flask makes 500 of them before a middleware could see them.

    Args:
        app: A ``flask.Flask``. Handlers that you register for particular errors of Seawall win over this one.
    """

    def handler(error: SeawallError) -> Any:
        problem = answer(error)
        if problem is None:  # a setting that cannot work: a fault of the program, 500 as ever
            raise error
        return app.response_class(problem.body, problem.status, problem.headers)

    app.register_error_handler(SeawallError, handler)
