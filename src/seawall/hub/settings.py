"""The hub's settings, validated once, and how the words of a command line become them.

What one target may set is in ``target_settings.py``, where the hub may listen in ``address.py``, how values are written
in ``values.py``; their public names are also here, so that this is the one module to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal, TypeVar

from seawall.errors import ConfigError

from .address import Address
from .target_settings import (
    LONGEST_BUDGET_MS,
    ONLY_TARGET,
    TARGET_KINDS,
    TargetSettings,
    arithmetic,
    parse_target,
    read_value,
    split_target,
    warnings_of,
)
from .values import Choice, Failures, Kind, Pattern, Seconds, Switch, Whole, faults_in

__all__ = [
    "HUB_KINDS",
    "LIMITS",
    "TARGET_KINDS",
    "Address",
    "Failures",
    "HubSettings",
    "TargetSettings",
    "arithmetic",
    "parse_target",
    "read_settings",
    "warnings_of",
]

T = TypeVar("T")

_PATH = r"/[\x21\x22\x24-\x3e\x40-\x7e]*"

HUB_KINDS: dict[str, Kind] = {
    "default": Pattern(r"[A-Za-z0-9_.-]{1,64}", "the name of a target", "NAME", none=True),
    "tx_path": Pattern(_PATH, "a path without query, as in /tx", "PATH", none=True),
    "breaker_log": Pattern(r"[^\0]+", "the path of a file", "FILE"),
    "access_log": Pattern(r"[^\0]+", "the path of a file, or - for standard output", "FILE|-", none=True),
    "admin_allow_remote": Switch(),
    "health_path": Pattern(_PATH, "a path without query, as in /healthz", "PATH", none=True),
    "head_timeout": Seconds(),
    "idle_timeout": Seconds(),
    "body_gap": Seconds(),
    "max_head": Whole(1024, 1 << 20),
    "max_body_tx": Whole(1, 1 << 30),
    "drain_delay": Seconds(zero=True),
    "drain_timeout": Seconds(zero=True),
    "trust_forwarded": Switch(),
    "server_timing": Choice(("auto", "all", "off")),
}
"""How each setting of the hub itself is written and what it may be; addresses and those of :data:`LIMITS` apart."""

LIMITS = {"max_connections": Whole(1, 10_000_000), "budget_max_ms": Whole(1, LONGEST_BUDGET_MS, "ms")}
"""Limits that there are only where they are given: ``None`` by default."""

_LOCAL = Address(host="127.0.0.1", port=8080)
_ADMIN = Address(host="127.0.0.1", port=8090)


@dataclass(frozen=True, kw_only=True, slots=True)
class HubSettings:
    """A hub: where it listens, what it relays to, and how patient it is with clients.

    Attributes:
        targets: At least one, each name once.
        listen: Where clients come in. 127.0.0.1:8080.
        default: The target of requests that name none, path unchanged; ``None``: they get 404.
        tx_path: The path of the transaction door, ``None``: no such door. ``/tx``; on the command line it is off when a
            default is given and no path.
        breaker_log: File that gets a line for each change of state. ``breaker.log`` in the working directory.
        access_log: File with a line for each request, ``-`` for standard output. ``None``: none.
        admin: Where the admin API listens, ``None``: nowhere. 127.0.0.1:8090.
        admin_allow_remote: Whether it may listen where other machines reach it. False: it has no passwords.
        health_path: A path on the main listener that answers 200 while the hub runs. ``None``: none.
        head_timeout: Seconds for a client to send its request head. 10.
        idle_timeout: Seconds an idle client connection is kept. 75, as nginx.
        body_gap: Seconds without a byte inside a client's body. 30.
        max_head: Bytes of a request head, 1 KiB to 1 MiB. 64 KiB.
        max_body_tx: Bytes of a transaction's body, which is read whole; up to 1 GiB. 1 MiB.
        budget_max_ms: Milliseconds that no request may take, whatever its target allows and its client asks for: where it
            is less than a target's ``budget_ms``, that is lowered to it. ``None``: each target's own alone.
        max_connections: Connections from clients at once; ``None``: what the limit of descriptors allows.
        drain_delay: Seconds to go on as before after SIGTERM, while balancers notice. 0.
        drain_timeout: Seconds for what runs to end, after that it is cut. 30.
        trust_forwarded: Whether ``X-Forwarded-*`` of clients are believed and extended. False: they are replaced.
        server_timing: Which answers say in ``Server-Timing`` where the time went: ``auto`` (those that waited in line or
            took more than one attempt), ``all`` or ``off``.

    Raises:
        ConfigError: One or more settings cannot work; one line each, all at once.
    """

    targets: tuple[TargetSettings, ...]
    listen: tuple[Address, ...] = (_LOCAL,)
    default: str | None = None
    tx_path: str | None = "/tx"
    breaker_log: str = "breaker.log"
    access_log: str | None = None
    admin: Address | None = _ADMIN
    admin_allow_remote: bool = False
    health_path: str | None = None
    head_timeout: float = 10.0
    idle_timeout: float = 75.0
    body_gap: float = 30.0
    max_head: int = 65536
    max_body_tx: int = 1 << 20
    budget_max_ms: int | None = None
    max_connections: int | None = None
    drain_delay: float = 0.0
    drain_timeout: float = 30.0
    trust_forwarded: bool = False
    server_timing: Literal["auto", "all", "off"] = "auto"

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        faults = faults_in(values, HUB_KINDS)
        faults += faults_in(values, {name: kind for name, kind in LIMITS.items() if values[name] is not None})
        faults += self._target_faults() + self._place_faults()
        if not faults:
            faults += self._cap_budgets()
        if faults:
            raise ConfigError("\n".join(faults))

    def _cap_budgets(self) -> list[str]:
        """Lower what is more than ``budget_max_ms``; what is wrong with that."""
        most = self.budget_max_ms
        if most is None:
            return []
        try:
            capped = tuple(replace(target, budget_ms=min(target.budget_ms, most)) for target in self.targets)
        except ConfigError as fault:
            return [f"budget_max_ms: {fault}"]
        object.__setattr__(self, "targets", capped)
        return []

    def _target_faults(self) -> list[str]:
        names = [target.name for target in self.targets]
        faults = [f"targets: {name} is given {names.count(name)} times" for name in _repeated(names)]
        if not names:
            faults.append("targets: at least one is needed, as in CORE=http://127.0.0.1:9201")
        elif self.default is not None and self.default not in names:
            faults.append(f"default: {self.default} is none of the targets: {', '.join(names)}")
        for key in ("tx_path", "health_path"):
            path = getattr(self, key)
            first = path[1:].partition("/")[0] if isinstance(path, str) else ""
            if first in names:
                faults.append(f"{key}: {path} would hide a part of target {first}; choose another path")
        if self.health_path is not None and self.health_path == self.tx_path:
            faults.append(f"health_path: {self.health_path} is the path of the transaction door as well")
        return faults

    def _place_faults(self) -> list[str]:
        faults = [] if self.listen else ["listen: at least one address is needed"]
        taken = [str(address) for address in self.listen if address.kind == "unix" or address.port]
        faults += [f"listen: {address} is given {taken.count(address)} times" for address in _repeated(taken)]
        if self.admin is None:
            return faults
        if self.admin.budget != "heed":
            faults.append("admin: budget=ignore has a meaning only behind --listen; nothing is called from the admin API")
        if str(self.admin) in taken:
            faults.append(f"admin: {self.admin} is where clients come in; the admin API has an address of its own, or off")
        if not self.admin.is_loopback and not self.admin_allow_remote:
            faults.append(
                f"admin: other machines can reach {self.admin}, and it asks for no password: "
                "choose 127.0.0.1, or allow it with admin_allow_remote (--admin-allow-remote)"
            )
        return faults


def _repeated(words: Sequence[str]) -> list[str]:
    return sorted({word for word in words if words.count(word) > 1})


def read_settings(*, targets: Sequence[str], listen: Sequence[str] = (), **flags: str | bool | None) -> HubSettings:
    """The settings that a command line says.

    Args:
        targets: The texts of ``--target``; see :func:`parse_target`. One alone may go without a name: then it is called
            ``target`` and is the default.
        listen: The texts of ``--listen``.
        flags: Field of :class:`HubSettings` or :class:`TargetSettings` to the text of its flag; ``None`` where it was
            not given. What a target may set holds for all targets that do not set it themselves; ``body_gap`` holds for
            clients as well.

    Raises:
        ConfigError: One or more faults; one line each, all at once.
    """
    for field in flags:
        if not (field in HUB_KINDS or field in TARGET_KINDS or field in LIMITS or field == "admin"):
            raise TypeError(f"read_settings() knows no flag {field!r}")
    faults: list[str] = []
    given = {field: text for field, text in flags.items() if text is not None}
    defaults = _read(given, TARGET_KINDS, read_value, faults)
    values = _read(given, HUB_KINDS, _read_own, faults) | _read_apart(given, faults)
    found = [_attempt(faults, partial(parse_target, defaults=defaults), text) for text in targets]
    places = [_attempt(faults, Address.parse, text, "--listen: ") for text in listen]
    if heard := tuple(place for place in places if place is not None):
        values["listen"] = heard
    nameless = [text for text in targets if split_target(text)[0] is None]
    if nameless and len(targets) > 1:
        faults += [f"--target {text}: of several targets each has a name, as in CORE={text}" for text in nameless]
    elif nameless:
        values.setdefault("default", ONLY_TARGET)
    if values.get("default") is not None:
        values.setdefault("tx_path", None)
    if not targets:
        faults.append("--target: at least one is needed, as in --target CORE=http://127.0.0.1:9201")
    known = [target for target in found if target is not None]
    if not targets or None in found:  # judge the rest all the same, without what only a whole list can tell
        known = known or [TargetSettings(name=ONLY_TARGET, host="localhost", port=1)]
        values.pop("default", None)
    try:
        settings = HubSettings(targets=tuple(known), **values)
    except ConfigError as error:
        faults += str(error).splitlines()
    if faults:
        raise ConfigError("\n".join(dict.fromkeys(faults)))
    return settings


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def _read(
    given: Mapping[str, str | bool], kinds: Mapping[str, Kind], read: Callable[[str, str], Any], faults: list[str]
) -> dict[str, Any]:
    """The values of those flags that ``kinds`` knows."""
    values: dict[str, Any] = {}
    for field, text in given.items():
        if field not in kinds:
            continue
        if isinstance(text, bool):
            values[field] = text
            continue
        try:
            values[field] = read(field, text)
        except ValueError as error:
            faults.append(f"{_flag(field)}: {error}")
    return values


def _read_own(field: str, text: str) -> Any:
    return _checked(HUB_KINDS[field], text)


def _checked(kind: Kind, text: str) -> Any:
    value = kind.read(text)
    if fault := kind.fault(value):
        raise ValueError(fault)
    return value


def _read_apart(given: Mapping[str, str | bool], faults: list[str]) -> dict[str, Any]:
    """The flags whose text is neither a target's setting nor of one of the hub's kinds."""
    values: dict[str, Any] = {}
    admin = given.get("admin")
    if isinstance(admin, str):
        values["admin"] = None if admin == "off" else _attempt(faults, Address.parse, admin, "--admin: ")
    for field, kind in LIMITS.items():
        if isinstance(text := given.get(field), str):
            values[field] = _attempt(faults, partial(_checked, kind), text, f"{_flag(field)}: ")
    return values


def _attempt(faults: list[str], make: Callable[[str], T], text: str, prefix: str = "") -> T | None:
    """What ``make`` makes of the text, or ``None`` with its faults noted."""
    try:
        return make(text)
    except ValueError as error:
        faults += [prefix + line for line in str(error).splitlines()]
        return None
