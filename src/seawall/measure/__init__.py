"""Calls that are measured: where each ended, after how long, and what was left of the budget."""
