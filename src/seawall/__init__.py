"""Seawall keeps one slow or dead dependency from dragging down everything that calls it.

Where things are; a line imports from the lines above it only::

    errors      every error, on one page
    outcome     success, failure, ignored; what counts as a failure; the hub's codes
    problem     how it is said to whoever asked over HTTP
    events      what happened, told in order and never under a lock
    counters    exact counts without a lock on the way in
    plan        retrying, written once: what is to be done, and in what order
    drivers     who waits: threads, asyncio, callbacks, virtual time
    deadline    the time that is left, for everything done on behalf of one request
    headers     that time on the wire: read from callers, told to callees
    guard       how policies are put around a callable
    policies    breaker, bulkhead, retry, timeout: they decide, and never wait
    target      a named stack of policies in one fixed order
    wall        all targets of a program
    adapters    all this inside HTTP clients and web frameworks
    llm         what the constructors of LLM clients take
    budgetplan  budget plans: checked, drafted, explained, argued for in a report
    faults      servers that misbehave on command
    measure     calls that are measured: where each ended, within what was left
    hub         the relay
    demo        the main job, shown in half a minute
    cli         one module a command
"""

import importlib
import typing

from .deadline import Deadline, budget, carry, check, current_deadline, detach, remaining
from .errors import (
    BulkheadFullError,
    CircuitBreakerError,
    CircuitOpenError,
    ConfigError,
    DeadlineExceededError,
    NoBudgetError,
    NoThreadError,
    RejectedError,
    SeawallError,
    TimeoutExceededError,
)
from .events import ModeChanged, RetryEnded, RetryScheduled, StateChanged
from .headers import BudgetHeaders, retry_after
from .outcome import Outcome, on_result
from .policies.breaker import CircuitBreaker
from .policies.bulkhead import Bulkhead
from .policies.retry import Retry, RetrySnapshot
from .policies.retry_budget import RetryBudget
from .policies.slots import BulkheadSnapshot
from .policies.states import BreakerSnapshot, Mode, State
from .policies.timeout import Timeout
from .target import Target, TargetSnapshot
from .wall import Wall

__version__ = "0.1.0"

if not typing.TYPE_CHECKING:  # a type checker wants the import, and would take any name for one of these

    def __getattr__(name):
        """``seawall.adapters`` and ``seawall.llm`` without an import of their own; nothing is loaded before."""
        if name in ("adapters", "llm"):
            return importlib.import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BreakerSnapshot",
    "BudgetHeaders",
    "Bulkhead",
    "BulkheadFullError",
    "BulkheadSnapshot",
    "CircuitBreaker",
    "CircuitBreakerError",
    "CircuitOpenError",
    "ConfigError",
    "Deadline",
    "DeadlineExceededError",
    "Mode",
    "ModeChanged",
    "NoBudgetError",
    "NoThreadError",
    "Outcome",
    "RejectedError",
    "Retry",
    "RetryBudget",
    "RetryEnded",
    "RetryScheduled",
    "RetrySnapshot",
    "SeawallError",
    "State",
    "StateChanged",
    "Target",
    "TargetSnapshot",
    "Timeout",
    "TimeoutExceededError",
    "Wall",
    "budget",
    "carry",
    "check",
    "current_deadline",
    "detach",
    "on_result",
    "remaining",
    "retry_after",
]
