"""Who waits: threads block, tasks are suspended. One small module each."""

__all__ = ["FIRST_LOOK"]

FIRST_LOOK = 1.0
"""Seconds after which a waiter looks by itself whether a place is free; then after twice as long, each time.

Who gives a place back wakes the waiter, but a ``KeyboardInterrupt`` in that very moment can lose the wake-up. So it at
most doubles the wait, even one without an end. Long beside what a wake-up takes, short beside the usual ``max_wait``.
"""
