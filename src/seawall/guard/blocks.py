"""The ``with`` blocks that a thread or task stands in, and what each of them was admitted with."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, TypeAlias

__all__ = ["Block", "blocks", "innermost", "left_elsewhere", "open_block"]

Block: TypeAlias = list[Any]
"""``[guard, what it was admitted with, the block around it]``; the guard is ``None`` once the block has been left.

A list, because a name for each element costs more than the rest of the block. Marked as left instead of taken out: one
``ContextVar.set`` less for each block, and a child task, which starts with its parent's blocks, takes nothing from it.
"""

_OUTSIDE: Block = ["outside all blocks", None, None]  # never changed
blocks: ContextVar[Block] = ContextVar("seawall_blocks", default=_OUTSIDE)


def innermost(block: Block) -> Block:
    """``block``, or the nearest one around it that has not been left. Those that were left around that one are unhooked.

    Else tasks that each start the next one inside their block would make a chain without end.
    """
    while block[0] is None:
        block = block[2]
    inner = block
    while (outer := inner[2]) is not None:
        if outer[0] is None:
            inner[2] = outer[2]
        else:
            inner = outer
    return block


def open_block(guard: object) -> Block | None:
    """The innermost open block of ``guard`` in this thread or task, if it stands in one."""
    block: Block | None = blocks.get()
    while block is not None and block[0] is not guard:
        block = block[2]
    return block


def left_elsewhere() -> RuntimeError:
    """What is raised when a block is left that was not entered here."""
    return RuntimeError(
        "this block was left in another thread or task than it was entered in: enter and leave it in the same one, or "
        "guard the function itself"
    )
