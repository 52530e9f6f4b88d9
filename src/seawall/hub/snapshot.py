"""What the hub looks like now, as plain data: nothing is consumed or changed by looking.

The numbers of one target belong together; those of two targets may be a few milliseconds apart, because a page over
many targets is made in steps, between which the loop serves calls (:func:`json_pieces`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from math import inf
from typing import TYPE_CHECKING, Any

import seawall

if TYPE_CHECKING:
    from .backend import Backend
    from .histogram import Histogram
    from .logfile import LogFile
    from .server import Hub

__all__ = ["SCHEMA", "json_pieces", "snapshot"]

SCHEMA = "seawall.snapshot/1"
"""Members may be added under this name; none changes its meaning or goes away."""


def snapshot(hub: Hub) -> dict[str, Any]:
    """Everything at once; ``json.dumps`` takes it as it is.

    Names ending in ``_ms`` are milliseconds, ``uptime_s`` is seconds, ``null`` means "not known, or without end".
    To be called on the hub's own thread, inside its loop. Cost: 0.1 ms a target; the admin port takes it in steps.
    """
    return {**_top(hub), "targets": {backend.name: _target(backend) for backend in hub.backends.values()}}


def json_pieces(hub: Hub) -> Iterator[bytes]:
    """:func:`snapshot` as JSON, a piece for each target; time may pass between the pieces."""
    yield json.dumps({**_top(hub), "targets": {}}, allow_nan=False)[:-2].encode()
    between = ""
    for backend in list(hub.backends.values()):
        name, target = json.dumps(backend.name), json.dumps(_target(backend), allow_nan=False)
        yield f"{between}{name}: {target}".encode()
        between = ", "
    yield b"}}\n"


def _top(hub: Hub) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "time": datetime.now(UTC).astimezone().isoformat(timespec="milliseconds"),
        "hub": _hub(hub),
    }


def _hub(hub: Hub) -> dict[str, Any]:
    return {
        "version": seawall.__version__,
        "uptime_s": round(max(0.0, time.time() - hub.started_at), 3),
        "ready": hub.ready,
        "draining": hub.draining,
        "clients": len(hub.clients),
        "idle_clients": sum(client.exchange is None for client in hub.clients),
        "max_connections": hub.most,
        "tasks": len(asyncio.all_tasks(hub.loop)),
        "bad_budgets": hub.bad_budgets,
        "ignored_budgets": hub.ignored_budgets,
        "refused": dict(hub.refused),
        "breaker_log": _log(hub.breaker_log),
        "access_log": None if hub.access_log is None else _log(hub.access_log),
    }


def _log(log: LogFile) -> dict[str, int]:
    return {"written": log.written, "dropped": log.dropped, "failed": log.failed}


def _target(backend: Backend) -> dict[str, Any]:
    breaker, bulkhead = backend.breaker.snapshot(), backend.bulkhead.snapshot()
    return {
        "url": backend.settings.url,
        "state": str(breaker.state),
        "mode": str(breaker.mode),
        "mode_reason": breaker.mode_reason,
        "reason": breaker.reason,
        "failures": breaker.failures,
        "retry_after_ms": None if breaker.retry_after == inf else _ms(breaker.retry_after),
        "trial_due": breaker.trial_due,
        "opened": breaker.opened,
        "started": breaker.started,
        "rejected": breaker.rejected,
        "in_flight": bulkhead.in_flight,
        "waiting": bulkhead.waiting,
        "max_inflight": bulkhead.max_concurrent,
        "max_queue": bulkhead.max_queue,
        "peak_inflight": bulkhead.peak_active,
        "completed": bulkhead.completed,
        "no_room": bulkhead.rejected,
        "retry": _retry(backend),
        "limits": _limits(backend),
        "codes": dict(backend.codes),
        "latency_ms": _latency(backend.latency),
        "connections": {"open": backend.connections, "idle": len(backend.idle)},
    }


def _retry(backend: Backend) -> dict[str, Any] | None:
    if backend.retry is None:
        return None
    retry, budget = backend.retry.snapshot(), backend.retry.retry_budget
    return {
        "max_attempts": retry.max_attempts,
        "retries": retry.retries,
        "stopped": retry.stopped,
        "retry_budget_left": None if budget is None else round(budget.left, 1),
    }


def _limits(backend: Backend) -> dict[str, float]:
    settings = backend.settings
    return {
        "connect_ms": _ms(settings.connect),
        "read_ms": _ms(settings.read),
        "budget_ms": settings.budget_ms,
        "min_ms": settings.min_ms,
        "body_gap_ms": _ms(settings.body_gap),
        "fail_threshold": settings.fail_threshold,
        "reset_timeout_ms": _ms(settings.reset_timeout),
    }


def _latency(latency: Histogram) -> dict[str, float]:
    count = latency.count
    return {
        "count": count,
        "mean": _ms(latency.total / count) if count else 0,
        "p50": _ms(latency.quantile(0.5)),
        "p95": _ms(latency.quantile(0.95)),
        "p99": _ms(latency.quantile(0.99)),
    }


def _ms(seconds: float) -> float:
    """Milliseconds to the microsecond; whole ones without a fraction, as they were written in the settings."""
    ms = round(seconds * 1000, 3)
    return int(ms) if ms.is_integer() else ms
