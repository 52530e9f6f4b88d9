"""Time on the wire: what a caller says is left, what is told to those we call, and how long a target asks to be left alone.

All forms of a budget are relative to the moment of sending, so that no two clocks have to agree; what the way takes is
nobody's, and :class:`BudgetHeaders` can take a margin off for it. Numbers are rounded down when they are sent: the callee
never believes that it has longer than its caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from itertools import count
from typing import Any, NamedTuple, TypeAlias, cast

from .amounts import is_amount
from .counters import reading
from .deadline import budget, remaining
from .errors import ConfigError

__all__ = ["FORMS", "BudgetHeaders", "Form", "retry_after"]

Text: TypeAlias = "str | bytes"
Headers: TypeAlias = "Mapping[str, str] | Mapping[str, Any] | Iterable[tuple[Text, Text]]"

MS_DIGITS = 12  # of milliseconds: thirty years; what is longer is no budget but a mistake
GRPC_MOST = 99_999_999  # "at most 8 digits": gRPC over HTTP/2, Timeout
LONGEST_WAIT = 1e9  # s; a Retry-After of more digits than that is as good as never


class Form(NamedTuple):
    """One way to write a budget.

    Attributes:
        name: Of the header.
        read: Seconds, from the text of one value; ``None`` where it is none.
        write: The text for so many seconds, 0 or more; never more than they are.
    """

    name: str
    read: Callable[[str], float | None]
    write: Callable[[float], str]

    def smallest(self, text: str) -> tuple[float | None, int]:
        """The smallest of the values in ``text``, separated by commas; and how many could not be read."""
        best: float | None = None
        bad = 0
        for word in text.split(","):
            seconds = self.read(word.strip(" \t"))
            if seconds is None:
                bad += 1
            elif best is None or seconds < best:
                best = seconds
        return best, bad


def _whole(seconds: float, times: int, per: int, most: int) -> int:
    """How many units of ``times / per`` seconds fit into ``seconds``. Exact: the product alone may round up."""
    if seconds * per / times >= most:
        return most
    units = int(seconds * per / times)
    if units * times / per > seconds:
        return units - 1
    return units + 1 if (units + 1) * times / per <= seconds else units


def _read_ms(text: str) -> float | None:
    """Digits alone: a sign, a fraction or a unit is not guessed at."""
    return int(text) / 1000 if text.isdigit() and text.isascii() and len(text) <= MS_DIGITS else None


def _write_ms(seconds: float) -> str:
    return str(_whole(max(0.0, seconds), 1, 1000, 10**MS_DIGITS - 1))


_UNITS = {"n": (1, 10**9), "u": (1, 10**6), "m": (1, 1000), "S": (1, 1), "M": (60, 1), "H": (3600, 1)}  # finest first


def _read_grpc(text: str) -> float | None:
    digits, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not (digits.isdigit() and digits.isascii() and len(digits) <= 8):
        return None
    return int(digits) * unit[0] / unit[1]


def _write_grpc(seconds: float) -> str:
    """In the finest unit that eight digits have room for."""
    left = max(0.0, seconds)
    for unit, (times, per) in _UNITS.items():
        if left * per / times < GRPC_MOST:
            return f"{_whole(left, times, per, GRPC_MOST)}{unit}"
    return f"{GRPC_MOST}H"


FORMS = (
    Form("X-Budget-Ms", _read_ms, _write_ms),
    Form("grpc-timeout", _read_grpc, _write_grpc),
    Form("x-envoy-expected-rq-timeout-ms", _read_ms, _write_ms),
)
"""The headers that are understood. Sources: gRPC over HTTP/2 (Timeout); Envoy's router filter."""

NAMES = tuple(form.name for form in FORMS)


class BudgetHeaders:
    """Takes a caller's budget out of the headers of a request, and tells callees what is left of it.

    ::

        wire = seawall.BudgetHeaders(max_ms=5000)

        def serve(request):
            with wire.open(request.headers):
                return client.get(url, headers=wire.outgoing())

    Of several values, under whatever names, the smallest holds. What cannot be read is counted and ignored: it neither
    lifts a limit nor breaks a request.

    Args:
        max_ms: The most a caller may ask for, in milliseconds; a larger budget is cut down to it. Default: no such limit.
        default_ms: For a request that brings no budget, in milliseconds, at most ``max_ms``. Default: none is opened.
        trust: Whether callers are believed. ``False`` for a port that strangers reach: their budgets are counted in
            :attr:`ignored`, and ``default_ms`` holds.
        names: The headers that are read, of the three in :data:`FORMS`. Default: all.
        send: Those that :meth:`outgoing` writes. Default: ``X-Budget-Ms``.
        margin_ms: Taken off what is sent, for the way there and back, in milliseconds (0).
        clock: Seconds that never go back.

    Raises:
        ConfigError: A setting that cannot work; every fault is named.

    Cost: one look into a dictionary for each header.
    """

    __slots__ = ("_bad", "_clock", "_default", "_forms", "_ignored", "_margin", "_max", "_send", "trust")

    def __init__(
        self,
        *,
        max_ms: float | None = None,
        default_ms: float | None = None,
        trust: bool = True,
        names: Iterable[str] = NAMES,
        send: Iterable[str] = NAMES[:1],
        margin_ms: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        faults: list[str] = []
        self._max = _milliseconds(faults, "max_ms", max_ms)
        self._default = _milliseconds(faults, "default_ms", default_ms)
        self._margin = _milliseconds(faults, "margin_ms", margin_ms) or 0.0
        if self._max is not None and self._default is not None and self._default > self._max:
            faults.append(f"default_ms {default_ms:g} is more than max_ms {max_ms:g} allows: lower the one")
        self._forms = {spelt: form for form in _forms(faults, "names", names) for spelt in _spellings(form.name)}
        self._send = _forms(faults, "send", send)
        if faults:
            raise ConfigError("; ".join(faults))
        self.trust, self._clock = trust, clock
        self._bad, self._ignored = count(), count()

    def __repr__(self) -> str:
        return f"<BudgetHeaders {'' if self.trust else 'untrusted, '}{self.bad} bad, {self.ignored} ignored>"

    @property
    def bad(self) -> int:
        """Values that could not be read."""
        return reading(self._bad)

    @property
    def ignored(self) -> int:
        """Requests whose budget was not believed."""
        return reading(self._ignored)

    @property
    def sends(self) -> tuple[str, ...]:
        """Names of the headers that :meth:`outgoing` writes."""
        return tuple(form.name for form in self._send)

    def read(self, headers: Headers) -> float | None:
        """The budget of a request, in seconds; ``None`` where nothing limits it.

        Args:
            headers: A mapping of names to values, or pairs of them; names in any case, text or bytes. So the headers of
                the usual frameworks will do as they are, an ASGI scope's ``headers``, and a WSGI ``environ``.
        """
        best: float | None = None
        found = False
        for form, text in self._values(headers):
            found = True
            if self.trust:
                seconds, bad = form.smallest(text)
                for _ in range(bad):
                    next(self._bad)
                if seconds is not None and (best is None or seconds < best):
                    best = seconds
        if found and not self.trust:
            next(self._ignored)
        if best is None:
            return self._default
        return best if self._max is None or best < self._max else self._max

    def asked(self, headers: Headers) -> bool:
        """Whether the budget of a request is its caller's, and not ``default_ms``.

        By the headers, not by the number: a caller may ask for just as much, or be cut down to it by ``max_ms``.
        """
        return self.trust and any(form.smallest(text)[0] is not None for form, text in self._values(headers))

    def open(self, headers: Headers) -> budget | nullcontext[None]:
        """:meth:`read`, as a block with that budget: ``with wire.open(headers):``, or ``async with``."""
        seconds = self.read(headers)
        return nullcontext() if seconds is None else budget(seconds, clock=self._clock)

    def outgoing(self, at_most: float | None = None) -> dict[str, str]:
        """The headers that tell a callee what is left at this moment; to be asked anew for each attempt.

        Args:
            at_most: Never tell more than this, in seconds: the time limit of the attempt, where it has one.

        Returns:
            Names to values; ``{}`` where no budget is in force and ``at_most`` is not given.
        """
        left = remaining(at_most)
        if left is None:
            return {}
        return {form.name: form.write(left - self._margin) for form in self._send}

    def _values(self, headers: Headers) -> Iterable[tuple[Form, str]]:
        """The values of the headers that say a budget."""
        forms, given = self._forms, cast("Any", headers)
        for name, value in given.items() if hasattr(given, "items") else given:
            if isinstance(name, (str, bytes)):
                form = forms.get(name) or forms.get(name.lower())
                if form is not None:
                    yield form, value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _spellings(name: str) -> tuple[Text, ...]:
    """A header's name as it stands in lists of headers, and in a WSGI ``environ``; in lower case, and as it is usual."""
    lower = name.lower()
    environ = "http_" + lower.replace("-", "_")
    return lower, lower.encode(), name, environ.upper(), environ


def _forms(faults: list[str], where: str, names: Iterable[str]) -> tuple[Form, ...]:
    known = {form.name.lower(): form for form in FORMS}
    words = [names] if isinstance(names, str) else list(names)
    faults += [f"{where}: {word!r} is none of {', '.join(NAMES)}" for word in words if str(word).lower() not in known]
    return tuple(known[word.lower()] for word in words if str(word).lower() in known)


def _milliseconds(faults: list[str], name: str, value: float | None) -> float | None:
    """Seconds, from milliseconds."""
    if value is None:
        return None
    if not is_amount(value):
        faults.append(f"{name} is in milliseconds, 0 or more and finite, not {value!r}")
        return None
    return value / 1000


def retry_after(
    value: Text | None, date: Text | None = None, now: Callable[[], float] = time.time
) -> float | None:
    """Seconds for which a ``Retry-After`` asks to be left alone; ``None`` where it says nothing that can be read.

    Args:
        value: The header: seconds (a fraction is not foreseen, but understood) or a date.
        date: The answer's own ``Date``. A date is read against it: the two are of one clock.
        now: Seconds since the epoch, for a date in an answer without ``Date``. Default: the wall clock of this machine.

    Returns:
        0.0 or more, and finite; a date that has passed is 0.0.

    Source: RFC 9110, 10.2.3 and 5.6.7.
    """
    text = _text(value)
    if text.replace(".", "0", 1).isdigit() and text.isascii() and text[0] != ".":
        return min(float(text), LONGEST_WAIT)
    until = _moment(text)
    if until is None:
        return None
    sent = _moment(_text(date))
    return min(max(0.0, until - (now() if sent is None else sent)), LONGEST_WAIT)


def _text(value: Text | None) -> str:
    if value is None:
        return ""
    return (value.decode("latin-1") if isinstance(value, bytes) else str(value)).strip(" \t")


def _moment(text: str) -> float | None:
    """Seconds since the epoch, from any of the three forms of a date."""
    if not text[:1].isalpha():  # each begins with the day of the week
        return None
    from email.utils import mktime_tz, parsedate_tz  # here, where a date has come: importing the library stays light

    try:
        parts = parsedate_tz(text)
        return None if parts is None else float(mktime_tz(parts))
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
