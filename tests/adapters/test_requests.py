"""What is special to requests: no time limit of its own, prepared requests, sessions with adapters already in them."""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ReadTimeoutError

import seawall
from seawall import CircuitBreaker, Wall, on_result
from seawall.adapters import twice
from seawall.adapters.requests import Adapter, mount
from tests.adapters.served import Served
from tests.adapters.talking import HEAD, again, listening, saying

SHORT, LATE = 0.25, 2.0  # s: as in test_conformance.py


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        yield session


def failures(wall: Wall) -> int:
    breaker = wall["CORE"].snapshot().breaker
    assert breaker is not None
    return breaker.failures


def running(wall: Wall) -> int:
    bulkhead = wall["CORE"].snapshot().bulkhead
    assert bulkhead is not None
    return bulkhead.in_flight


# -- the adapters of a session
def test_mount_takes_the_place_of_the_adapters_with_their_pools(session: requests.Session) -> None:
    session.mount("https://", HTTPAdapter(3, 4, pool_block=True))
    session.mount("http://core.internal/", HTTPAdapter(5, 6))
    assert mount(session, Wall()) is session
    made = {prefix: vars(adapter) for prefix, adapter in session.adapters.items()}
    assert all(type(adapter) is Adapter for adapter in session.adapters.values())
    words = "_pool_connections", "_pool_maxsize", "_pool_block"
    sizes = {prefix: tuple(has[word] for word in words) for prefix, has in made.items()}
    assert sizes == {"https://": (3, 4, True), "http://": (10, 10, False), "http://core.internal/": (5, 6, False)}
    before = dict(session.adapters)
    assert dict(mount(session, Wall()).adapters) == before


def test_an_adapter_of_another_class_is_not_thrown_away(session: requests.Session) -> None:
    class Signing(HTTPAdapter):
        pass

    session.mount("https://", Signing())
    with pytest.raises(TypeError, match=r"https:// has a Signing: derive it from seawall\.adapters\.requests\.Adapter"):
        mount(session, Wall())
    with pytest.raises(TypeError, match="not 'session'"):
        mount("session", Wall())  # type: ignore[arg-type]


def test_max_retries_stay_and_are_said_once(
    session: requests.Session, wall: Wall, served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    twice._said.clear()
    session.mount("http://", HTTPAdapter(max_retries=2))
    with caplog.at_level(logging.WARNING, "seawall"):
        mount(session, wall, target="CORE")
        Adapter(wall, max_retries=2)
    assert len([line for line in caplog.messages if "up to 3 attempts" in line]) == 2  # theirs, and the user's own
    with pytest.raises(requests.ConnectionError):
        session.get(f"{served.url}/reset")
    assert len(served.asked) == 3


def test_a_session_without_retries_warns_of_none(session: requests.Session, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "seawall"):
        mount(session, Wall())
    assert caplog.messages == []


def test_an_adapter_says_that_it_cannot_be_pickled(session: requests.Session) -> None:
    with pytest.raises(TypeError, match="holds a wall"):
        pickle.dumps(mount(session, Wall()))


def test_by_way_of_a_proxy_the_target_is_the_host_behind_it(session: requests.Session, served: Served) -> None:
    wall = Wall()
    mount(session, wall).proxies = {"http": served.url}
    with seawall.budget(SHORT), pytest.raises(seawall.DeadlineExceededError):
        session.get("http://core.internal:81/drip?ms=20")
    assert [target.name for target in wall] == ["core.internal:81"]


def test_what_is_no_url_is_requests_error(session: requests.Session, wall: Wall) -> None:
    mount(session, wall, target="CORE")
    for wrong in ("http://core.internal:port/", "http://:80/"):
        with pytest.raises(requests.exceptions.InvalidURL):
            session.get(wrong)


# -- time
def test_a_request_that_nothing_limits_has_a_limit_all_the_same(
    session: requests.Session, wall: Wall, served: Served
) -> None:
    mount(session, wall, target="CORE", read=SHORT)
    began = time.monotonic()
    with pytest.raises(requests.exceptions.ReadTimeout) as error:
        session.get(f"{served.url}/hang")
    assert SHORT - 0.01 < time.monotonic() - began < SHORT + LATE
    assert not isinstance(error.value, seawall.SeawallError)
    assert failures(wall) == 1


def test_the_sessions_word_and_a_budget_come_before_that_limit(
    session: requests.Session, wall: Wall, served: Served
) -> None:
    mount(session, wall, target="CORE", read=0.1)
    assert session.get(f"{served.url}/slow?ms=400", timeout=5).status_code == 200
    with seawall.budget(5.0):
        assert session.get(f"{served.url}/slow?ms=400").status_code == 200


@pytest.mark.parametrize("limits", [{"connect": 0}, {"read": -1}, {"read": "5"}])
def test_a_limit_that_cannot_be_is_said(limits: dict[str, Any]) -> None:
    with pytest.raises(seawall.ConfigError, match="is in seconds, more than 0"):
        Adapter(Wall(), **limits)


def test_no_limit_may_be_asked_for(wall: Wall) -> None:
    adapter = Adapter(wall, connect=None, read=None)
    assert adapter._limits is None
    adapter.close()


@pytest.mark.parametrize("read", ["content", "iter_content", "iter_lines", "raw"])
def test_a_body_says_in_requests_class_that_its_time_is_over(
    session: requests.Session, wall: Wall, served: Served, read: str
) -> None:
    mount(session, wall, target="CORE")
    with seawall.budget(SHORT):
        response = session.get(f"{served.url}/drip?ms=20&chunked=1", stream=True)

    def all_of_it() -> None:
        if read == "raw":
            response.raw.read()
        elif read == "content":
            assert response.content
        else:
            list(getattr(response, read)())

    with pytest.raises(seawall.DeadlineExceededError) as error:
        all_of_it()
    late: Any = error.value
    assert isinstance(late, requests.exceptions.ReadTimeout)
    assert (late.request, late.response) == (response.request, None)
    assert isinstance(late.__cause__, ReadTimeoutError)
    assert (running(wall), failures(wall)) == (0, 0)


def test_silence_in_a_body_before_the_end_is_requests_own_error(
    session: requests.Session, wall: Wall, served: Served
) -> None:
    mount(session, wall, target="CORE")
    with seawall.budget(30.0), pytest.raises(requests.exceptions.ConnectionError) as error:
        session.get(f"{served.url}/pause?ms=9000", timeout=SHORT)
    assert not isinstance(error.value, seawall.SeawallError)
    assert (running(wall), failures(wall)) == (0, 1)


# -- requests
def test_a_refusal_knows_its_request(session: requests.Session, wall: Wall, served: Served) -> None:
    mount(session, wall, target="CORE")
    with seawall.budget(0.0), pytest.raises(seawall.NoBudgetError) as refusal:
        session.get(f"{served.url}/ok")
    refused: Any = refusal.value
    assert isinstance(refused, requests.exceptions.ConnectionError)
    request: Any = refused.request
    assert request.url == f"{served.url}/ok"


def test_a_prepared_request_may_be_sent_again_with_more_time(
    session: requests.Session, wall: Wall, served: Served
) -> None:
    mount(session, wall, target="CORE")
    prepared = session.prepare_request(requests.Request("GET", f"{served.url}/ok"))
    for seconds in (1.0, 60.0):
        with seawall.budget(seconds):
            assert session.send(prepared).request is prepared
    session.send(prepared)
    first, second, third = (asked.headers.get("x-budget-ms") for asked in served.asked)
    assert int(first or 0) <= 1000 < int(second or 0) <= 60_000
    assert (third, "X-Budget-Ms" in prepared.headers) == (None, False)


def test_each_hop_of_a_redirect_is_told_what_is_left_by_then(session: requests.Session, served: Served) -> None:
    wall = Wall()
    mount(session, wall)
    with seawall.budget(5.0):
        response = session.get(f"{served.url}/redirect?to=/ok")
    assert ([hop.status_code for hop in response.history], response.status_code) == ([302], 200)
    first, second = (int(asked.headers["x-budget-ms"]) for asked in served.asked)
    assert 0 < second <= first <= 5000


@pytest.mark.parametrize("size", [None, 2])
def test_cookies_of_a_failed_answer_that_was_kept_are_the_sessions(session: requests.Session, size: int | None) -> None:
    mount(session, again(1), target="CORE")
    with listening(saying(HEAD + b"Set-Cookie: a=b\r\nContent-Length: 3\r\n\r\nbad")) as port:
        response = session.get(f"http://127.0.0.1:{port}/", stream=True)
        assert b"".join(response.iter_content(size)) == b"bad"
        assert session.cookies.get("a") == "b"


def test_a_rule_may_read_the_body(session: requests.Session, served: Served) -> None:
    wall = Wall()
    wall.target("CORE", breaker=CircuitBreaker(9, counts_as_failure=[on_result(lambda answer: answer.content == b"xx")]))
    mount(session, wall, target="CORE")
    for path, body, row in (("/ok", b"xx", 1), ("/ok", b"xx", 2), ("/ok?bytes=3", b"xxx", 0)):
        assert session.get(served.url + path).content == body
        assert (running(wall), failures(wall)) == (0, row)


def test_a_body_that_breaks_off_is_judged_by_the_error_that_requests_raises(
    session: requests.Session, served: Served
) -> None:
    wall = Wall()
    wall.target("CORE", breaker=CircuitBreaker(9, counts_as_failure=requests.exceptions.ChunkedEncodingError))
    mount(session, wall, target="CORE")
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        session.get(f"{served.url}/break?chunked=1")
    assert failures(wall) == 1
