"""Which door a request came to, and which target it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .target_settings import ONLY_TARGET

if TYPE_CHECKING:
    from .backend import Backend
    from .settings import HubSettings

__all__ = ["Doors", "Way"]


Way: TypeAlias = "tuple[Backend | None, bytes]"
"""Where a request goes, and by which path; no backend on the transaction door, whose body names the target."""


class Doors:
    """The hub's ways in. ``POST /tx`` is one, ``/{TARGET}/{path}`` the other; a default takes what names no target."""

    def __init__(self, settings: HubSettings, backends: dict[str, Backend]) -> None:
        nameless = settings.default == ONLY_TARGET and len(backends) == 1  # then every path is its own
        self._by_name = {} if nameless else {name.encode(): backend for name, backend in backends.items()}
        self._default = backends.get(settings.default) if settings.default else None
        self._tx = settings.tx_path.encode() if settings.tx_path else None
        self.health = settings.health_path.encode() if settings.health_path else None
        self.names = sorted(backends)

    def way(self, target: bytes) -> Way | None:
        """The way for a request target, byte for byte; ``None`` where it leads nowhere."""
        end = target.find(b"/", 1)
        if end > 0:
            backend = self._by_name.get(target[1:end])
            if backend is not None:
                return backend, backend.base + target[end:]
        if self._tx is not None and target.partition(b"?")[0] == self._tx:
            return None, target
        if end < 0 or b"?" in target[:end]:
            name, mark, query = target[1:].partition(b"?")
            backend = self._by_name.get(name)
            if backend is not None:
                return backend, backend.base + b"/" + mark + query
        default = self._default
        if default is None or (self.health is not None and target.partition(b"?")[0] == self.health):
            return None
        return default, default.base + target if target != b"*" else target
