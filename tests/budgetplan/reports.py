"""Reports for tests: of a plan and a measurement, written in each way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from seawall.budgetplan.markdown import markdown
from seawall.budgetplan.model import Plan
from seawall.budgetplan.page import page
from seawall.budgetplan.places import Places
from seawall.budgetplan.probed import probe_of
from seawall.budgetplan.read import Source
from seawall.budgetplan.report import report
from tests.budgetplan.plans import checked

PROBE: dict[str, Any] = {
    "schema": "seawall.probe/1", "connect": 0.3, "read": 1.0,
    "probes": [
        {"kind": "refused", "target": "127.0.0.1:9", "elapsed_ms": 0.4, "error": "connection refused"},
        {"kind": "connect_timeout", "target": "127.0.0.1:10", "elapsed_ms": 300.6, "error": "no connection within 0.3 s"},
        {"kind": "read_timeout", "target": "127.0.0.1:11", "elapsed_ms": 1001.3, "error": "no byte for 1 s"},
    ],
}  # fmt: skip


def plan_of(document: dict[str, Any]) -> Plan:
    plan = checked(document).plan
    assert plan is not None
    return plan


def written(
    plan: dict[str, Any], probe: dict[str, Any] = PROBE, *, lang: str = "en", html: bool = False,
    rates: Sequence[int] = (10, 50),
) -> str:  # fmt: skip
    """The report of two documents."""
    made = plan_of(plan)
    blocks = report(probe_of(Source("probe.json", probe, Places())), made, lang=lang, rates=rates)
    return page(blocks, made, lang) if html else markdown(blocks, made)


def numbers(document: object) -> Iterator[str]:
    """Every number of a document, as its file spells it."""
    if isinstance(document, dict):
        document = list(document.values())
    if isinstance(document, list):
        for inner in document:
            yield from numbers(inner)
    elif isinstance(document, (int, float)) and not isinstance(document, bool):
        yield str(document)


def absent(document: object, text: str) -> list[str]:
    """The numbers of a document that do not stand in a text on their own."""
    return [one for one in numbers(document) if not re.search(rf"(?<![\d.]){re.escape(one)}(?!\.?\d)", text)]
