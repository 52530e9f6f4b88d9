"""What `seawall probe` wrote is read back; what is no measurement is refused with every fault at once."""

from __future__ import annotations

from typing import Any

import pytest

from seawall.budgetplan import probed
from seawall.budgetplan.places import Places
from seawall.budgetplan.probed import Probe, ProbeError, Row, probe_of
from seawall.budgetplan.read import Source
from seawall.measure import probe as measure

pytestmark = pytest.mark.req("BUDGET-9")

ROW = {"kind": "refused", "target": "127.0.0.1:9", "elapsed_ms": 0.4, "error": "connection refused"}


def probe(document: dict[str, Any]) -> Probe:
    return probe_of(Source("probe.json", document, Places()))


def refused(document: dict[str, Any]) -> list[str]:
    with pytest.raises(ProbeError) as error:
        probe(document)
    return [str(fault) for fault in error.value.faults]


def test_the_kinds_are_those_that_are_measured() -> None:
    assert probed.KINDS == measure.KINDS


def test_a_document_is_read_with_and_without_its_schema_and_limits() -> None:
    rows = (Row("refused", "127.0.0.1:9", 0.4, "connection refused"),)
    assert probe({"probes": [ROW]}) == Probe(rows, None, None)
    assert probe({"schema": "seawall.probe/1", "connect": 0.3, "read": 1.0, "probes": [ROW]}) == Probe(rows, 0.3, 1.0)
    assert probe({"connect_s": 0.3, "read_s": 2, "probes": [ROW]}) == Probe(rows, 0.3, 2)


def test_of_several_rows_of_a_kind_the_slowest_counts() -> None:
    found = probe({"probes": [ROW, ROW | {"elapsed_ms": 7}, ROW | {"kind": "read_timeout", "elapsed_ms": 1000}]})
    assert [found.took(kind) for kind in probed.KINDS] == [7, None, 1000]


def test_every_other_number_is_kept_with_its_place() -> None:
    row = ROW | {"port": 9, "phases": {"dns": [0.25, True, {"tls": 3}]}, "text": "5"}
    found = probe({"probes": [row], "runs": 2, "read": 1.0, "read_s": 4, "interrupted": True})
    assert found.others == (
        ("probes[0].port", 9), ("probes[0].phases.dns[0]", 0.25), ("probes[0].phases.dns[2].tls", 3), ("runs", 2),
        ("read_s", 4))  # fmt: skip


def test_an_error_may_be_missing_and_texts_stay_on_their_line() -> None:
    found = probe({"probes": [{"kind": "refused", "target": "a\nb\x1b[1m", "elapsed_ms": 0, "error": None}]})
    assert found.rows == (Row("refused", "a b [1m", 0, ""),)


@pytest.mark.parametrize(("document", "fault"), [
    ({}, "probes: is missing: `seawall probe -o probe.json` writes it"),
    ({"probes": []}, "probes: is an empty list: `seawall probe -o probe.json` writes it"),
    ({"probes": 3}, "probes: is no list: `seawall probe -o probe.json` writes it"),
    ({"probes": [3]}, "probes[0]: is no object: write kind, target, elapsed_ms and error"),
    ({"probes": [ROW | {"kind": "refuse"}]}, "probes[0].kind: is 'refuse': did you mean refused?"),
    ({"probes": [ROW | {"kind": 5}]}, "probes[0].kind: is 5: write one of refused, connect_timeout, read_timeout"),
    ({"probes": [ROW | {"elapsed_ms": -1}]},
     "probes[0].elapsed_ms: is -1, less than nothing: write milliseconds, as in 300.4"),
    ({"probes": [ROW | {"elapsed_ms": "1"}]},
     "probes[0].elapsed_ms: is '1', no number: write milliseconds, as in 300.4, without quotes"),
    ({"probes": [ROW | {"elapsed_ms": 1e308}]},
     "probes[0].elapsed_ms: is 1e+308, more than a day: write milliseconds, as in 300.4; at most 86400000"),
    ({"probes": [ROW], "read": 86401}, "read: is 86401, more than a day: write seconds, as in 0.3; at most 86400"),
    ({"probes": [ROW], "schema": "seawall.call/1"},
     "schema: is 'seawall.call/1': seawall.probe/1 is what a measurement has"),
    ({"probes": [ROW], "schema": 1}, "schema: is 1: seawall.probe/1 is what a measurement has"),
    ({"probes": [ROW | {"target": 1}]}, "probes[0].target: is 1, no text: write it in quotes"),
    ({"probes": [ROW | {"error": 1}]}, "probes[0].error: is 1, no text: write it in quotes"),
    ({"probes": [ROW], "connect": True}, "connect: is true, no number: write seconds, as in 0.3"),
    ({"probes": [ROW], "read": None}, "read: is null, no number: write seconds, as in 0.3"),
])  # fmt: skip
def test_each_fault_says_where_what_and_what_to_do(document: dict[str, Any], fault: str) -> None:
    assert refused(document) == [fault]


def test_every_fault_is_told_at_once() -> None:
    told = refused({"probes": [{"kind": "x"}, 1, ROW | {"elapsed_ms": float("nan")}], "read": -1})
    assert [fault.partition(":")[0] for fault in told] == [
        "read", "probes[0].target", "probes[0].elapsed_ms", "probes[0].kind", "probes[1]", "probes[2].elapsed_ms"]
