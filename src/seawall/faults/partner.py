"""A partner for experiments with time limits and retries: ``seawall partner``, or inside a test.

Each path misbehaves in its own way, and needs no command before. What happened is read at ``/_stats``, which is counted
nowhere. Any method is taken; bodies are read and dropped.

``/slow?ms=N``
    200 after N ms.
``/status/N``
    Status N at once, 100 to 599; ``retry_after=TEXT`` adds that header. 100 to 199 are followed by 200, but for 101,
    which ends the connection. 300 to 399 have a ``Location``.
``/drip?bytes=N&every_ms=M``
    The head at once, then one byte each M ms.
``/flaky?fail=K``
    503 to the first K requests, then 200. ``key=TEXT`` counts by that key; ``rate=0.3`` fails that share of the requests
    (behind the first K, if K is given) by chance; ``status=N``, 400 to 599, fails with another status;
    ``retry_after=TEXT`` goes with the failures. K is 1 where neither it nor a rate is given.
``/budget?ms=N``
    Works for N ms and tells in ``received`` the ``X-Budget-Ms`` it came with. It heeds a budget that the work would use up:
    504 with ``stopped_early``, 10 ms before the budget's end.

N and M are whole numbers; nothing lasts longer than an hour.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from typing import Any

from .partner_paths import PATHS, Deed, Drip, Flaky, Interim, Later, asked, budget_of, not_understood
from .server import Caller, Server
from .wire import Answer, BadRequest, Request, interim, render

__all__ = ["Partner"]

BUDGETS_KEPT = 100
TEXT_KEPT = 100  # characters of a budget that is no number


class Partner(Server):
    """An HTTP server that is slow, dripping, flaky or out of budget, as each request asks it to be.

    Args:
        host: The address it listens on. Anyone who can reach it can keep it busy, hence loopback by default.
        port: The TCP port; 0 lets the system choose one, which :attr:`port` then tells.
        seed: Of the chance in ``/flaky?rate=``; default: some number, which the greeting tells.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 8014, seed: int | None = None) -> None:
        super().__init__("partner", host=host, port=port)
        self._flaky = Flaky(random.randrange(1_000_000) if seed is None else seed)
        self._tally = _Tally()

    @property
    def greeting(self) -> str:
        """The line that says where it listens, and which paths it has."""
        return f"partner listening on {self.url} (seed {self._flaky.seed}); {', '.join(PATHS)}"

    def stats(self) -> dict[str, Any]:
        """What ``/_stats`` answers.

        ``requests`` counts by path, in ``other`` those to no path; ``total`` is their sum; ``left`` counts callers that
        went away before their answer was out; ``budgets`` are the last 100 values of ``X-Budget-Ms``, on any path.
        """
        tally = self._tally
        return {
            "seed": self._flaky.seed,
            "requests": dict(sorted(tally.requests.items())),
            "total": tally.requests.total(),
            "in_flight": tally.in_flight,
            "max_inflight": tally.max_inflight,
            "left": tally.left,
            "budgets": list(tally.budgets),
        }

    def _caller(self) -> Caller:
        return _Caller(self, self._callers)


class _Tally:
    """What a partner counts. The event loop's thread is the only one that writes."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.in_flight = self.max_inflight = self.left = 0
        self.budgets: deque[int | str] = deque(maxlen=BUDGETS_KEPT)

    def began(self, place: str, budget: int | str | None) -> None:
        self.requests[place] += 1
        self.in_flight += 1
        self.max_inflight = max(self.max_inflight, self.in_flight)
        if budget is not None:
            self.budgets.append(budget[:TEXT_KEPT] if isinstance(budget, str) else budget)


class _Caller(Caller):
    """One connection."""

    def __init__(self, partner: Partner, callers: set[Caller]) -> None:
        super().__init__(callers)
        self._partner = partner
        self._began = 0.0

    def refusal(self, error: BadRequest) -> Answer:
        """The answer to bytes that are no request."""
        return not_understood(error)

    def gone(self) -> None:
        """The caller left while a request was in hand."""
        self._partner._tally.in_flight -= 1
        self._partner._tally.left += 1

    def serve(self, request: Request) -> None:
        """Do what the path says."""
        if request.path == "/_stats":
            self.reply(Answer(200, self._partner.stats()), request)
            return
        self._began = self.loop.time()
        place, deed = asked(request, self._partner._flaky)
        self._partner._tally.began(place, budget_of(request))
        self.request = request
        self._do(deed, request)

    def _do(self, deed: Deed, request: Request) -> None:
        match deed:
            case Later(seconds, _):
                self.later(self._began + seconds, self._answer_late, deed, request)
            case Drip():
                self._begin_to_drip(deed, request)
            case Interim(status, answer):
                self.transport.write(interim(status))
                self._answer(answer, request)
            case Answer(status=101):  # no more HTTP behind it, and nothing else is spoken here
                self._answer(deed, request._replace(keep_alive=False))
            case Answer():
                self._answer(deed, request)

    def _end(self) -> None:
        self.settled()
        self._partner._tally.in_flight -= 1

    def _answer(self, answer: Answer, request: Request) -> None:
        self._end()
        self.reply(answer, request)

    def _answer_late(self, later: Later, request: Request) -> None:
        self._answer(later.answer(round((self.loop.time() - self._began) * 1000)), request)
        self.go_on()

    def _begin_to_drip(self, drip: Drip, request: Request) -> None:
        head, body = render(
            200,
            b"." * drip.size,
            keep_alive=request.keep_alive,
            head_only=request.method == "HEAD",
            content_type="text/plain",
        )
        self.transport.write(head)
        if body:
            self.later(self._began + drip.every, self._drip, drip, 1, request)
        else:
            self._dripped(request)

    def _drip(self, drip: Drip, number: int, request: Request) -> None:
        """Byte ``number``, from 1. Each has its own time, so that delays do not add up."""
        self.transport.write(b".")
        if number < drip.size:
            self.later(self._began + (number + 1) * drip.every, self._drip, drip, number + 1, request)
        else:
            self._dripped(request)
            self.go_on()

    def _dripped(self, request: Request) -> None:
        self._end()
        if not request.keep_alive:
            self.finish()
