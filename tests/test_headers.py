"""Time on the wire: three forms of a budget and Retry-After, read from whatever comes, and never told too large."""

from __future__ import annotations

import asyncio
from fractions import Fraction
from math import nextafter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import seawall
from seawall.headers import FORMS, BudgetHeaders, Form, retry_after
from tests.aio import run_async
from tests.clock import ManualClock

MS, GRPC, ENVOY = FORMS
PER_SECOND = {"n": Fraction(10**9), "u": Fraction(10**6), "m": Fraction(1000), "S": Fraction(1), "M": Fraction(1, 60)}
PER_SECOND["H"] = Fraction(1, 3600)
SECONDS = st.floats(0.0, 1e300) | st.floats(0.0, 10.0) | st.integers(0, 10**6).map(lambda ms: ms / 1000)


def exactly(form: Form, text: str) -> Fraction:
    """What the text says, without any rounding."""
    if form is GRPC:
        return int(text[:-1]) / PER_SECOND[text[-1]]
    return Fraction(int(text), 1000)


# -- the three forms


@pytest.mark.parametrize(("form", "text", "seconds"), [
    (MS, "0", 0.0), (MS, "1", 0.001), (MS, "0900", 0.9), (MS, "999999999999", 999999999.999), (ENVOY, "250", 0.25),
    (GRPC, "1H", 3600.0), (GRPC, "2M", 120.0), (GRPC, "3S", 3.0), (GRPC, "250m", 0.25), (GRPC, "1500u", 0.0015),
    (GRPC, "0n", 0.0), (GRPC, "99999999n", 0.099999999), (GRPC, "00000001S", 1.0),
])  # fmt: skip
def test_what_each_form_says(form: Form, text: str, seconds: float) -> None:
    assert form.read(text) == seconds


@pytest.mark.parametrize("text", [
    "", " ", "-5", "+5", "1.5", "1e3", "5ms", "0x10", "9" * 13, "\u0665", "\u00b2", "five", "1_000",
])  # fmt: skip
@pytest.mark.parametrize("form", [MS, ENVOY], ids=lambda form: form.name)
def test_milliseconds_are_digits_alone(form: Form, text: str) -> None:
    assert form.read(text) is None


@pytest.mark.parametrize("text", [
    "", "S", "5", "5s", "-5S", "1.5S", "123456789S", "5 S", "5SS", "\u0665S", "5h", "S5", "+5m", "5\u00b5",
])  # fmt: skip
def test_a_grpc_timeout_is_up_to_eight_digits_and_one_of_six_letters(text: str) -> None:
    """One that is not, is not guessed at: 5 s and 5 ms are not the same."""
    assert GRPC.read(text) is None


@pytest.mark.parametrize(("seconds", "text"), [
    (0.0, "0n"), (1e-10, "0n"), (0.05, "50000000n"), (0.1, "100000u"), (1.2345678, "1234567u"), (99.9, "99900000u"),
    (100.0, "100000m"), (99_999.0, "99999000m"), (200_000.0, "200000S"), (1e9, "16666666M"), (1e10, "2777777H"),
    (1e300, "99999999H"), (-1.0, "0n"),
])  # fmt: skip
def test_a_grpc_timeout_is_written_in_the_finest_unit_that_has_room(seconds: float, text: str) -> None:
    assert GRPC.write(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [
    (0.0, "0"), (0.0009999, "0"), (0.9, "900"), (1.2349, "1234"), (-3.0, "0"), (1e300, "999999999999"),
    (float("inf"), "999999999999"),
])  # fmt: skip
def test_milliseconds_are_rounded_down(seconds: float, text: str) -> None:
    assert MS.write(seconds) == ENVOY.write(seconds) == text


@pytest.mark.req("BUDGET-7")
@given(st.sampled_from(FORMS), SECONDS)
@example(MS, nextafter(0.117, 0))  # times 1000 it is 117 again
@example(GRPC, nextafter(0.100015, 0))
@example(GRPC, 0.001)
def test_what_is_sent_is_never_more_than_what_was_left(form: Form, seconds: float) -> None:
    """Not by a rounding error either; and it loses no more than one unit, unless it is beyond all that can be said."""
    text = form.write(seconds)
    read = form.read(text)
    assert read is not None
    assert exactly(form, text) <= Fraction(seconds) or read == seconds
    assert read <= seconds
    unit = 1 / PER_SECOND[text[-1]] if form is GRPC else Fraction(1, 1000)
    most = Fraction(99_999_999) * 3600 if form is GRPC else Fraction(10**12 - 1, 1000)
    assert exactly(form, text) + unit >= Fraction(seconds) or exactly(form, text) == most


@given(st.integers(0, 10**12 - 1))
def test_a_hop_that_takes_no_time_loses_nothing(ms: int) -> None:
    read = MS.read(str(ms))
    assert read is not None
    assert MS.write(read) == str(ms)


@given(st.text() | st.from_regex(r"[-+]?[0-9]{0,14}[a-zA-Z]{0,2}", fullmatch=True))
def test_a_value_is_read_or_it_is_not_and_nothing_else_happens(text: str) -> None:
    for form in FORMS:
        seconds = form.read(text)
        assert seconds is None or 0.0 <= seconds < 1e12


# -- the reader


def spelt(name: str) -> dict[str, list[Any]]:
    """The headers of a request with 900 ms, as they come from all over the place."""
    environ = "HTTP_" + name.upper().replace("-", "_")
    return {
        "a dict": [{name: "900"}, {name.upper(): "900"}, {name.lower(): "900"}],
        "pairs": [[(name, "900")], iter([(name, "900")]), ((name.lower(), "900"),)],
        "ASGI": [[(name.lower().encode(), b"900")], [(b"Host", b"a"), (name.encode(), b" 900 ")]],
        "WSGI": [{environ: "900", "wsgi.errors": object(), "REQUEST_METHOD": "GET"}],
    }


@pytest.mark.parametrize("kind", ["a dict", "pairs", "ASGI", "WSGI"])
@pytest.mark.parametrize("name", [MS.name, ENVOY.name])
def test_headers_are_read_however_they_come(name: str, kind: str) -> None:
    for headers in spelt(name)[kind]:
        assert BudgetHeaders().read(headers) == 0.9


def test_the_headers_of_a_message_with_repeated_names_are_read() -> None:
    """As those of the standard library's servers: no mapping, but with ``items()``."""
    from email.message import Message

    message = Message()
    message["X-Budget-Ms"] = "2000"
    message["X-BUDGET-MS"] = "700"
    assert BudgetHeaders().read(message) == 0.7  # type: ignore[arg-type]


@pytest.mark.parametrize(("pairs", "seconds", "bad"), [
    ([], None, 0),
    ([("Host", "a"), ("X-Budget", "3")], None, 0),
    ([("X-Budget-Ms", "900, 400,700")], 0.4, 0),
    ([("X-Budget-Ms", "900"), ("grpc-timeout", "500m"), ("x-envoy-expected-rq-timeout-ms", "700")], 0.5, 0),
    ([("X-Budget-Ms", "900"), ("x-budget-ms", "1")], 0.001, 0),
    ([("X-Budget-Ms", "banana"), ("grpc-timeout", "2S")], 2.0, 1),
    ([("X-Budget-Ms", "900,,x"), ("grpc-timeout", "2")], 0.9, 3),
    ([("X-Budget-Ms", "")], None, 1),
    ([("X-Budget-Ms", "0")], 0.0, 0),
])  # fmt: skip
def test_of_several_the_smallest_that_can_be_read_holds(
    pairs: list[tuple[str, str]], seconds: float | None, bad: int
) -> None:
    wire = BudgetHeaders()
    assert wire.read(pairs) == seconds
    assert (wire.bad, wire.ignored) == (bad, 0)


@pytest.mark.parametrize(("sent", "seconds"), [("900", 0.9), ("5000", 2.0), ("2000", 2.0), (None, 1.5), ("x", 1.5)])
def test_the_local_maximum_caps_and_the_default_stands_in(sent: str | None, seconds: float) -> None:
    wire = BudgetHeaders(max_ms=2000, default_ms=1500)
    assert wire.read({} if sent is None else {"X-Budget-Ms": sent}) == seconds


def test_a_caller_that_is_not_trusted_is_not_believed() -> None:
    """Neither a short budget nor a bad one has an effect; requests that brought one are counted."""
    wire = BudgetHeaders(trust=False, default_ms=1500)
    requests: tuple[dict[str, str], ...] = ({"X-Budget-Ms": "1"}, {"X-Budget-Ms": "x, y", "grpc-timeout": "1S"}, {})
    assert [wire.read(headers) for headers in requests] == [1.5] * 3
    assert (wire.ignored, wire.bad) == (2, 0)
    assert repr(wire) == "<BudgetHeaders untrusted, 0 bad, 2 ignored>"


def test_only_the_chosen_names_are_read_and_written() -> None:
    wire = BudgetHeaders(names=["GRPC-Timeout"], send="grpc-timeout")
    assert wire.read({"X-Budget-Ms": "900"}) is None
    assert wire.read({"grpc-timeout": "1S"}) == 1.0
    clock = ManualClock()
    with seawall.budget(1.25, clock=clock):
        assert wire.outgoing() == {"grpc-timeout": "1250000u"}


VALUES: st.SearchStrategy[Any] = st.text() | st.binary() | st.none() | st.integers() | st.lists(st.text())
TITLES = st.sampled_from([name for form in FORMS for name in (form.name, form.name.encode())]) | st.text() | st.binary()


@given(st.dictionaries(TITLES | st.none(), VALUES) | st.lists(st.tuples(TITLES | st.integers(), VALUES)))
def test_reading_garbage_never_raises(headers: Any) -> None:
    wire = BudgetHeaders(max_ms=10_000)
    seconds = wire.read(headers)
    assert seconds is None or 0.0 <= seconds <= 10.0


@pytest.mark.parametrize(("settings", "says"), [
    ({"max_ms": -1}, "max_ms is in milliseconds"), ({"default_ms": float("nan")}, "default_ms is in milliseconds"),
    ({"margin_ms": "5"}, "margin_ms is in milliseconds"), ({"max_ms": True}, "not True"),
    ({"max_ms": 1000, "default_ms": 2000}, "default_ms 2000 is more than max_ms 1000"),
    ({"names": ["X-Deadline"]}, "names: 'X-Deadline' is none of X-Budget-Ms, grpc-timeout"), ({"send": "x"}, "send: 'x'"),
    ({"max_ms": -1, "send": [3]}, "send: 3"),
])  # fmt: skip
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(seawall.ConfigError, match=says):
        BudgetHeaders(**settings)


# -- the budget of a request, and what callees are told


@pytest.mark.req("BUDGET-7")
def test_a_receiver_takes_the_header_as_its_own_limit_and_tells_what_is_left() -> None:
    """Asked anew for each call, so each is told what is left at that moment."""
    clock = ManualClock()
    wire = BudgetHeaders(clock=clock)
    told = []
    with wire.open({"X-Budget-Ms": "750"}) as deadline:
        assert deadline is not None
        for _ in range(4):
            told.append(wire.outgoing())
            clock.advance(0.25)
    assert told == [{"X-Budget-Ms": text} for text in ("750", "500", "250", "0")]
    assert wire.outgoing() == {}


def test_a_request_without_a_budget_opens_none() -> None:
    wire = BudgetHeaders()
    with wire.open({}) as deadline:
        assert deadline is None
        assert seawall.current_deadline() is None
        assert wire.outgoing() == {}
    with wire.open({"X-Budget-Ms": "900"}), seawall.detach():
        assert wire.outgoing() == {}


def test_a_received_budget_only_shortens_the_one_in_force() -> None:
    clock = ManualClock()
    wire = BudgetHeaders(clock=clock)
    with seawall.budget(0.5, clock=clock):
        with wire.open({"X-Budget-Ms": "900"}):
            assert wire.outgoing() == {"X-Budget-Ms": "500"}
        with wire.open({"X-Budget-Ms": "300"}):
            assert wire.outgoing() == {"X-Budget-Ms": "300"}


def test_the_block_ends_a_coroutine_at_the_budget() -> None:
    async def serve() -> None:
        async with BudgetHeaders().open([(b"x-budget-ms", b"20")]):
            await asyncio.sleep(30)

    with pytest.raises(seawall.DeadlineExceededError):
        run_async(serve())

    async def unlimited() -> str:
        async with BudgetHeaders().open([]):
            return "done"

    assert run_async(unlimited()) == "done"


@pytest.mark.fault("F28")
def test_each_attempt_is_told_its_own_limit_or_what_is_left_if_that_is_less() -> None:
    """250 ms in all, 100 ms a try, three tries that time out."""
    clock = ManualClock()
    wire = BudgetHeaders(clock=clock)
    told = []
    with seawall.budget(0.25, clock=clock):
        for _ in range(3):
            told.append(wire.outgoing(at_most=0.1)["X-Budget-Ms"])
            clock.advance(0.1)
        told.append(wire.outgoing(at_most=0.1)["X-Budget-Ms"])
    assert told in (["100", "100", "50", "0"], ["100", "100", "49", "0"])  # 0.25 - 0.2 is not quite 0.05
    assert wire.outgoing(at_most=0.1) == {"X-Budget-Ms": "100"}


def test_a_margin_is_taken_off_what_is_sent() -> None:
    clock = ManualClock()
    wire = BudgetHeaders(margin_ms=30, send=["X-Budget-Ms", "grpc-timeout", "x-envoy-expected-rq-timeout-ms"], clock=clock)
    with seawall.budget(0.1, clock=clock):
        assert wire.outgoing() == {"X-Budget-Ms": "70", "grpc-timeout": "70000000n", "x-envoy-expected-rq-timeout-ms": "70"}
        clock.advance(0.08)
        assert wire.outgoing()["X-Budget-Ms"] == "0"


# -- Retry-After

SENT = "Sun, 06 Nov 1994 08:49:37 GMT"
EPOCH = 784111777.0
ALMOST_A_DATE = r"(Sun, |Sunday )?\d{0,5}[ -]?(Nov|11)?[ -]\d{0,6} \d{1,3}:\d{1,3}(:\d{1,4})?( \w+)?"


@pytest.mark.fault("F30")
@pytest.mark.parametrize(("value", "seconds"), [
    ("0", 0.0), ("120", 120.0), (" 3600\t", 3600.0), (b"7", 7.0), ("1.5", 1.5), ("2.", 2.0), ("9" * 400, 1e9),
    (None, None), ("", None), ("-1", None), ("-0.5", None), ("+5", None), ("1e3", None), ("5s", None), (".5", None),
    ("1.2.3", None), ("soon", None), ("\u0665", None), ("Sun", None), ("Sun, 99 Foo 1994 08:49:37 GMT", None),
    ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0), ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0), ("Sun Nov  6 08:50:37 1994", 60.0),
    (b"Sun, 06 Nov 1994 08:50:37 GMT", 60.0), ("Sun, 06 Nov 1994 09:50:37 +0100", 60.0),
    ("Sun, 06 Nov 1994 08:48:00 GMT", 0.0), ("Fri, 31 Dec 9999 23:59:59 GMT", 1e9),
    ("Sun, 06 Nov 99999 08:49:37 GMT", None),
])  # fmt: skip
def test_retry_after_is_seconds_or_a_date(value: Any, seconds: float | None) -> None:
    """What is neither says nothing; nothing is too odd to be read."""
    assert retry_after(value, SENT, now=lambda: 0.0) == seconds


@pytest.mark.fault("F30")
def test_a_date_is_read_against_the_answers_own_date() -> None:
    """The two are of one clock; ours may stand elsewhere, and is asked only where there is no other."""
    later = "Sun, 06 Nov 1994 08:50:37 GMT"
    for now in (0.0, EPOCH + 1e6):
        assert retry_after(later, SENT, now=ManualClock(now)) == 60.0
    for date in (None, "", "nonsense", b"\xff"):
        assert retry_after(later, date, now=lambda: EPOCH + 20) == 40.0
    assert retry_after(later) == 0.0


@pytest.mark.fault("F30")
@given(st.text() | st.binary() | st.from_regex(ALMOST_A_DATE), st.none() | st.text() | st.just(SENT))
def test_retry_after_never_raises(value: Any, date: Any) -> None:
    seconds = retry_after(value, date)
    assert seconds is None or 0.0 <= seconds <= 1e9


def test_the_names_are_those_of_the_promise() -> None:
    assert [form.name for form in FORMS] == ["X-Budget-Ms", "grpc-timeout", "x-envoy-expected-rq-timeout-ms"]
