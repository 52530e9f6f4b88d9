"""Says which extra brings a client that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needing"]


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """Around the imports of what ``extra`` brings: what is missing there is said together with what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"seawall.adapters.{extra} needs {error.name}, which is not installed: pip install 'seawall[{extra}]'",
            name=error.name,
        ) from None
