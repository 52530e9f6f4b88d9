"""The body of an answer of httpx or httpx2: holds the attempt's place until its end, and ends with the attempt's time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any

from ..errors import SeawallError
from .attempt import Attempt, running
from .exchange import KEEP

if TYPE_CHECKING:
    from .httpx_family import Gate

__all__ = ["AsyncBody", "HttpxAnswer", "SyncBody"]


class HttpxAnswer:
    """A response, and its body in between; see :class:`seawall.adapters.exchange.Answer`."""

    __slots__ = ("keep", "response", "status")

    def __init__(self, response: Any, body: SyncBody | AsyncBody) -> None:
        self.response, self.status, self.keep = response, response.status_code, body.keep
        if response.is_closed:  # a transport without sockets has given it whole: nobody will read it, or close it
            body.ended_before()
        response.stream = body

    def header(self, name: str) -> str | None:
        """The value of a header, or ``None``."""
        value: str | None = self.response.headers.get(name)
        return value


class _Body:
    def __init__(self, inner: Any, attempt: Attempt, gate: Gate, request: Any) -> None:
        self._inner, self._attempt, self._request = inner, attempt, request
        self._natives, self._gap = gate.family.natives, gate.protection.gap
        self._kept: list[bytes] = []
        self._rest: Any = None  # what is left to be read after that

    def ended_before(self) -> None:
        """It is at hand already, as a whole."""
        self._attempt.finish()

    def _broke(self, error: BaseException) -> None:
        told = self._attempt.verdict(error, self._natives)
        self._attempt.broke(told, self._natives)
        if told is not error and isinstance(told, SeawallError):
            raise self._natives.of(told, self._request) from error

    def _look(self) -> None:
        """After each part: the first is there; and is there time for more?"""
        attempt = self._attempt
        attempt.body_began(self._gap)
        if attempt.remaining() == 0.0:
            told = attempt.exceeded()
            attempt.broke(told, self._natives)
            raise self._natives.of(told, self._request)


class SyncBody(_Body):
    """:class:`_Body` for threads."""

    def __iter__(self) -> Iterator[bytes]:
        return self._parts() if self._rest is None else chain(self._kept, self._rest)

    def _parts(self) -> Iterator[bytes]:
        attempt, parts = self._attempt, iter(self._inner)
        try:
            if attempt.end == inf:
                yield from parts
            else:
                while True:
                    before = running.set(attempt)
                    try:
                        part = next(parts, None)
                    finally:
                        running.reset(before)
                    if part is None:
                        break
                    self._look()
                    yield part
        except GeneratorExit:
            raise  # closed in the middle: close() tells
        except BaseException as error:
            self._broke(error)
            raise
        attempt.finish()

    def keep(self) -> bool:
        """Read it, if it is short: whether that was all."""
        self._rest, size = self._parts(), 0
        try:
            for part in self._rest:
                self._kept.append(part)
                size += len(part)
                if size > KEEP:
                    return False
        except Exception:
            return False  # whoever reads it gets to see that
        self._inner.close()  # its connection is of use again
        return True

    def close(self) -> None:
        """Nobody wants more of it."""
        try:
            self._inner.close()
        finally:
            self._attempt.finish()


class AsyncBody(_Body):
    """:class:`_Body` for tasks."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts() if self._rest is None else self._again()

    async def _again(self) -> AsyncIterator[bytes]:
        for part in self._kept:
            yield part
        async for part in self._rest:
            yield part

    async def _parts(self) -> AsyncIterator[bytes]:
        attempt, parts = self._attempt, aiter(self._inner)
        try:
            if attempt.end == inf:
                async for part in parts:
                    yield part
            else:
                while True:
                    before = running.set(attempt)
                    try:
                        part = await anext(parts, None)
                    finally:
                        running.reset(before)
                    if part is None:
                        break
                    self._look()
                    yield part
        except GeneratorExit:
            raise  # closed in the middle: aclose() tells
        except BaseException as error:
            self._broke(error)
            raise
        attempt.finish()

    async def keep(self) -> bool:
        """Read it, if it is short: whether that was all."""
        self._rest, size = self._parts(), 0
        try:
            async for part in self._rest:
                self._kept.append(part)
                size += len(part)
                if size > KEEP:
                    return False
        except Exception:
            return False  # whoever reads it gets to see that
        await self._inner.aclose()  # its connection is of use again
        return True

    async def aclose(self) -> None:
        """Nobody wants more of it."""
        try:
            await self._inner.aclose()
        finally:
            self._attempt.finish()
