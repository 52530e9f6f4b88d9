"""The hub's numbers for Prometheus: the text format 0.0.4, written without a client library.

Labels have bounded values: targets come from the settings, codes are counted by name up to a bound, all else is fixed.
Source of the format: the exposition formats page of Prometheus' documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import seawall

from ..plan import Reason
from ..policies.states import Mode

if TYPE_CHECKING:
    from ..policies.states import BreakerSnapshot
    from .backend import Backend
    from .logfile import LogFile
    from .server import Hub

__all__ = ["BUCKETS", "CONTENT_TYPE", "FAMILIES", "metric_pieces"]

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

BUCKETS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0, 60.0, inf,
)  # fmt: skip
"""Upper bounds of the latency buckets in seconds: OpenTelemetry's for HTTP, and two more at each end."""

_LINES = 1000  # in one piece, so that putting a page of megabytes together is no long step either
STATES = ("closed", "open", "half_open", "forced_open", "forced_closed", "disabled")
_FORCED = frozenset({Mode.FORCED_OPEN, Mode.FORCED_CLOSED, Mode.DISABLED})  # these hide what the machine would say

FAMILIES: dict[str, tuple[str, str]] = {
    "seawall_hub_info": ("gauge", "Always 1; the version is a label."),
    "seawall_hub_start_time_seconds": ("gauge", "When the hub started, in seconds since the epoch."),
    "seawall_hub_ready": ("gauge", "1 while the hub takes new work, else 0."),
    "seawall_hub_clients": ("gauge", "Connections from clients."),
    "seawall_hub_clients_limit": ("gauge", "Connections from clients there is room for."),
    "seawall_hub_refused_total": ("counter", "Requests that ended before they had a target, by code."),
    "seawall_hub_bad_budgets_total": ("counter", "Budgets sent by clients that could not be read, and were ignored."),
    "seawall_hub_ignored_budgets_total": ("counter", "Requests whose budget was ignored, as their listener is set to."),
    "seawall_log_lines_written_total": ("counter", "Lines that are in the log."),
    "seawall_log_lines_dropped_total": ("counter", "Lines lost because the log's queue was full."),
    "seawall_log_lines_failed_total": ("counter", "Lines lost because writing them failed."),
    "seawall_calls_total": ("counter", "Calls that have ended, by outcome code."),
    "seawall_call_duration_seconds": ("histogram", "From the head of the request to the end, refusals included."),
    "seawall_rejections_total": ("counter", "Calls refused without calling the target: its circuit open, or no room."),
    "seawall_retries_total": ("counter", "Further attempts decided upon, where one had failed."),
    "seawall_retry_stopped_total": ("counter", "Calls that took more than one attempt or were given up, by reason."),
    "seawall_breaker_started_total": ("counter", "Attempts that the breaker let through to the target."),
    "seawall_breaker_state": ("gauge", "1 for the state the circuit is in, 0 for the others."),
    "seawall_breaker_opened_total": ("counter", "How often the circuit opened."),
    "seawall_breaker_failures": ("gauge", "Failures in a row."),
    "seawall_bulkhead_in_flight": ("gauge", "Calls running."),
    "seawall_bulkhead_limit": ("gauge", "Calls that may run at once."),
    "seawall_bulkhead_peak_in_flight": ("gauge", "The most calls that have run at once since the start."),
    "seawall_queue_depth": ("gauge", "Calls waiting for room."),
    "seawall_queue_limit": ("gauge", "Calls that may wait for room."),
    "seawall_target_connections": ("gauge", "Connections to the target: at work, and kept idle."),
}
"""Each metric's type and help, in the order of the page."""


def metric_pieces(hub: Hub) -> Iterator[bytes]:
    """The page, in pieces. Those made while the targets are looked at are empty: a metric's lines stand together.

    To be called on the hub's own thread; time may pass between the pieces. Cost: 0.1 ms a target.
    """
    page = _Page()
    _add_hub(page, hub)
    for backend in list(hub.backends.values()):
        _add_target(page, backend)
        yield b""
    for name in FAMILIES:
        yield from page.family(name)


class _Page:
    """Lines in wait, by metric."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {name: [] for name in FAMILIES}

    def add(self, name: str, value: float, labels: str = "") -> None:
        """A sample of a metric that is no histogram."""
        self._lines[name].append(f"{name}{{{labels}}} {value!r}\n" if labels else f"{name} {value!r}\n")

    def add_histogram(self, name: str, counts: list[int], total: float, labels: str) -> None:
        """A sample of a histogram: ``counts`` at or below each of :data:`BUCKETS`."""
        lines = self._lines[name]
        lines += [
            f'{name}_bucket{{{labels},le="{bound}"}} {count}\n' for bound, count in zip(_BOUNDS, counts, strict=True)
        ]
        lines.append(f"{name}_sum{{{labels}}} {total!r}\n{name}_count{{{labels}}} {counts[-1]}\n")

    def family(self, name: str) -> Iterator[bytes]:
        """The metric with its help and type; nothing where it has no sample."""
        lines = self._lines[name]
        if lines:
            kind, what = FAMILIES[name]
            yield f"# HELP {name} {what}\n# TYPE {name} {kind}\n".encode()
        for start in range(0, len(lines), _LINES):
            yield "".join(lines[start : start + _LINES]).encode()


_BOUNDS = [f"{bound:g}" if bound < inf else "+Inf" for bound in BUCKETS]


def label(name: str, value: str) -> str:
    """``name="value"``, with what has a meaning of its own escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{escaped}"'


def _add_hub(page: _Page, hub: Hub) -> None:
    page.add("seawall_hub_info", 1, label("version", seawall.__version__))
    page.add("seawall_hub_start_time_seconds", round(hub.started_at, 3))
    page.add("seawall_hub_ready", int(hub.ready))
    page.add("seawall_hub_clients", len(hub.clients))
    page.add("seawall_hub_clients_limit", hub.most)
    for code, count in sorted(hub.refused.items()):
        page.add("seawall_hub_refused_total", count, label("code", code))
    page.add("seawall_hub_bad_budgets_total", hub.bad_budgets)
    page.add("seawall_hub_ignored_budgets_total", hub.ignored_budgets)
    _add_log(page, hub.breaker_log, "breaker")
    if hub.access_log is not None:
        _add_log(page, hub.access_log, "access")


def _add_log(page: _Page, log: LogFile, name: str) -> None:
    which = label("log", name)
    page.add("seawall_log_lines_written_total", log.written, which)
    page.add("seawall_log_lines_dropped_total", log.dropped, which)
    page.add("seawall_log_lines_failed_total", log.failed, which)


def _add_target(page: _Page, backend: Backend) -> None:
    breaker, bulkhead = backend.breaker.snapshot(), backend.bulkhead.snapshot()
    target = label("target", backend.name)
    for code, count in sorted(backend.codes.items()):
        page.add("seawall_calls_total", count, f"{target},{label('code', code)}")
    latency = backend.latency
    page.add_histogram("seawall_call_duration_seconds", latency.cumulative(BUCKETS), latency.total, target)
    page.add("seawall_rejections_total", breaker.rejected, f'{target},reason="open"')
    page.add("seawall_rejections_total", bulkhead.rejected, f'{target},reason="bulkhead"')
    if backend.retry is not None:
        retry = backend.retry.snapshot()
        page.add("seawall_retries_total", retry.retries, target)
        for reason in Reason:
            count = retry.stopped.get(reason.value, 0)
            page.add("seawall_retry_stopped_total", count, f"{target},{label('reason', reason.value)}")
    page.add("seawall_breaker_started_total", breaker.started, target)
    current = _state(breaker)
    for state in STATES:
        page.add("seawall_breaker_state", int(state == current), f'{target},state="{state}"')
    page.add("seawall_breaker_opened_total", breaker.opened, target)
    page.add("seawall_breaker_failures", breaker.failures, target)
    page.add("seawall_bulkhead_in_flight", bulkhead.in_flight, target)
    page.add("seawall_bulkhead_limit", bulkhead.max_concurrent, target)
    page.add("seawall_bulkhead_peak_in_flight", bulkhead.peak_active, target)
    page.add("seawall_queue_depth", bulkhead.waiting, target)
    if bulkhead.max_queue is not None:
        page.add("seawall_queue_limit", bulkhead.max_queue, target)
    idle = len(backend.idle)
    page.add("seawall_target_connections", backend.connections - idle, f'{target},state="busy"')
    page.add("seawall_target_connections", idle, f'{target},state="idle"')


def _state(breaker: BreakerSnapshot) -> str:
    """The one label that is 1: a mode set by hand says more than the state under it."""
    return (breaker.mode if breaker.mode in _FORCED else breaker.state).lower()
