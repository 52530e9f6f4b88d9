"""The SDKs of OpenAI and Anthropic go through a target, with limits that fit a stream of tokens."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

import seawall
from seawall import Bulkhead, CircuitBreaker, Retry, Wall, llm
from seawall.adapters import twice
from tests.adapters.served import Asked, Served, _Connection, serving

SHORT, LATE = 0.25, 3.0
CHUNK = {
    "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
    "choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": None}],
}  # fmt: skip
WHOLE = {
    "id": "1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}  # fmt: skip
MESSAGE = {
    "id": "1", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


class _Llm(_Connection):
    """Does as the model's name says: ``ms:first:gap:parts``, or a status."""

    def _one(self) -> bool:
        self.do_chat = self.do_messages
        return super()._one()

    def do_messages(self, query: dict[str, str], asked: Asked) -> bool:
        wish = json.loads(asked.body)
        word, *numbers = wish["model"].split(":")
        if word == "status":
            return self.do_status({"is": numbers[0]}, asked)
        if word == "flaky":
            earlier = len(self.served.asked) <= int(numbers[0])
            if earlier:
                return self.do_status({"is": "503"}, asked)
            numbers = ["0", "0", "1"]
        first, gap, parts = (int(number) for number in numbers)
        self._wait(first) if first else None
        if not wish.get("stream"):
            body = json.dumps(MESSAGE if "messages" in asked.path else WHOLE).encode()
            self._head(200, len(body), Content_Type="application/json")
            self._send(body)
            return True
        self._head(200, None, Content_Type="text/event-stream")
        for _ in range(parts):
            line = f"data: {json.dumps(CHUNK)}\n\n".encode()
            self._send(b"%x\r\n%s\r\n" % (len(line), line))
            self._wait(gap) if gap else None
        self._send(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        return True


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr("tests.adapters.served._Connection", _Llm)
    monkeypatch.setattr(_Llm, "do_chat/completions", _Llm.do_messages, raising=False)
    monkeypatch.setattr(_Llm, "do_v1/messages", _Llm.do_messages, raising=False)
    with serving() as server:
        yield server


@pytest.fixture
def wall() -> Wall:
    wall = Wall()
    wall.target("openai", breaker=CircuitBreaker(3), bulkhead=Bulkhead(1))
    return wall


def client(wall: Wall, served: Served, **limits: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", base_url=served.url, **llm.options(wall, "openai", **limits))


def ask(client: openai.OpenAI, model: str, stream: bool = False) -> Any:
    return client.chat.completions.create(model=model, messages=[{"role": "user", "content": "?"}], stream=stream)


def running(wall: Wall) -> int:
    bulkhead = wall["openai"].snapshot().bulkhead
    assert bulkhead is not None
    return bulkhead.in_flight


def test_an_answer_comes_through(wall: Wall, served: Served) -> None:
    with client(wall, served) as sdk:
        assert ask(sdk, "ms:0:0:1").choices[0].message.content == "hi"
    assert (running(wall), len(served.asked)) == (0, 1)
    assert 0 < int(served.asked[0].headers["x-budget-ms"]) <= 300_000


def test_a_stream_holds_its_place_until_it_is_closed(wall: Wall, served: Served) -> None:
    with client(wall, served) as sdk:
        stream = ask(sdk, "ms:0:5:1000", stream=True)
        assert next(iter(stream)).choices[0].delta.content == "hi"
        assert running(wall) == 1
        with pytest.raises(openai.APIConnectionError) as error:
            ask(sdk, "ms:0:0:1")
        assert isinstance(error.value.__cause__, seawall.BulkheadFullError)
        stream.close()
        assert running(wall) == 0


def test_the_first_token_has_a_limit_of_its_own(wall: Wall, served: Served) -> None:
    began = time.monotonic()
    with client(wall, served, first_token=SHORT) as sdk:
        with pytest.raises(openai.APITimeoutError) as error:
            ask(sdk, "ms:60000:0:1", stream=True)
        assert SHORT - 0.01 < time.monotonic() - began < SHORT + LATE
        assert isinstance(error.value.__cause__, seawall.TimeoutExceededError)
        assert (error.value.__cause__.limit, len(served.asked), running(wall)) == (SHORT, 1, 0)


def test_an_answer_in_one_piece_may_take_longer_than_that(wall: Wall, served: Served) -> None:
    with client(wall, served, first_token=0.1) as sdk:
        assert ask(sdk, "ms:400:0:1").choices[0].message.content == "hi"


def test_a_gap_ends_a_stream(wall: Wall, served: Served) -> None:
    began = time.monotonic()
    with client(wall, served, first_token=20.0, gap=SHORT) as sdk:
        stream = ask(sdk, "ms:0:60000:2", stream=True)
        with pytest.raises(Exception, match="timed out") as error:
            list(stream)
        assert type(error.value).__name__ in ("ReadTimeout", "APITimeoutError")
    assert SHORT - 0.01 < time.monotonic() - began < SHORT + LATE
    assert running(wall) == 0


def test_a_total_ends_a_stream_that_never_ends(wall: Wall, served: Served) -> None:
    began = time.monotonic()
    with client(wall, served, total=SHORT) as sdk:
        with pytest.raises((openai.APITimeoutError, seawall.TimeoutExceededError)) as error:
            list(ask(sdk, "ms:0:10:100000", stream=True))
        assert isinstance(error.value.__cause__ or error.value, seawall.TimeoutExceededError)
    assert SHORT - 0.01 < time.monotonic() - began < SHORT + LATE
    assert running(wall) == 0


def test_the_sdk_does_not_repeat_and_the_circuit_opens(wall: Wall, served: Served) -> None:
    with client(wall, served) as sdk:
        for _ in range(3):
            with pytest.raises(openai.InternalServerError):
                ask(sdk, "status:503")
        with pytest.raises(openai.APIConnectionError) as error:
            ask(sdk, "ms:0:0:1")
    assert isinstance(error.value.__cause__, seawall.CircuitOpenError)
    assert len(served.asked) == 3


def test_the_target_repeats(served: Served) -> None:
    wall = Wall()
    wall.target("openai", retry=Retry(3, base_delay=0.001, retry_budget=None))
    with client(wall, served) as sdk:
        assert ask(sdk, "flaky:2").choices[0].message.content == "hi"
    assert len(served.asked) == 3


def test_a_budget_is_told_and_ends_it(wall: Wall, served: Served) -> None:
    with client(wall, served) as sdk, seawall.budget(SHORT), pytest.raises(openai.APITimeoutError) as error:
        ask(sdk, "ms:60000:0:1")
    assert isinstance(error.value.__cause__, seawall.DeadlineExceededError)


def test_tasks_too(wall: Wall, served: Served) -> None:
    async def work() -> None:
        options = llm.aoptions(wall, "openai", gap=SHORT)
        async with openai.AsyncOpenAI(api_key="k", base_url=served.url, **options) as sdk:
            stream = await sdk.chat.completions.create(
                model="ms:0:1:3", messages=[{"role": "user", "content": "?"}], stream=True
            )
            assert running(wall) == 1
            assert [part.choices[0].delta.content async for part in stream] == ["hi"] * 3
            assert running(wall) == 0

    asyncio.run(work())


def test_anthropic_too(served: Served) -> None:
    wall = Wall()
    options = llm.options(wall, "anthropic")
    with anthropic.Anthropic(api_key="k", base_url=served.url, **options) as sdk:
        message = sdk.messages.create(model="ms:0:0:1", max_tokens=9, messages=[{"role": "user", "content": "?"}])
    assert message.content[0].text == "hi"  # type: ignore[union-attr]
    assert [target.name for target in wall] == ["anthropic"]


def test_an_sdk_that_repeats_by_itself_is_found(
    wall: Wall, served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(twice, "_said", set())
    wall = Wall()
    wall.target("openai", breaker=CircuitBreaker(99), retry=Retry(3, base_delay=0.001, retry_budget=None))
    options = llm.options(wall, "openai") | {"max_retries": 1}
    with caplog.at_level(logging.WARNING, "seawall"), openai.OpenAI(api_key="k", base_url=served.url, **options) as sdk:
        for _ in range(2):
            with pytest.raises(openai.InternalServerError):
                ask(sdk, "status:503")
    said = [record.getMessage() for record in caplog.records if "the SDK" in record.getMessage()]
    assert len(said) == 1
    assert "2 times 3 of Seawall's: up to 6 calls to openai for one" in said[0]
    assert len(served.asked) == 12


def test_a_setting_that_cannot_work_is_said(wall: Wall) -> None:
    with pytest.raises(seawall.ConfigError, match="whose protocol"):
        llm.options(wall, "mistral")
    with pytest.raises(seawall.ConfigError, match="first is in seconds"):
        llm.options(wall, "openai", first_token=0)
    with pytest.raises(seawall.ConfigError, match="gap is in seconds"):
        llm.options(wall, "openai", gap=-1)
