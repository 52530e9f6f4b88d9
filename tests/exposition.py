"""A strict reader of Prometheus' text format 0.0.4: whatever the format forbids, or leaves to luck, is an error."""

from __future__ import annotations

import re
from math import inf
from typing import TypeAlias

Labels: TypeAlias = "tuple[tuple[str, str], ...]"
Samples: TypeAlias = "dict[tuple[str, Labels], float]"

_HELP = re.compile(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)")
_TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)")
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (\S+)")
_PARTS = ("_bucket", "_sum", "_count")


def read(page: bytes) -> Samples:
    """Each sample by name and sorted labels; ``AssertionError`` where the page is not as it should be."""
    *lines, last = page.decode().split("\n")  # not splitlines(): a label's value may hold other line ends
    assert last == "", "the last line has no end"
    samples: Samples = {}
    seen: set[str] = set()
    helped = family = kind = ""
    for line in lines:
        if match := _HELP.fullmatch(line):
            helped = match[1]
        elif match := _TYPE.fullmatch(line):
            family, kind = match.groups()
            assert helped == family, f"{family} has no HELP before its TYPE"
            assert family not in seen, f"{family} stands in two places"
            assert (kind == "counter") == family.endswith("_total"), f"{family} is a {kind}"
            seen.add(family)
        else:
            _add(samples, line, family, kind)
    assert {_family(name, seen) for name, _ in samples} == seen, "a TYPE without a sample"
    _check_histograms(samples)
    return samples


def value(samples: Samples, name: str, **labels: str) -> float:
    """The one sample with exactly these labels."""
    return samples[name, tuple(sorted(labels.items()))]


def _family(name: str, seen: set[str]) -> str:
    return name if name in seen else name.rpartition("_")[0]


def _add(samples: Samples, line: str, family: str, kind: str) -> None:
    match = _SAMPLE.fullmatch(line)
    assert match, f"no sample: {line!r}"
    name, text, number = match.groups()
    allowed = {family + part for part in _PARTS} if kind == "histogram" else {family}
    assert name in allowed, f"{name} stands under {family}, a {kind}"
    pairs = [pair.split("=", 1) for pair in re.findall(_LABEL, text or "")]
    labels = {key: _unescaped(quoted[1:-1]) for key, quoted in pairs}
    assert len(labels) == len(pairs), f"a label twice: {line!r}"
    key = name, tuple(sorted(labels.items()))
    assert key not in samples, f"a sample twice: {line!r}"
    samples[key] = float(number)
    assert kind == "gauge" or samples[key] >= 0, f"{line!r} is below zero"


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)


def _check_histograms(samples: Samples) -> None:
    """Buckets only grow, in the order they stand in, and the last one is the count."""
    series: dict[tuple[str, Labels], list[tuple[float, float]]] = {}
    for (name, labels), count in samples.items():
        if name.endswith("_bucket"):
            bound = float(dict(labels)["le"])
            rest = tuple(label for label in labels if label[0] != "le")
            series.setdefault((name.removesuffix("_bucket"), rest), []).append((bound, count))
    for (name, labels), buckets in series.items():
        assert buckets == sorted(buckets), f"{name}: bounds out of order"
        counts = [count for _, count in buckets]
        assert counts == sorted(counts), f"{name}: counts that shrink"
        assert buckets[-1] == (inf, samples[f"{name}_count", labels]), f"{name}: +Inf is not the count"
        assert (f"{name}_sum", labels) in samples, f"{name}: no sum"
