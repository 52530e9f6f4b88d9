"""The settings of one target, validated once; what they mean in numbers; and the flag that says them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal
from urllib.parse import urlsplit

from seawall.errors import ConfigError
from seawall.outcome import SYSTEM_ERRORS

from .address import is_host
from .values import Choice, Failing, Failures, Kind, Pattern, Seconds, Switch, Whole, faults_in, nearest

__all__ = ["ONLY_TARGET", "TARGET_KINDS", "TargetSettings", "arithmetic", "parse_target", "split_target", "warnings_of"]

ONLY_TARGET = "target"
"""The name of a target that was given without one."""

RESERVED = "tx"
LONGEST_BUDGET_MS = 86_400_000
_HOST_HEADER = r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?"

TARGET_KINDS: dict[str, Kind] = {
    "fail_threshold": Whole(1, 1_000_000),
    "reset_timeout": Seconds(),
    "max_inflight": Whole(1, 1_000_000),
    "max_queue": Whole(0, 1_000_000),
    "max_wait": Seconds(zero=True),
    "connect": Seconds(),
    "read": Seconds(),
    "body_gap": Seconds(),
    "budget_ms": Whole(1, LONGEST_BUDGET_MS, "ms"),
    "min_ms": Whole(0, LONGEST_BUDGET_MS, "ms"),
    "retry": Whole(1, 100),
    "retry_base_ms": Whole(0, LONGEST_BUDGET_MS, "ms"),
    "retry_max_delay_ms": Whole(0, LONGEST_BUDGET_MS, "ms"),
    "idempotent": Switch(),
    "budget_margin_ms": Whole(0, LONGEST_BUDGET_MS, "ms"),
    "budget_scope": Choice(("auto", "head", "all")),
    "failures": Failing(),
    "host_header": Pattern(_HOST_HEADER, "target, client, or a host to send, as in api.example:8080", "target|client|HOST"),
    "ca": Pattern(r"[^\0]+", "the path of a PEM file", "FILE", none=True),
    "sni": Pattern(r"[A-Za-z0-9._-]{1,253}", "a host name, as in api.example", "HOST", none=True),
    "verify": Switch(),
    "keepalive": Seconds(zero=True),
}
"""How each setting of a target is written and what it may be, by its field; the key is the field with hyphens."""

_PLACE_KINDS: dict[str, Kind] = {
    "name": Pattern(r"[A-Za-z0-9_.-]{1,64}", "1 to 64 letters, digits, dots, hyphens or underscores"),
    "scheme": Choice(("http", "https")),
    "port": Whole(1, 65535),
    "path": Pattern(r"(/[\x21\x22\x24-\x3e\x40-\x7e]*[\x21\x22\x24-\x2e\x30-\x3e\x40-\x7e])?",
                    "empty, or begins with a slash and ends without one, as in /api"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetSettings:
    """One target: where it is, and how far it is trusted.

    Attributes:
        name: 1 to 64 of ``A-Z a-z 0-9 _ . -``, case-sensitive; ``tx`` is reserved.
        host: IP address without brackets, or host name.
        port: 1 to 65535.
        scheme: ``http`` or ``https``.
        path: What stands before every path sent there, without a final slash; empty by default.
        fail_threshold: Failures in a row that open the circuit. 5, as most breakers.
        reset_timeout: Seconds open before a trial. 10.
        max_inflight: Calls at once. 10.
        max_queue: Calls that may wait for room. 0: a call without room is refused at once, never queued.
        max_wait: Seconds a call may wait in line. 10; means nothing without a line.
        connect: Seconds to connect, TLS included. 0.3: more means unreachable, not slow.
        read: Seconds without a byte until the answer's head is in. 2.
        body_gap: Seconds without a byte inside a body. 30.
        budget_ms: Milliseconds for a request that brings no budget of its own, and the most it may bring. 3000.
        min_ms: With less left than this the call is not made, in milliseconds. 0.
        retry: Attempts in all, the first one included. 1: none is repeated.
        retry_base_ms: Milliseconds that the first wait between attempts may last; the next may last twice as long. 50.
        retry_max_delay_ms: Milliseconds that no wait exceeds. 2000.
        idempotent: Whether a transaction may be sent to it twice. False: only one that has certainly not left is repeated.
        budget_margin_ms: Milliseconds taken off the budget that the target is told, for the way there and back. 0.
        budget_scope: What the budget covers: ``head``, ``all``, or ``auto`` (the whole ``/tx``; elsewhere the head, and
            the body as well when the client sent the budget).
        failures: The codes that count against it, or ``any`` (all but ``0000``). E500, E901, E902, E903.
        host_header: ``target`` sends the target's own, ``client`` what the client sent; any other text is sent itself.
        ca: PEM file of the authorities trusted for ``https``; ``None``: the system's.
        sni: The name asked for and verified in TLS; ``None``: the host.
        verify: Whether the certificate is verified. True.
        keepalive: Seconds an idle connection to the target is kept; 0 keeps none. 60.

    Raises:
        ConfigError: One or more settings cannot work; one line each, all at once.
    """

    name: str
    host: str
    port: int
    scheme: Literal["http", "https"] = "http"
    path: str = ""
    fail_threshold: int = 5
    reset_timeout: float = 10.0
    max_inflight: int = 10
    max_queue: int = 0
    max_wait: float = 10.0
    connect: float = 0.3
    read: float = 2.0
    body_gap: float = 30.0
    budget_ms: int = 3000
    min_ms: int = 0
    retry: int = 1
    retry_base_ms: int = 50
    retry_max_delay_ms: int = 2000
    idempotent: bool = False
    budget_margin_ms: int = 0
    budget_scope: Literal["auto", "head", "all"] = "auto"
    failures: Failures = SYSTEM_ERRORS
    host_header: str = "target"
    ca: str | None = None
    sni: str | None = None
    verify: bool = True
    keepalive: float = 60.0

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        faults = faults_in(values, _PLACE_KINDS | TARGET_KINDS) or self._together()
        if self.name == RESERVED:
            faults.append("name: tx is reserved for the transaction door; choose another")
        if not is_host(self.host):
            faults.append(f"host: is an IP address without brackets or a host name in ASCII, not {self.host!r}")
        if faults:
            raise ConfigError("\n".join(f"target {self.name}: {fault}" for fault in faults))

    def _together(self) -> list[str]:
        """What is wrong between settings that are each right."""
        budget, faults = self.budget_ms, []
        if self.min_ms >= budget:
            faults.append(f"min_ms: {self.min_ms} of a budget of {budget} ms leaves no call that could be made")
        if self.budget_margin_ms >= budget:
            faults.append(f"budget_margin_ms: {self.budget_margin_ms} of a budget of {budget} ms leaves the target nothing")
        base, most = self.retry_base_ms, self.retry_max_delay_ms
        if most < base:
            faults.append(f"retry_max_delay_ms: {most} ms is shorter than retry_base_ms, {base} ms: raise the one")
        if self.scheme == "http":
            given = [key for key in ("ca", "sni") if getattr(self, key) is not None]
            given += [] if self.verify else ["verify"]
            faults += [f"{key}: has a meaning only for https://, and this target is http://" for key in given]
        return faults

    @property
    def url(self) -> str:
        """Where it is, base path included."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


def split_target(text: str) -> tuple[str | None, str, list[str]]:
    """Cut ``NAME=URL,key=value,…`` into name (``None`` where none is given), URL and settings."""
    place, *settings = text.split(",")
    name, equals, url = place.partition("=")
    if not equals or "://" in name:
        return None, place, settings
    return name, url, settings


def parse_target(text: str, defaults: Mapping[str, Any] | None = None) -> TargetSettings:
    """The target that ``--target`` says: ``NAME=URL``, followed by its own settings.

    ``CLAIM=http://127.0.0.1:9202,max-inflight=40,read=5,failures=E500+E901``. Settings stand behind the URL, separated
    by commas, so a comma inside the URL is written ``%2C``; codes are joined by ``+``. Bare numbers are seconds, or
    milliseconds for keys that end in ``-ms``; ``250ms``, ``2s`` and ``1m`` carry their unit.

    Args:
        text: The text of the flag. Without ``NAME=`` the target is called ``target``.
        defaults: Fields of :class:`TargetSettings` that hold where the text says nothing.

    Raises:
        ConfigError: One or more faults; one line each, all at once.
    """
    name, url, settings = split_target(text)
    called = ONLY_TARGET if name is None else name
    place, faults = _place(url)
    own = _own_settings(settings, faults)
    if faults:
        raise ConfigError("\n".join(f"target {called or text}: {fault}" for fault in faults))
    return TargetSettings(**{**(defaults or {}), **own, **place, "name": called})


def _place(url: str) -> tuple[dict[str, Any], list[str]]:
    """Scheme, host, port and path of a URL, and what is wrong with it."""
    like = "write NAME=http://HOST:PORT or NAME=https://HOST:PORT/base"
    if not url.isascii() or any(char <= " " or char == "\x7f" for char in url):
        return {}, [f"{url!r} has spaces or letters beyond ASCII: percent-encode the path, write the host in punycode"]
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return {}, [f"{url!r} is no URL ({error}): {like}"]
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return {}, [f"{url!r} is no http:// or https:// URL: {like}"]
    faults = []
    if "@" in parts.netloc:
        faults.append("a URL with a user or password in it is not supported: let the client send its own header")
    if "?" in url or "#" in url:
        faults.append(f"{url!r} has a query or a fragment; only a base path may follow the host")
    place: dict[str, Any] = {"scheme": parts.scheme, "host": parts.hostname, "path": parts.path.rstrip("/")}
    place["port"] = (443 if parts.scheme == "https" else 80) if port is None else port
    return place, faults


def _own_settings(settings: list[str], faults: list[str]) -> dict[str, Any]:
    """Values of the ``key=value`` pairs; what is wrong is added to ``faults``."""
    known = {field.replace("_", "-"): field for field in TARGET_KINDS}
    own: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        field = known.get(key)
        if not equals:
            faults.append(f"{setting!r} is no key=value; a comma inside the URL is written %2C, codes are joined by +")
        elif field is None:
            faults.append(f"no such setting: {key}{nearest(key, known) or '; there are: ' + ', '.join(known)}")
        elif field in own:
            faults.append(f"{key} is given twice")
        else:
            try:
                own[field] = read_value(field, text)
            except ValueError as error:
                faults.append(f"{key}: {error}")
    return own


def read_value(field: str, text: str) -> Any:
    """The value that text says for a field of :class:`TargetSettings`; ``ValueError`` says what is wrong."""
    kind = TARGET_KINDS[field]
    value = kind.read(text)
    fault = kind.fault(value)
    if fault is None and field == "ca" and not os.access(text, os.R_OK):
        fault = f"{text!r} cannot be read; it is the PEM file of the authorities to trust"
    if fault is not None:
        raise ValueError(fault)
    return value


def arithmetic(target: TargetSettings) -> str:
    """What the settings amount to, in a line for an operator to check."""
    line = f"up to {target.max_queue} waiting {target.max_wait:g} s" if target.max_queue else "none waiting"
    parts = [f"connect {target.connect:g}", f"read {target.read:g}"]
    wait = target.connect + target.read
    if target.max_queue:
        parts.insert(0, f"in line {target.max_wait:g}")
        wait += target.max_wait
    budget, how = target.budget_ms / 1000, " + ".join(parts)
    if target.retry > 1:  # what the target asks for in Retry-After is waited for as well: only the budget ends that
        wait, how = budget, f"{target.retry} times {how}, and waits"
    failing = "answers other than 0000" if target.failures == "any" else "failures"
    again = f"; up to {target.retry} attempts where a request may be sent again" if target.retry > 1 else ""
    return (
        f"{target.name}  {target.url}  {target.max_inflight} at once, {line}: "
        f"at 50 ms a call {target.max_inflight * 20} requests/s; a caller waits at most "
        f"{min(wait, budget):g} s for the first byte ({how}), budget {budget:g} s; "
        f"opens after {target.fail_threshold} {failing} in a row for {target.reset_timeout:g} s{again}"
    )


def warnings_of(target: TargetSettings) -> list[str]:
    """What is allowed and yet probably not meant, a line each."""
    budget, found = target.budget_ms / 1000, []
    if target.connect + target.read > budget:
        found.append(
            f"connect {target.connect:g} s + read {target.read:g} s is more than the budget of {budget:g} s: the budget "
            f"cuts a hung call first, and cuts open the circuit later than timeouts do"
        )
    if target.max_queue and target.max_wait >= budget:
        found.append(f"max-wait {target.max_wait:g} s reaches the budget of {budget:g} s, which ends the wait first")
    if target.read > 300:
        found.append(f"read {target.read:g} s: a bare number is seconds; {target.read:g}ms would be milliseconds")
    if not target.verify:
        found.append("the certificate is not verified: anyone on the way can answer in the target's place")
    return [f"{target.name}: {text}" for text in found]
