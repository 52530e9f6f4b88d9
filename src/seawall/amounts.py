"""What counts as a number of seconds, or of anything else that is measured: settings are held to it."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["LONGEST", "is_amount"]

LONGEST = sys.float_info.max
"""The largest number of seconds there is: nothing to wait for, but nothing to refuse."""


def is_amount(value: Any, least: float = 0.0, most: float = LONGEST) -> bool:
    """Whether ``value`` is a number from ``least`` to ``most``: not a bool, not NaN, and a float can hold it."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most
