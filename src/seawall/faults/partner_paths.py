"""What each path of the partner does with a request. No sockets here, and no time: only how long it is to take."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeAlias

from .query import BadParameter, Query, whole
from .wire import Answer, BadRequest, Request
from .words import LONGEST_MS, nearest, shown

__all__ = ["PATHS", "Deed", "Drip", "Flaky", "Interim", "Later", "asked", "budget_of", "not_understood"]

PATHS = ("/slow?ms=N", "/status/N", "/drip?bytes=N&every_ms=M", "/flaky?fail=K", "/budget?ms=N", "/_stats")
MARGIN_MS = 10  # an answer that gives up is sent that long before the caller stops listening
MOST_BYTES = 1 << 20  # of a dripping body
BUDGET_DIGITS = 12  # of milliseconds: thirty years; what is longer is no budget but a mistake


class Later(NamedTuple):
    """An answer after some seconds; it is made from the milliseconds that really passed."""

    seconds: float
    answer: Callable[[int], Answer]


class Drip(NamedTuple):
    """A head at once, then ``size`` bytes, one each ``every`` seconds."""

    size: int
    every: float


class Interim(NamedTuple):
    """A status from 100 to 199, which no answer can end with, and the answer behind it."""

    status: int
    answer: Answer


Deed: TypeAlias = Answer | Later | Drip | Interim


class Flaky:
    """How often each key was asked, and by what chance it fails.

    The chance of one request hangs on the seed, the key and how often the key was asked before, and on nothing else: two
    runs with one seed fail alike, in whatever order callers of different keys come in.

    Args:
        seed: Any number.
    """

    MOST_KEYS = 10_000
    """Of more keys, the one that was not asked for the longest time begins anew."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._asked: OrderedDict[str, int] = OrderedDict()

    def count(self, key: str) -> int:
        """The number of this request among those with the key, from 1."""
        number = self._asked.pop(key, 0) + 1
        self._asked[key] = number
        if len(self._asked) > self.MOST_KEYS:
            self._asked.popitem(last=False)
        return number

    def chance(self, key: str, number: int) -> float:
        """A number from 0 to 1, 1 excluded."""
        return Random(f"{self.seed} {number} {key}").random()  # of a text: the same on every Python


def budget_of(request: Request) -> int | str | None:
    """The ``X-Budget-Ms`` a request came with.

    Returns:
        Milliseconds, of several numbers the smallest; the text as it came where there is no number in digits; ``None``
        without the header.
    """
    text = request.headers.get("x-budget-ms")
    if text is None:
        return None
    words = [word.strip(" \t") for word in text.split(",")]
    numbers = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) <= BUDGET_DIGITS]
    return min(numbers, default=text)


def not_understood(error: BadRequest) -> Answer:
    """The answer to bytes that are no request."""
    return Answer(error.status, {"status": error.status, "detail": error.detail})


def asked(request: Request, flaky: Flaky) -> tuple[str, Deed]:
    """Where a request is counted, and what it makes the partner do."""
    path = request.path
    place = "/status" if path.startswith("/status/") else path
    known = {"/slow": _slow, "/status": _status, "/drip": _drip, "/flaky": _flaky, "/budget": _budget}
    if place not in known:
        names = [name.partition("?")[0] for name in PATHS]
        detail = f"there is no path {shown(path)}{nearest(path, names)}"
        return "other", Answer(404, {"status": 404, "detail": detail, "paths": PATHS})
    try:
        deed = known[place](request, Query(request.query), flaky)
    except BadParameter as error:
        return place, Answer(400, {"status": 400, "parameter": error.name, "detail": str(error)})
    return path if place == "/status" else place, deed


def _slow(request: Request, query: Query, flaky: Flaky) -> Deed:
    ms = query.whole("ms", 0, LONGEST_MS)
    query.done()
    return Later(ms / 1000, lambda slept: Answer(200, {"path": "/slow", "ms": ms, "slept_ms": slept}))


def _retry_after(query: Query) -> tuple[tuple[str, str], ...]:
    """Seconds, a date, or nonsense: what callers make of it is what the experiment is about."""
    text = query.text("retry_after")
    return () if text is None else (("Retry-After", text),)


def _status(request: Request, query: Query, flaky: Flaky) -> Deed:
    status = whole("status", request.path.removeprefix("/status").removeprefix("/"), 100, 599)
    headers = _retry_after(query)
    query.done()
    if status < 200 and not request.minor:
        raise BadParameter("status", "status is a whole number from 200 to 599 for HTTP/1.0, which has no others")
    if 300 <= status < 400 and status != 304:
        headers += (("Location", "/slow?ms=0"),)
    answer = Answer(status, {"path": "/status", "status": status}, headers)
    return answer if status >= 200 or status == 101 else Interim(status, answer._replace(status=200))


def _drip(request: Request, query: Query, flaky: Flaky) -> Deed:
    size, every_ms = query.whole("bytes", 0, MOST_BYTES), query.whole("every_ms", 0, LONGEST_MS)
    query.done()
    if size * every_ms > LONGEST_MS:
        raise BadParameter("every_ms", f"bytes times every_ms is at most {LONGEST_MS}, not {size * every_ms}")
    return Drip(size, every_ms / 1000)


def _flaky(request: Request, query: Query, flaky: Flaky) -> Deed:
    rate = query.share("rate")
    fail = query.whole("fail", 0, 10**9, default=1 if rate is None else 0)
    status = query.whole("status", 400, 599, default=503)
    key, headers = query.text("key") or "", _retry_after(query)
    query.done()
    number = flaky.count(key)
    failed = number <= fail or (rate is not None and flaky.chance(key, number) < rate)
    content = {"path": "/flaky", "key": key, "number": number, "failed": failed}
    return Answer(status, content, headers) if failed else Answer(200, content)


def _budget(request: Request, query: Query, flaky: Flaky) -> Deed:
    ms, received = query.whole("ms", 0, LONGEST_MS), budget_of(request)
    query.done()
    content = {"path": "/budget", "ms": ms, "received": received}
    if not isinstance(received, int) or received > ms:
        return Later(ms / 1000, lambda worked: Answer(200, content | {"worked_ms": worked, "stopped_early": False}))
    works = max(0, received - MARGIN_MS)  # a budget that short is not begun with
    detail = f"the work takes {ms} ms and the budget is {received} ms: given up after {works} ms, while somebody listens"

    def gave_up(worked: int) -> Answer:
        return Answer(504, content | {"worked_ms": worked, "stopped_early": True, "detail": detail})

    return Later(works / 1000, gave_up)
