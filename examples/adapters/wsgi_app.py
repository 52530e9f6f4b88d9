"""Flask, and plain WSGI, behind Seawall's middleware: ``gunicorn --chdir examples/adapters wsgi_app:app -b :8016``."""

import time
from collections.abc import Callable, Iterator
from typing import Any

from flask import Flask, Response

import seawall
from seawall.adapters.wsgi import Middleware, flask_errors

core = seawall.Target("CORE", breaker=seawall.CircuitBreaker(1, reset_timeout=30.0))


@core
def ask_core() -> str:
    raise ConnectionError("CORE is down")


def said() -> str:
    left = seawall.remaining()
    return "no budget\n" if left is None else f"{left:.1f} s left\n"


def counted() -> Iterator[bytes]:
    for number in range(20):
        yield b"%d " % number
        time.sleep(0.1)
    yield said().encode()


app = Flask(__name__)
app.wsgi_app = Middleware(app.wsgi_app, max_ms=10_000, default_ms=1_000)  # type: ignore[method-assign]
flask_errors(app)


@app.get("/left")
def left() -> str:
    return said()


@app.get("/slow")
def slow() -> str:
    while True:  # what computes asks now and then; a client gets remaining() as its time limit
        seawall.check()
        time.sleep(0.05)


@app.get("/balance")
def balance() -> Any:
    try:
        return ask_core()
    except ConnectionError as error:  # a refusal of Seawall's goes on to its handler
        return f"{error}\n", 502


@app.get("/ticks")
def ticks() -> Response:
    return Response(counted(), mimetype="text/plain")


def in_plain_wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    path, status, body = environ["PATH_INFO"], "200 OK", b""
    if path == "/ticks":
        start_response(status, [("Content-Type", "text/plain")])
        return counted()
    if path == "/slow":
        slow()
    try:
        body = said().encode() if path == "/left" else ask_core().encode()
    except ConnectionError as error:
        status, body = "502 Bad Gateway", f"{error}\n".encode()
    start_response(status, [("Content-Type", "text/plain")])
    return [body]


plain = Middleware(in_plain_wsgi, max_ms=10_000, default_ms=1_000)
