"""What the constructors of LLM clients take: ``openai.OpenAI(**seawall.llm.options(wall, "openai"))``.

The SDKs of OpenAI and Anthropic, and of all who build on them, allow ten minutes for each attempt, three attempts of each
call, and no total at all. Here the call goes through a target of the wall: three limits that mean something for a stream
of tokens, one retry loop, and a place that is held until the stream is closed.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from .adapters.protection import Protection
from .errors import ConfigError
from .wall import Wall

__all__ = ["aoptions", "options"]

SDKS = ("openai", "anthropic")


def options(
    wall: Wall | None,
    name: str,
    *,
    sdk: str | None = None,
    first_token: float = 30.0,
    gap: float = 20.0,
    total: float = 300.0,
    **more: Any,
) -> dict[str, Any]:
    """Arguments for ``openai.OpenAI`` or ``anthropic.Anthropic``: an HTTP client behind a target, and no retries within.

    Args:
        wall: Holds the target. Default: :data:`seawall.adapters.wall`.
        name: Of the target. Declare it before, by ``wall.target(name, bulkhead=..., retry=...)``, to give it numbers of
            its own.
        sdk: ``"openai"`` or ``"anthropic"``. Default: as ``name``; to be written for a provider that speaks their protocol.
        first_token: Seconds until the first part of a streamed answer (30). One that comes in one piece has ``total``.
        gap: Seconds between two parts of it (20).
        total: Seconds for one attempt, to the last byte (300).
        more: As :class:`~seawall.adapters.protection.Protection` takes them. ``idempotent`` is true here: an answer that
            never came can be asked for again, which the SDKs do as well.

    Returns:
        ``{"http_client": ..., "max_retries": 0}``. The client is to be closed by ``close()`` of the SDK's.

    Raises:
        ConfigError: No such SDK, it is not installed, or a setting that cannot work.

    Refusals come out of the SDK as its ``APIConnectionError``, time limits as its ``APITimeoutError``, with Seawall's error
    as ``__cause__``. Out of a stream that is being read some versions let Seawall's error itself.
    """
    return _options("DefaultHttpxClient", wall, name, sdk, first_token, gap, total, more)


def aoptions(
    wall: Wall | None,
    name: str,
    *,
    sdk: str | None = None,
    first_token: float = 30.0,
    gap: float = 20.0,
    total: float = 300.0,
    **more: Any,
) -> dict[str, Any]:
    """:func:`options` for ``openai.AsyncOpenAI`` or ``anthropic.AsyncAnthropic``."""
    return _options("DefaultAsyncHttpxClient", wall, name, sdk, first_token, gap, total, more)


class _Tokens(Protection):
    """The first part of an answer is waited for by itself only where the answer is asked for in parts."""

    __slots__ = ()

    def first_of(self, request: Any) -> float | None:
        try:
            body = json.loads(request.content)
        except (RuntimeError, ValueError):  # it comes from an iterator, or is no JSON: an upload
            return None
        return self.first if isinstance(body, dict) and body.get("stream") is True else None


def _options(
    kind: str, wall: Wall | None, name: str, sdk: str | None, first: float, gap: float, total: float, more: dict[str, Any]
) -> dict[str, Any]:
    module = sdk or name
    if module not in SDKS:
        raise ConfigError(f"sdk= is {' or '.join(map(repr, SDKS))}, not {module!r}: whose protocol does {name!r} speak?")
    try:
        client = getattr(import_module(module), kind)()
    except ImportError as error:
        raise ConfigError(f"{module} is not installed: pip install {module}") from error
    protection = _Tokens(wall, **{"target": name, "idempotent": True, **more, "first": first, "gap": gap, "total": total})
    adapter = import_module(f"seawall.adapters.{_family(client)}")
    return {"http_client": adapter.protect(client, protection), "max_retries": 0}


def _family(client: object) -> str:
    """Whether an SDK's client is one of httpx or of httpx2: older ones are of httpx."""
    names = {base.__module__.partition(".")[0] for base in type(client).__mro__}
    return "httpx2" if "httpx2" in names else "httpx"
