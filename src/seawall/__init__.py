"""Seawall keeps one slow or dead dependency from dragging down everything that calls it.

Where things are; a line imports from the lines above it only::

    errors      every error, on one page
    outcome     success, failure, ignored; what counts as a failure; the hub's codes
    events      what happened, told in order and never under a lock
    counters    exact counts without a lock on the way in
    drivers     who waits: threads, asyncio
    guard       how policies are put around a callable
    policies    breaker, bulkhead, timeout: they decide, and never wait
    target      a named stack of policies in one fixed order
    wall        all targets of a program
    faults      servers that misbehave on command
    hub         the relay
    demo        the main job, shown in half a minute
    cli         one module a command
"""

from .errors import (
    BulkheadFullError,
    CircuitBreakerError,
    CircuitOpenError,
    ConfigError,
    DeadlineExceededError,
    NoBudgetError,
    RejectedError,
    SeawallError,
    TimeoutExceededError,
)
from .events import ModeChanged, StateChanged
from .outcome import Outcome, on_result
from .policies.breaker import CircuitBreaker
from .policies.bulkhead import Bulkhead
from .policies.slots import BulkheadSnapshot
from .policies.states import BreakerSnapshot, Mode, State
from .policies.timeout import Timeout
from .target import Target, TargetSnapshot
from .wall import Wall

__version__ = "0.1.0"

__all__ = [
    "BreakerSnapshot",
    "Bulkhead",
    "BulkheadFullError",
    "BulkheadSnapshot",
    "CircuitBreaker",
    "CircuitBreakerError",
    "CircuitOpenError",
    "ConfigError",
    "DeadlineExceededError",
    "Mode",
    "ModeChanged",
    "NoBudgetError",
    "Outcome",
    "RejectedError",
    "SeawallError",
    "State",
    "StateChanged",
    "Target",
    "TargetSnapshot",
    "Timeout",
    "TimeoutExceededError",
    "Wall",
    "on_result",
]
