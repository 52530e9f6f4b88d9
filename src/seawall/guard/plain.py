"""The plain form: star arguments, and the policies' methods called one by one. It is the specification.

A slot is given back in the guard's own frame, by two steps without a call: forget it, add it to the list. So a signal
cannot be handled between them, and the recursion limit cannot be hit. A method that did it could be interrupted at its
first line, and the slot would be gone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any

from ..drivers import aio, threads
from ..outcome import SUCCESS
from .kinds import ASYNC_GENERATOR, COROUTINE, FUNCTION, GENERATOR, Kind

if TYPE_CHECKING:
    from ..policies.breaker import CircuitBreaker
    from ..policies.bulkhead import Bulkhead
    from ..policies.states import Token

__all__ = ["PLAIN", "Passage", "run_coroutine", "run_function", "run_generator"]


class Passage:
    """What one call has taken on its way in, and gives back once: a slot (``held``) and a token.

    The order is fixed: refuse if open, bulkhead, breaker, call.

    With a bulkhead the breaker is asked twice. Before the bulkhead, so that an open circuit refuses at once; and after
    it, since it may have opened while the call stood in line. Only the second asking takes anything: nobody in line
    holds a trial.
    """

    __slots__ = ("breaker", "bulkhead", "held", "token")

    def __init__(self, stack: Any) -> None:
        self.breaker: CircuitBreaker | None = stack.breaker
        self.bulkhead: Bulkhead | None = stack.bulkhead
        self.token: Token | None = None
        self.held: list[bool | None] | None = None

    def enter(self) -> None:
        """Take slot and token, waiting in line for the slot if the bulkhead allows."""
        if self.bulkhead is not None:
            if self.breaker is not None:
                self.breaker.check()
            ticket = self.bulkhead.take(self)
            if ticket is not None:
                threads.wait_in_line(self.bulkhead, ticket, self.bulkhead.patience(None))
        self._start()

    async def aenter(self) -> None:
        """:meth:`enter` for a task."""
        if self.bulkhead is not None:
            if self.breaker is not None:
                self.breaker.check()
            ticket = self.bulkhead.take(self)
            if ticket is not None:
                await aio.wait_in_line(self.bulkhead, ticket, self.bulkhead.patience(None))
        self._start()

    def _start(self) -> None:
        if self.breaker is not None:
            self.token = self.breaker.admit()
        if self.bulkhead is not None:
            next(self.bulkhead.started_ticks)

    # -- the end. The guard has given the slot back already, where it has a frame of its own to do it in
    def succeeded(self, result: object) -> None:
        """The call returned ``result``."""
        self._give_back()
        if self.breaker is not None and self.token is not None:
            self.breaker.returned(self.token, result)

    def ended(self) -> None:
        """The block or generator came to its end. It has no result, so no predicate is asked for its opinion of one."""
        self._give_back()
        if self.breaker is not None and self.token is not None:
            self.breaker.settle(self.token, SUCCESS)

    def failed(self, error: BaseException, fn: object = None) -> None:
        """The call raised ``error``, or was never made because a policy refused it with ``error``."""
        self._give_back()
        if self.breaker is not None and self.token is not None:
            self.breaker.raised(self.token, error, fn)

    refused = failed

    def _give_back(self) -> None:
        if (free := self.held) is not None:
            self.held = None
            free.append(True)
        if self.bulkhead is not None and self.bulkhead.alert:
            self.bulkhead.pump()


def run_function(stack: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call ``fn`` once, behind ``stack``."""
    passage = Passage(stack)
    try:
        try:
            passage.enter()
            result = fn(*args, **kwargs)
        finally:
            if (free := passage.held) is not None:
                passage.held = None
                free += (True,)
    except BaseException as error:
        passage.failed(error, fn)
        raise
    passage.succeeded(result)
    return result


async def run_coroutine(stack: Any, fn: Callable[..., Awaitable[Any]], /, *args: Any, **kwargs: Any) -> Any:
    """Await ``fn(...)`` once, behind ``stack``."""
    passage = Passage(stack)
    try:
        try:
            await passage.aenter()
            result = await fn(*args, **kwargs)
        finally:
            if (free := passage.held) is not None:
                passage.held = None
                free += (True,)
    except BaseException as error:
        passage.failed(error, fn)
        raise
    passage.succeeded(result)
    return result


def run_generator(
    stack: Any, fn: Callable[..., Generator[Any, Any, Any]], /, *args: Any, **kwargs: Any
) -> Generator[Any, Any, Any]:
    """Run the generator ``fn(...)`` behind ``stack``, from its first ``next`` to its end."""
    passage = Passage(stack)
    try:
        try:
            passage.enter()
            result = yield from fn(*args, **kwargs)
        finally:
            if (free := passage.held) is not None:
                passage.held = None
                free += (True,)
    except GeneratorExit:  # it has yielded, and its consumer wants no more: that is no failure
        passage.ended()
        raise
    except BaseException as error:
        passage.failed(error, fn)
        raise
    passage.ended()
    return result


def plain_function(stack: Any, fn: Callable[..., Any]) -> Callable[..., Any]:
    """A plain function that calls ``fn`` behind ``stack``."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        return run_function(stack, fn, *args, **kwargs)

    return guarded


def plain_coroutine(stack: Any, fn: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A coroutine function that awaits ``fn(...)`` behind ``stack``."""

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        return await run_coroutine(stack, fn, *args, **kwargs)

    return guarded


def plain_generator(
    stack: Any, fn: Callable[..., Generator[Any, Any, Any]]
) -> Callable[..., Generator[Any, Any, Any]]:
    """A generator function that runs ``fn(...)`` behind ``stack``."""

    def guarded(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        return (yield from run_generator(stack, fn, *args, **kwargs))

    return guarded


def plain_async_generator(
    stack: Any, fn: Callable[..., AsyncGenerator[Any, Any]]
) -> Callable[..., AsyncGenerator[Any, Any]]:
    """An async generator function that runs ``fn(...)`` behind ``stack``, from its first item to its end."""

    async def guarded(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        passage = Passage(stack)
        try:
            try:
                await passage.aenter()
                inner = fn(*args, **kwargs)
                item = await anext(inner)
                while True:  # what `yield from` does, which async generators lack
                    try:
                        sent = yield item
                    except GeneratorExit:
                        await inner.aclose()
                        raise
                    except BaseException as thrown:
                        item = await inner.athrow(thrown)
                    else:
                        item = await inner.asend(sent)
            finally:
                if (free := passage.held) is not None:
                    passage.held = None
                    free += (True,)
        except (StopAsyncIteration, GeneratorExit) as end:  # exhausted, or its consumer wants no more
            passage.ended()
            if isinstance(end, GeneratorExit):
                raise
        except BaseException as error:
            passage.failed(error, fn)
            raise

    return guarded


PLAIN: dict[Kind, Callable[[Any, Any], Callable[..., Any]]] = {
    FUNCTION: plain_function,
    COROUTINE: plain_coroutine,
    GENERATOR: plain_generator,
    ASYNC_GENERATOR: plain_async_generator,
}
